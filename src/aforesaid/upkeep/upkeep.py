"""Runs all pending work, in the background or on request, in one process or in many."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from aforesaid.background import close_all
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


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    """The result of a run of upkeep."""

    embedded: int
    """Messages, summaries and memories that got a vector."""
    summarised: int
    """Summaries that were made."""
    remembered: int
    """Memories that were extracted."""
    cleaned: int
    """Number of rows archived or deleted by age."""
    error: str | None
    """Why it stopped early; the next run does the rest."""


class Upkeep:
    """The background work on one store. Each part finds its own pending work; the first one embeds."""

    def __init__(self, parts: Sequence[Part], *, background: bool = True) -> None:
        """Without `background`, work runs only on request, because separate workers do it."""
        self._parts = tuple(parts)
        self._background = background

    @property
    def parts(self) -> tuple[Part, ...]:
        return self._parts

    def nudge(self, within_seconds: float = 0.0) -> None:
        """Tell the parts that there is new work. They start in the background: soon, or within some seconds."""
        for part in self._parts if self._background else ():
            part.nudge(within_seconds)

    async def run(self, progress: Progress | None = None) -> UpkeepReport:
        """Do all pending work."""
        done = {part.name: await part.run(progress) for part in self._parts}
        first, *others = self._parts
        if any(done[part.name].done for part in others):
            # Embed what the other parts made.
            again = await first.run(progress)
            done[first.name] = Done(done[first.name].done + again.done, again.error)
        errors = [each.error for each in done.values() if each.error is not None]
        return UpkeepReport(
            embedded=done.get("embedded", Done(0)).done,
            summarised=done.get("summarised", Done(0)).done,
            remembered=done.get("remembered", Done(0)).done,
            cleaned=done.get("cleaned", Done(0)).done,
            error="; ".join(errors) or None,
        )

    def notices(self, scope: Scope) -> tuple[str, ...]:
        return tuple([notice for part in self._parts if (notice := part.notice(scope)) is not None])

    async def health(self) -> tuple[Component, ...]:
        return tuple([await part.health() for part in self._parts])

    async def close(self) -> None:
        """Stop. The next process that opens the store does the rest."""
        await close_all(*(part.close for part in reversed(self._parts)))
