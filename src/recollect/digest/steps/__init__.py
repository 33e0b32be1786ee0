"""From an entry of the agenda to what is done about it: gather a ledger, let the policy decide, carry it out."""

from __future__ import annotations

from recollect.digest.executor import Executor
from recollect.digest.steps.calendar import CalendarSteps
from recollect.digest.steps.rolling import RollingSteps
from recollect.digest.steps.step import Step, Steps
from recollect.digest.steps.tiers import TiersSteps
from recollect.digest.steps.tree import TreeSteps

__all__ = ["CalendarSteps", "RollingSteps", "Step", "Steps", "TiersSteps", "TreeSteps", "steps_of"]


def steps_of(executor: Executor) -> Steps | None:
    """Return the steps of the policy that the profile names."""
    match executor.profile.summaries:
        case "tree":
            return TreeSteps(executor)
        case "rolling":
            return RollingSteps(executor)
        case "calendar":
            return CalendarSteps(executor)
        case "tiers":
            return TiersSteps(executor)
        case "none":
            return None
