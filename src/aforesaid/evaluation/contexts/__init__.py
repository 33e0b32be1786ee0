"""Measuring contexts: how often what answers a question is inside, at what budget."""

from aforesaid.evaluation.contexts.measure import BUDGETS, Contained, ContextReport, measure_contexts

__all__ = ["BUDGETS", "Contained", "ContextReport", "measure_contexts"]
