"""The data of an evaluation: conversations, questions about them, and the turns with the answers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from aforesaid.domain.checks import Role

PAUSE: Final = timedelta(seconds=10)
"""The time between two turns of a session. Data sets date sessions only, and stored messages need a time."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation. Its id is unique in the conversation."""

    id: str
    session: str
    role: Role
    speaker: str | None
    """The speaker's name, in conversations of several people. None: the user or the assistant."""
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a conversation, and the turns and sessions that answer it."""

    text: str
    category: str
    asked_at: datetime
    turns: tuple[str, ...]
    """Ids of the turns with the answer, in conversation order. Empty if only sessions are labelled."""
    sessions: tuple[str, ...]
    apart: bool = False
    """Whether the question is reported separately and left out of the headline figures."""
    answer: str = ""
    """The expected answer in the words of the data set. Empty if the data set has none."""
    never_said: bool = False
    """Whether the conversation does not contain the answer: the right reply is to say so."""

    @property
    def has_evidence(self) -> bool:
        """Whether turns or sessions are labelled."""
        return bool(self.turns or self.sessions)


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of one user's memory in order, and the questions about them."""

    id: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]
    """Questions with labelled turns or sessions."""
    unanswerable: tuple[Question, ...] = ()
    """Questions about what was never said. They have no evidence, so recall does not count them."""
    unlabelled: tuple[Question, ...] = ()
    """Questions with an answer, but without labelled evidence. Only their answers can be judged."""
    language: str = ""
    """The code of the language, such as `en`. Empty if the data set does not say."""
    kind: str = ""
    """The kind of chat, such as `group`. Empty if the data set does not say."""


@dataclass(frozen=True, slots=True)
class Count:
    """A named count."""

    what: str
    number: int


@dataclass(slots=True)
class Tallies:
    """Counts of what a loader skipped or repaired in the files of a data set."""

    left_out: Counter[str] = field(default_factory=Counter)
    mended: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Dataset:
    """The labelled conversations of one data set."""

    format: str
    path: Path
    conversations: tuple[Conversation, ...]
    left_out: tuple[Count, ...] = ()
    mended: tuple[Count, ...] = ()


def counts(tally: Counter[str]) -> tuple[Count, ...]:
    """Return the counts, sorted by name."""
    return tuple(Count(what, number) for what, number in sorted(tally.items()) if number)
