"""The agenda of pending summaries: the progress through the log, and the entries found so far."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from aforesaid.domain.literals import Role
from aforesaid.domain.scope import Scope, direct_thread


class Passed(NamedTuple):
    """The fields of a message that the summary policies need."""

    seq: int
    space: str
    user: str
    thread: str
    role: Role
    at: int
    characters: int


class Ahead(NamedTuple):
    """The unprocessed messages after the position `after`."""

    after: int
    passed: tuple[Passed, ...]


class Subject(NamedTuple):
    """The subject of an agenda entry: a user, thread or day. Unused fields are empty."""

    policy: str
    space: str
    user: str = ""
    thread: str = ""
    day: str = ""

    @property
    def scope(self) -> Scope:
        """The scope of the subject: its user, in its thread or else in the user's direct chat."""
        return Scope(self.space, self.user, self.thread or direct_thread(self.user))

    @property
    def date(self) -> date:
        """The day of the subject."""
        return date.fromisoformat(self.day)


class Touch(NamedTuple):
    """The effect of new messages on a subject."""

    subject: Subject
    messages: int
    characters: int
    last_seq: int
    due_at: int


@dataclass(frozen=True, slots=True)
class Entry:
    """An agenda entry: a subject that is due for a check, and when."""

    subject: Subject
    messages: int
    """Number of messages processed."""
    characters: int
    waiting: int
    """Number of messages since the last check."""
    last_seq: int
    due_at: int | None
    done_at: int | None = None
    """When it was last summarised, and up to which message."""
    done_seq: int = 0
    failures: int = 0
    """Number of consecutive failures."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Backlog:
    """The amount of pending work."""

    entries: int
    messages: int
    failing: int
    error: str | None
    """The last error."""
