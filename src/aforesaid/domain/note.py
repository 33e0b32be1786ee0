"""Notes: the summaries and memories that a search can find."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

NoteKind: TypeAlias = Literal["summary", "memory"]


class NoteKey(NamedTuple):
    """The kind and id of a note."""

    kind: NoteKind
    id: int


class UnembeddedNote(NamedTuple):
    """A note that is not embedded yet."""

    key: NoteKey
    text: str
    space: str = ""
    """Its space, in stores that number each space separately."""


class NoteVector(NamedTuple):
    """The vector of a note, as half-precision floats."""

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
    """The query's words that occur in it."""
    coverage: float
    """The weighted share of query terms that it contains, 0 to 1."""
    similarity: float | None
    """Cosine similarity to the query; None if it is not embedded yet."""
