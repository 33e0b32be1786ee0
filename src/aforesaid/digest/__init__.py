"""Summaries: four policies over one log, one executor, and what people ask for."""

from aforesaid.digest.digest import Digest
from aforesaid.digest.requests import HistoryContext, HistoryItem, Tiers
from aforesaid.digest.steps import Step

__all__ = ["Digest", "HistoryContext", "HistoryItem", "Step", "Tiers"]
