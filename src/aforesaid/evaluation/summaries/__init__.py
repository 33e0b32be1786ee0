"""Measuring summaries that were made without a model, on chats whose summaries or facts are known."""

from aforesaid.evaluation.summaries.chats import ChatSet
from aforesaid.evaluation.summaries.measure import Figures, SummaryReport, measure_summaries
from aforesaid.evaluation.summaries.recognise import load_chats

__all__ = ["ChatSet", "Figures", "SummaryReport", "load_chats", "measure_summaries"]
