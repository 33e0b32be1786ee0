"""Summaries: four policies over one log, one executor, and what people ask for."""

from recollect.digest.digest import Digest
from recollect.digest.requests import HistoryContext, HistoryItem, Tiers
from recollect.digest.steps import Step

__all__ = ["Digest", "HistoryContext", "HistoryItem", "Step", "Tiers"]
