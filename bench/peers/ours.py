"""Aforesaid with its defaults, but without summaries and extraction, which the others do not do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, cast

from peers.contract import BUDGET, About, Said
from peers.vectors import Vectors, really

import aforesaid
from aforesaid import NewMessage

if TYPE_CHECKING:
    from aforesaid.domain.checks import Role
    from aforesaid.models.embed import Vectors as Floats

PROFILE = {"summaries": "none", "extract": False}


class Given:
    """An embedder that looks up precomputed vectors."""

    name = "given"

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors

    async def embed(self, texts: Sequence[str]) -> Floats:
        """Return one row for each text."""
        return self._vectors.array(texts)

    async def close(self) -> None:
        """Do nothing."""


class Aforesaid:
    """The async API."""

    about = About(
        "aforesaid",
        "Aforesaid",
        "aforesaid",
        "import aforesaid; aforesaid.connect",
        "SQLite; search by words and meaning; summaries and learning, which the others do not do, are switched off",
        context="newest messages and what fits the question, within a budget of tokens",
    )

    async def open(self, folder: Path, vectors: Vectors) -> None:
        """Open the file."""
        # Where the vectors are those of its own encoder, it is used as it comes: its ranker reads the encoder's tokens.
        embedder = "local" if vectors.otherwise is really else Given(vectors)
        self._memory = await aforesaid.connect(folder / "memory.db", profile=PROFILE, embedder=embedder)
        self._ann = self._memory.user("ann")

    async def add(self, said: Said) -> None:
        """Store one message."""
        role = cast("Role", said.role)
        ann = self._in_session(said.session)
        await ann.add(role, said.text, at=said.at, id=said.id, author=said.speaker, name=said.speaker)

    async def add_many(self, said: Sequence[Said]) -> None:
        """Store the messages of each session with one call."""
        for session, some in groupby(said, attrgetter("session")):
            await self._in_session(session).add_many(
                NewMessage(cast("Role", each.role), each.text, each.at, each.id, each.speaker, each.speaker)
                for each in some
            )

    def _in_session(self, session: str | None) -> aforesaid.UserMemory:
        return self._ann if session is None else self._memory.user("ann", session=session)

    async def settle(self) -> None:
        """Wait until every vector is stored."""
        await self._memory.upkeep()

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:
        """Search messages by words and meaning, with the default minimum score."""
        return [hit.id for hit in await self._ann.search(question, limit, at=at, kinds=("message",))]

    async def context(self, question: str) -> int:
        """Build a context."""
        made = await self._ann.context(question, budget=BUDGET)
        return sum(section.items for section in made.sections)

    async def close(self) -> None:
        """Close the file."""
        await self._memory.close()
