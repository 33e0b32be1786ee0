"""Failover: when a store fails, a fallback takes messages until it works again; then they are merged into it."""

from __future__ import annotations

from aforesaid.store.failover.failover import Failover, open_with_failover

__all__ = ["Failover", "open_with_failover"]
