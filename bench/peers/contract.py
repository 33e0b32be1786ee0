"""What every memory that is measured is asked to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from peers.vectors import Vectors

BUDGET = 8_000
"""Tokens of a context, for those that build one."""
RECENT = 50
"""Messages that are read where there is nothing to build a context with but the newest."""


@dataclass(frozen=True)
class About:
    """A memory, and what it does not do. None means that it does it; otherwise it is said why not."""

    key: str
    name: str
    package: str
    """As it is called in the package index."""
    imports: str
    """The line that a program needs."""
    how: str
    """How it is set up here."""
    no_run: str | None = None
    no_disk: str | None = None
    no_search: str | None = None
    no_context: str | None = None
    one_by_one: bool = False
    """Whether messages keep their ids only when they are added one by one."""
    context: str = ""
    """What its context is made of."""


class Said(NamedTuple):
    """A message. Only some have a place for when it was said, by whom, and in which session."""

    id: str
    role: str
    text: str
    at: datetime | None = None
    speaker: str | None = None
    session: str | None = None


class Peer(Protocol):
    """One memory of one person, in a folder. Whatever it cannot do is never called."""

    about: About

    async def open(self, folder: Path, vectors: Vectors) -> None:
        """Begin, or go on with what the folder holds."""

    async def add(self, said: Said) -> None:
        """Store one message."""

    async def add_many(self, said: Sequence[Said]) -> None:
        """Store many, the fastest way that its public interface has."""

    async def settle(self) -> None:
        """Return when everything can be found."""

    async def search(self, question: str, limit: int, at: datetime | None = None) -> list[str]:
        """Return the ids of the best. The question is asked at some time, for those who care."""

    async def context(self, question: str) -> int:
        """Build what a model would be given; return how many messages or hits are in it."""

    async def close(self) -> None:
        """Let go of the files."""
