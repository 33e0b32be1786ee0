"""All that is due, done in the background or on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aforesaid.domain.report import Component
from aforesaid.domain.scope import Scope
from aforesaid.tasks import close_all
from aforesaid.upkeep.part import Done, Part

if TYPE_CHECKING:
    from aforesaid.store import Progress


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    """What a run of upkeep did."""

    embedded: int
    """Messages, summaries and memories that got a vector."""
    summarised: int
    """Summaries that were made."""
    remembered: int
    """Memories that were learned."""
    cleaned: int
    """What was archived or removed by its age."""
    error: str | None
    """Why it stopped before the end; the rest is done next time."""


class Upkeep:
    """The work on one store: a few parts, each of which knows what is due. The first embeds what the others make."""

    def __init__(self, parts: Sequence[Part], *, background: bool = True) -> None:
        """Without `background`, nothing is done before somebody asks: workers of their own do it."""
        self._parts = tuple(parts)
        self._background = background

    @property
    def parts(self) -> tuple[Part, ...]:
        """What there is to do."""
        return self._parts

    def nudge(self) -> None:
        """Say that there is something new. It is worked on in a moment, without anybody waiting for it."""
        for part in self._parts if self._background else ():
            part.nudge()

    async def run(self, progress: Progress | None = None) -> UpkeepReport:
        """Do all that is due, to the end."""
        done = {part.name: await part.run(progress) for part in self._parts}
        first, *others = self._parts
        if any(done[part.name].done for part in others):
            # What the others made is embedded too.
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
        """Return what a user should be told."""
        said = (part.notice(scope) for part in self._parts)
        return tuple(notice for notice in said if notice is not None)

    async def health(self) -> tuple[Component, ...]:
        """Say how each part is doing."""
        return tuple([await part.health() for part in self._parts])

    async def close(self) -> None:
        """Stop. What is not done yet is done by whoever opens the store next."""
        await close_all(*(part.close for part in reversed(self._parts)))
