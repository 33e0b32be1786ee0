"""Runs all pending work, in the background or on request, in one process or in many."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from aforesaid.background import BackgroundLoop, BackgroundLoops, close_all
from aforesaid.domain.report import Component
from aforesaid.domain.scope import Scope
from aforesaid.errors import AforesaidError
from aforesaid.telemetry import OWN, Metrics, kind_of

if TYPE_CHECKING:
    from aforesaid.store import Progress, Store


GiveWay: TypeAlias = Callable[[], Awaitable[None]]
"""Waits while people search. Tasks call it before each batch."""


async def at_once() -> None:
    """Give way to nobody."""


class Done(NamedTuple):
    """The result of one run of a task."""

    done: int
    error: str | None = None
    """Why it stopped early."""


async def metered(metrics: Metrics, what: str, run: Awaitable[Done]) -> Done:
    """Run a task, and count the run if it did something. One that stopped early counts as `incomplete`."""
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
    """Return a task's run as the work of a background loop: a run that stopped early fails and is retried."""

    async def work() -> None:
        done = await run()
        if done.error is not None:
            raise AforesaidError(done.error)

    return work


class UpkeepTask(ABC):
    """One kind of background work, done in a loop. Pending work is derived from stored data."""

    name: ClassVar[str]
    """Its name in reports: `embedded`, `summarised`."""

    def __init__(
        self,
        store: Store,
        loop: BackgroundLoop,
        metrics: Metrics | None,
        loops: BackgroundLoops | None,
        give_way: GiveWay = at_once,
    ) -> None:
        self._store = store
        self._loop = (loops or BackgroundLoops()).add(loop)
        self._metrics = Metrics() if metrics is None else metrics
        self._give_way = give_way
        self._one_at_a_time = asyncio.Lock()
        self._error: str | None = None
        self._last_update: datetime | None = None

    @abstractmethod
    def nudge(self, within_seconds: float = 0.0) -> None:
        """Announce new work. It is done in the background: soon, or within some seconds."""

    @abstractmethod
    async def run(self, progress: Progress | None = None) -> Done:
        """Do all pending work."""

    @abstractmethod
    async def health(self) -> Component: ...

    def notice(self, scope: Scope) -> str | None:  # noqa: ARG002 - for tasks whose failures users notice
        """Return a notice for a user, such as that their summaries fail. Makes no I/O."""
        return None

    async def close(self) -> None:
        """Stop. The next process that opens the store does the rest."""
        await self._loop.stop()

    async def _run_once(self, what: str, work: Awaitable[Done]) -> Done:
        """Count a run, and remember its error for `health`."""
        try:
            done = await metered(self._metrics, what, work)
        except Exception as error:
            self._error = f"{type(error).__name__}: {error}"
            raise
        self._error = done.error
        return done


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
    """The background work on one store. Each task finds its own pending work; the first one embeds."""

    def __init__(self, tasks: Sequence[UpkeepTask], *, background: bool = True) -> None:
        """Without `background`, work runs only on request, because separate workers do it."""
        self.tasks = tuple(tasks)
        self._background = background

    def nudge(self, within_seconds: float = 0.0) -> None:
        for task in self.tasks if self._background else ():
            task.nudge(within_seconds)

    async def run(self, progress: Progress | None = None) -> UpkeepReport:
        done = {task.name: await task.run(progress) for task in self.tasks}
        first, *others = self.tasks
        if any(done[task.name].done for task in others):
            # Embed what the other tasks made.
            again = await first.run(progress)
            done[first.name] = Done(done[first.name].done + again.done, again.error)
        errors = [each.error for each in done.values() if each.error is not None]
        counts = {name: done.get(name, Done(0)).done for name in ("embedded", "summarised", "remembered", "cleaned")}
        return UpkeepReport(**counts, error="; ".join(errors) or None)

    def notices(self, scope: Scope) -> tuple[str, ...]:
        return tuple([notice for task in self.tasks if (notice := task.notice(scope)) is not None])

    async def health(self) -> tuple[Component, ...]:
        return tuple([await task.health() for task in self.tasks])

    async def close(self) -> None:
        await close_all(*(task.close for task in reversed(self.tasks)))
