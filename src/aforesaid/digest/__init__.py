"""Summaries: four policies, one executor, and requests of users."""

from aforesaid.digest.digest import Digest, HistoryContext, HistoryItem, Tiers
from aforesaid.digest.tree import Step

__all__ = ["Digest", "HistoryContext", "HistoryItem", "Step", "Tiers"]
