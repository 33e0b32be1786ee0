"""Notes: summaries and memories, as far as a search is concerned with them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

NoteKind: TypeAlias = Literal["summary", "memory"]


class NoteKey(NamedTuple):
    """Which note."""

    kind: NoteKind
    id: int


class UnembeddedNote(NamedTuple):
    """A note that an embedder has not seen yet."""

    key: NoteKey
    text: str
    space: str = ""
    """Its space, where each space is numbered for itself."""


class NoteVector(NamedTuple):
    """The vector of a note: half-precision numbers in a row."""

    key: NoteKey
    value: bytes
    space: str = ""
    """The space of the note, as it came with it."""


@dataclass(frozen=True, slots=True)
class NoteMatch:
    """A note that a search found."""

    key: NoteKey
    text: str
    at: datetime
    sources: tuple[str, ...]
    """The ids of the messages that it rests on, oldest first; not more than `MOST_SOURCES`."""
    words: tuple[str, ...]
    """The words of the query that it has."""
    coverage: float
    """Which part of what the words of the query are worth it has, 0 to 1."""
    similarity: float | None
    """Its cosine with the vector that was asked for; None where it has no vector yet."""
