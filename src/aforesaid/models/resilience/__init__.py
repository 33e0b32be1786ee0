"""Wrappers around models that may be down, slow or expensive.

Every wrapper is a `Service` around a `Service`: it takes an `Ask` and yields what comes back. They compose in any
order; this is the order in which a model is wrapped, from the caller to the wire:

    Fallback    tries the next model when one fails
    Retry       calls the same model again after a pause
    Checked     fails at once if the provider's breaker is open
    Limited     limits concurrent calls
    Guarded     the breaker: counts failures, lets one probe through per interval
    Budgeted    limits tokens per day
    Metered     measures time and tokens
    Deadline    limits the duration
"""

from aforesaid.models.resilience.spending import Budget, Budgeted, MemoryLedger, Metered, SpendingLedger
from aforesaid.models.resilience.wrappers import (
    Ask,
    Breaker,
    BreakerOpen,
    BreakerState,
    Checked,
    ConcurrencyLimit,
    Deadline,
    Fallback,
    Guarded,
    Limited,
    Priced,
    Retry,
    Service,
    begin,
    only,
)

__all__ = [
    "Ask",
    "Breaker",
    "BreakerOpen",
    "BreakerState",
    "Budget",
    "Budgeted",
    "Checked",
    "ConcurrencyLimit",
    "Deadline",
    "Fallback",
    "Guarded",
    "Limited",
    "MemoryLedger",
    "Metered",
    "Priced",
    "Retry",
    "Service",
    "SpendingLedger",
    "begin",
    "only",
]
