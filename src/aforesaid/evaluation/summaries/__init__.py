"""Measure summaries made without a model, on chats with reference summaries or labelled facts."""

from aforesaid.evaluation.summaries.chats import ChatSet
from aforesaid.evaluation.summaries.datasets import load_chats
from aforesaid.evaluation.summaries.measure import Figures, SummaryReport, measure_summaries

__all__ = ["ChatSet", "Figures", "SummaryReport", "load_chats", "measure_summaries"]
