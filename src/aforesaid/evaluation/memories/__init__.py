"""Measure the memories that are extracted without a model, on conversations with labelled facts."""

from aforesaid.evaluation.memories.cases import Case, CaseSet, Label
from aforesaid.evaluation.memories.datasets import load_cases
from aforesaid.evaluation.memories.measure import MemoryReport, Sample, measure_memories
from aforesaid.evaluation.memories.measure_facts import FactFigures, FactReport, measure_facts
from aforesaid.evaluation.memories.transcripts import FactTranscript, load_fact_transcripts

__all__ = [
    "Case",
    "CaseSet",
    "FactFigures",
    "FactReport",
    "FactTranscript",
    "Label",
    "MemoryReport",
    "Sample",
    "load_cases",
    "load_fact_transcripts",
    "measure_facts",
    "measure_memories",
]
