"""Measure contexts: how often a context contains the evidence for its question, by token budget."""

from evaluation.contexts.measure import BUDGETS, Contained, ContextReport, measure_contexts

__all__ = ["BUDGETS", "Contained", "ContextReport", "measure_contexts"]
