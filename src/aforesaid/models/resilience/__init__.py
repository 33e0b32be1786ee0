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

from aforesaid.models.resilience.breaker import Breaker, BreakerOpen, BreakerState, Checked, Guarded
from aforesaid.models.resilience.concurrency_limit import ConcurrencyLimit, Limited
from aforesaid.models.resilience.contract import Ask, Priced, Service, begin, only
from aforesaid.models.resilience.deadline import Deadline
from aforesaid.models.resilience.fallback import Fallback
from aforesaid.models.resilience.metered import Metered
from aforesaid.models.resilience.retry import Retry
from aforesaid.models.resilience.spending import Budget, Budgeted, MemoryLedger, SpendingLedger

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
