"""When a store fails, another takes over until it works again; what was said meanwhile is merged into the first."""

from __future__ import annotations

from aforesaid.store.failover.failover import Failover
from aforesaid.store.failover.opening import open_with_failover

__all__ = ["Failover", "open_with_failover"]
