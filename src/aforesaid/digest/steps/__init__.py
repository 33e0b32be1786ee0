"""Processes agenda entries: reads the input, lets the policy decide, and carries out the plan."""

from __future__ import annotations

from aforesaid.digest.executor import Executor
from aforesaid.digest.steps.calendar import CalendarSteps
from aforesaid.digest.steps.rolling import RollingSteps
from aforesaid.digest.steps.step import Step, Steps
from aforesaid.digest.steps.tiers import TiersSteps
from aforesaid.digest.steps.tree import TreeSteps

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
