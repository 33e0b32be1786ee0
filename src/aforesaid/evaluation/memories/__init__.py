"""Measure the memories that rules extract without a model, on conversations with labelled facts."""

from aforesaid.evaluation.memories.cases import Case, CaseSet, Label
from aforesaid.evaluation.memories.datasets import load_cases
from aforesaid.evaluation.memories.measure import MemoryReport, Sample, measure_memories

__all__ = ["Case", "CaseSet", "Label", "MemoryReport", "Sample", "load_cases", "measure_memories"]
