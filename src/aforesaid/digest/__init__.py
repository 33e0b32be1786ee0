"""Summaries: four policies, one executor, and requests of users."""

from aforesaid.digest.digest import Digest
from aforesaid.digest.requests import HistoryContext, HistoryItem, Tiers
from aforesaid.digest.steps import Step

__all__ = ["Digest", "HistoryContext", "HistoryItem", "Step", "Tiers"]
