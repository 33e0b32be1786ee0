"""Measure the memories that are extracted without a model, on conversations with labelled facts."""

from evaluation.memories.cases import Case, CaseSet, Label
from evaluation.memories.datasets import load_cases
from evaluation.memories.measure import MemoryReport, Sample, measure_memories
from evaluation.memories.measure_facts import FactFigures, FactReport, measure_facts
from evaluation.memories.transcripts import FactTranscript, load_fact_transcripts

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
