"""What there is to summarise: how far the log was walked along, and what was found on the way."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from aforesaid.domain.scope import Scope, direct_thread
from aforesaid.domain.words import Role


class Passed(NamedTuple):
    """A message, as far as it matters to somebody who walks past it."""

    seq: int
    space: str
    user: str
    thread: str
    role: Role
    at: int
    characters: int


class Ahead(NamedTuple):
    """What lies ahead of somebody who has walked up to `after`."""

    after: int
    passed: tuple[Passed, ...]


class Subject(NamedTuple):
    """What an entry of the agenda is about. A name is empty where it plays no part."""

    policy: str
    space: str
    user: str = ""
    thread: str = ""
    day: str = ""

    @property
    def scope(self) -> Scope:
        """The user whom it is about, in the thread that it is about or else in their direct chat."""
        return Scope(self.space, self.user, self.thread or direct_thread(self.user))

    @property
    def date(self) -> date:
        """The day that it is about."""
        return date.fromisoformat(self.day)


class Touch(NamedTuple):
    """What new messages mean for a subject."""

    subject: Subject
    messages: int
    characters: int
    last_seq: int
    due_at: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What is to be looked at, and when."""

    subject: Subject
    messages: int
    """All that were walked past."""
    characters: int
    waiting: int
    """The messages since it was last looked at."""
    last_seq: int
    due_at: int | None
    done_at: int | None = None
    """When it was last done, and with which message as the last."""
    done_seq: int = 0
    failures: int = 0
    """How often in a row it failed."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Backlog:
    """How much is still to do."""

    entries: int
    messages: int
    failing: int
    error: str | None
    """Why the one that failed last did."""
