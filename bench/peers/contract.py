"""The interface that every measured library is adapted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from peers.vectors import Vectors

BUDGET = 8_000
"""Token budget of a context, for libraries that build one."""
RECENT = 50
"""Number of newest messages read by libraries that cannot build a context."""


@dataclass(frozen=True)
class About:
    """A library and its missing features. A feature is None if it exists, else the reason why it does not."""

    key: str
    name: str
    package: str
    """The name of the distribution; "" if Python itself has it."""
    imports: str
    """The import statement."""
    how: str
    """The configuration used here."""
    no_run: str | None = None
    no_disk: str | None = None
    no_search: str | None = None
    no_context: str | None = None
    one_by_one: bool = False
    """Whether message ids are kept only by single adds."""
    context: str = ""
    """The contents of its context."""
    memory: bool = True
    """Whether it is a memory for conversations, not a library for search on which one can be built."""
    version: str | None = None
    """The version of what has no distribution."""


class Said(NamedTuple):
    """A message. Only some libraries store its time, speaker and session."""

    id: str
    role: str
    text: str
    at: datetime | None = None
    speaker: str | None = None
    session: str | None = None


class Peer(Protocol):
    """A memory of one user in a folder. Missing features are never called."""

    about: About

    async def open(self, folder: Path, vectors: Vectors) -> None:
        """Open the memory in the folder, or create it."""

    async def add(self, said: Said) -> None:
        """Store one message."""

    async def add_many(self, said: Sequence[Said]) -> None:
        """Store many messages by the fastest public method."""

    async def settle(self) -> None:
        """Wait until every message can be found."""

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:
        """Return the ids of the best hits. Some libraries use the time of the question."""

    async def context(self, question: str) -> int:
        """Build a context; return its number of messages or hits."""

    async def close(self) -> None:
        """Close the files."""


class SearchOnly:
    """The part shared by libraries that find messages at once and build no context."""

    async def settle(self) -> None:
        """Do nothing: added messages can be found at once."""

    async def context(self, question: str) -> int:
        """Not supported."""
        raise NotImplementedError(question)
