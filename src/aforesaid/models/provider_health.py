"""The health of model providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from aforesaid.domain.report import Component
from aforesaid.models.client import missing_library
from aforesaid.models.resilience.breaker import BreakerState

if TYPE_CHECKING:
    from aforesaid.models.chat import Chat


def models_health(chat: Chat | None) -> Component:
    """Return the health of all providers. No provider at all is healthy: everything works without a model."""
    health = component("models", {} if chat is None else chat.states(), "none: everything is done without a model")
    missing = None if chat is None or not chat.states() else missing_library()
    return health if missing is None else replace(health, status="failing", issues=(missing, *health.issues))


def component(name: str, states: Mapping[str, BreakerState], without: str) -> Component:
    """Return the health of services with circuit breakers; `without` describes the case without services.

    A service fails from its first failed call until it answers one, also while its breaker is still closed.
    """
    if not states:
        return Component(name, "active", None, (), (("providers", without),))
    issues = tuple(f"{each}: {state.error}" for each, state in states.items() if state.error is not None)
    facts = tuple((each, shown(state)) for each, state in states.items())
    return Component(name, "failing" if issues else "active", None, issues, facts)


def shown(state: BreakerState) -> str:
    """Return the state of a provider as text."""
    if state.retry_in is None:
        working = "working" if state.answered else "not called yet"
        return working if not state.failures else f"{state.failures} failures in a row"
    return f"{state.state}, tried again in {state.retry_in:.0f} s"
