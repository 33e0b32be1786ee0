"""All that is due, done in the background or on request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.domain.report import Component
from recollect.models.embed import Embedder
from recollect.upkeep.embedding import Embedding

if TYPE_CHECKING:
    from recollect.store import Progress, Store


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    """What a run of upkeep did."""

    embedded: int
    """Messages, summaries and memories that got a vector."""
    error: str | None
    """Why it stopped before the end; the rest is done next time."""


class Upkeep:
    """The work on one store."""

    def __init__(self, store: Store, embedder: Embedder | None) -> None:
        self._embedding = Embedding(store, embedder)

    def nudge(self) -> None:
        """Say that there is something new. It is worked on in a moment, without anybody waiting for it."""
        self._embedding.nudge()

    async def run(self, progress: Progress | None = None) -> UpkeepReport:
        """Do all that is due, to the end."""
        embedded = await self._embedding.run(progress)
        return UpkeepReport(embedded.done, embedded.error)

    def health(self) -> tuple[Component, ...]:
        """Say how each part is doing."""
        return (self._embedding.health(),)

    async def close(self) -> None:
        """Stop. What is not done yet is done by whoever opens the store next."""
        await self._embedding.close()
