"""What every part of upkeep promises."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, Protocol

from aforesaid.domain.report import Component
from aforesaid.domain.scope import Scope
from aforesaid.errors import AforesaidError
from aforesaid.telemetry import OWN, Metrics, kind_of

if TYPE_CHECKING:
    from aforesaid.store import Progress


class Done(NamedTuple):
    """What a run of a part did."""

    done: int
    error: str | None = None
    """Why it stopped before the end."""


async def metered(metrics: Metrics, what: str, run: Awaitable[Done]) -> Done:
    """Run a part, and count the run where there was something to do. One that stopped early is `incomplete`."""
    began = perf_counter()
    try:
        done = await run
    except BaseException as error:
        metrics.called(what, OWN, perf_counter() - began, failure=kind_of(error))
        raise
    if done.done or done.error is not None:
        failure = None if done.error is None else "incomplete"
        metrics.called(what, OWN, perf_counter() - began, failure=failure)
    return done


def repeated(run: Callable[[], Awaitable[Done]]) -> Callable[[], Awaitable[None]]:
    """Return a part's run as the work of a background loop: a run that stopped early fails and is tried again."""

    async def work() -> None:
        done = await run()
        if done.error is not None:
            raise AforesaidError(done.error)

    return work


class Part(Protocol):
    """One kind of work that comes after a message is stored. What is due is derived from what is stored."""

    @property
    def name(self) -> str:
        """What it does, as it is called in a report: `embedded`, `summarised`."""

    def nudge(self) -> None:
        """Say that there is something new. It is worked on in a moment, without anybody waiting for it."""

    async def run(self, progress: Progress | None = None) -> Done:
        """Do all that is due, to the end."""

    async def health(self) -> Component:
        """Say how it is doing."""

    def notice(self, scope: Scope) -> str | None:
        """Return what a user should be told, such as that their summaries fail. Costs nothing."""

    async def close(self) -> None:
        """Stop. What is not done yet is done by whoever opens the store next."""
