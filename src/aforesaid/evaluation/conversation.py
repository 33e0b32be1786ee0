"""The values of an evaluation: conversations, the questions about them, and where the answers are."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from aforesaid.domain.words import Role

PAUSE: Final = timedelta(seconds=10)
"""Data sets date a session, not its turns. Turns follow one another after this pause, so that their order is a time."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Something that was said. Its id is unique in the conversation."""

    id: str
    session: str
    role: Role
    speaker: str | None
    """Who said it, where several people talk. None: the user or the assistant themselves."""
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a conversation, and the turns and sessions that answer it."""

    text: str
    category: str
    asked_at: datetime
    turns: tuple[str, ...]
    """In the order of the conversation. Empty where only sessions are labelled."""
    sessions: tuple[str, ...]
    apart: bool = False
    """Measured, and not part of the headline figures."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One user's memory: everything said, in the order in which it was said, and what is asked about it."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Count:
    """How many of something there were."""

    what: str
    number: int


@dataclass(slots=True)
class Tallies:
    """What a loader left out or mended on its way through the files of a data set."""

    left_out: Counter[str] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Dataset:
    """Labelled conversations of one format that lie together."""

    format: str
    path: Path
    conversations: tuple[Conversation, ...]
    left_out: tuple[Count, ...] = ()
    mended: tuple[Count, ...] = ()


def counts(tally: Counter[str]) -> tuple[Count, ...]:
    """Return what was counted, in the order of its name."""
    return tuple(Count(what, number) for what, number in sorted(tally.items()) if number)
