"""Measure summaries made without a model, on chats with reference summaries or labelled facts."""

from evaluation.summaries.chats import ChatSet
from evaluation.summaries.datasets import load_chats
from evaluation.summaries.measure import Figures, SummaryReport, measure_summaries

__all__ = ["ChatSet", "Figures", "SummaryReport", "load_chats", "measure_summaries"]
