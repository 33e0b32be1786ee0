"""Failover: when a store fails, a fallback takes messages until it works again; then they are merged into it."""

from __future__ import annotations

from aforesaid.store.failover.failover import IN_MEMORY, ON_DISK, Failover, open_with_failover

__all__ = ["IN_MEMORY", "ON_DISK", "Failover", "open_with_failover"]
