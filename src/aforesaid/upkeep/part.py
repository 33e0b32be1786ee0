"""The contract of the parts of upkeep."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from aforesaid.domain.report import Component
from aforesaid.domain.scope import Scope
from aforesaid.errors import AforesaidError
from aforesaid.telemetry import OWN, Metrics, kind_of

if TYPE_CHECKING:
    from aforesaid.store import Progress


GiveWay: TypeAlias = Callable[[], Awaitable[None]]
"""Waits while people search. Parts call it before each batch."""


async def at_once() -> None:
    """Give way to nobody."""


class Done(NamedTuple):
    """The result of one run of a part."""

    done: int
    error: str | None = None
    """Why it stopped early."""


async def metered(metrics: Metrics, what: str, run: Awaitable[Done]) -> Done:
    """Run a part, and count the run if it did something. One that stopped early counts as `incomplete`."""
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
    """Return a part's run as the work of a background loop: a run that stopped early fails and is retried."""

    async def work() -> None:
        done = await run()
        if done.error is not None:
            raise AforesaidError(done.error)

    return work


class Part(Protocol):
    """One kind of background work. Pending work is derived from stored data."""

    @property
    def name(self) -> str:
        """Its name in reports: `embedded`, `summarised`."""

    def nudge(self, within_seconds: float = 0.0) -> None:
        """Announce new work. It is done in the background: soon, or within some seconds."""

    async def run(self, progress: Progress | None = None) -> Done:
        """Do all pending work."""

    async def health(self) -> Component:
        """Return its health."""

    def notice(self, scope: Scope) -> str | None:
        """Return a notice for a user, such as that their summaries fail. Makes no I/O."""

    async def close(self) -> None:
        """Stop. The next process that opens the store does the rest."""
