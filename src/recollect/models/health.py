"""How the models are doing, for `health`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.domain.report import Component
from recollect.models.resilience.breaker import BreakerState

if TYPE_CHECKING:
    from recollect.models.chat import Chat


def models_health(chat: Chat | None) -> Component:
    """Say how each provider is doing. Without any, everything is done without a model, and that is fine."""
    if chat is None:
        return Component("models", "active", None, (), (("providers", "none: everything is done without a model"),))
    states = chat.states()
    issues = tuple(f"{name}: {state.error}" for name, state in states.items() if state.state != "closed")
    facts = tuple((name, _shown(state)) for name, state in states.items())
    return Component("models", "failing" if issues else "active", None, issues, facts)


def _shown(state: BreakerState) -> str:
    if state.retry_in is None:
        return "working" if not state.failures else f"{state.failures} failures in a row"
    return f"{state.state}, tried again in {state.retry_in:.0f} s"
