"""The result of an import: what was found, what is new, whose memory it became."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from aforesaid.domain.message import Message
from aforesaid.domain.transfer import MemoryRow, Row
from aforesaid.portability.attachment_copy import attachments_named_by
from aforesaid.portability.import_items import Problem

SHOWN: Final = 100
"""Maximum number of problems and of users listed one by one; the rest are only counted."""


@dataclass(frozen=True, slots=True)
class ImportedUser:
    """A user whose memory an import added to."""

    id: str
    name: str | None
    """The display name, as the file has it last."""
    messages: int
    """Messages in the file that belong to this user, including those that were stored before."""
    memories: int


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of an import."""

    format: str
    found: dict[str, int]
    """Number of entries in the file, by kind."""
    new: dict[str, int]
    """Number of entries that were not stored before, by kind."""
    skipped: dict[str, int]
    """Number of entries skipped on purpose, such as "joined the group" notices, by kind."""
    problems: int
    """Number of entries that could not be imported."""
    examples: tuple[Problem, ...]
    """The first of these problems, each with its position and reason."""
    dry_run: bool
    users: tuple[ImportedUser, ...] = ()
    """The users whose memory the entries became, those with the most messages first: at most 100."""
    user_count: int = 0
    """Number of these users."""
    first_at: datetime | None = None
    """When the oldest of the messages was said; None without messages."""
    last_at: datetime | None = None
    """When the newest of them was said."""
    attachments: int = 0
    """Number of attachments of an export that were not stored before."""
    missing_attachments: tuple[str, ...] = ()
    """Hashes of attachments that messages of an export name, but whose bytes are neither beside it nor in the store."""

    @property
    def ok(self) -> bool:
        """Whether every entry could be read and stored."""
        return self.problems == 0


@dataclass(slots=True)
class ImportReport:
    """Counts the entries of an import."""

    found: Counter[str] = field(default_factory=Counter)
    new: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    attachments: set[str] = field(default_factory=set)
    """Hashes of the attachments that messages of a dump name."""
    _messages: Counter[str] = field(default_factory=Counter)
    _memories: Counter[str] = field(default_factory=Counter)
    _names: dict[str, str] = field(default_factory=dict)
    _first_at: datetime | None = None
    _last_at: datetime | None = None
    _problems: int = 0
    _examples: list[Problem] = field(default_factory=list)

    def message(self, user: str, name: str | None, at: datetime) -> None:
        """Count a message of a user, who has this name in the file, that was said at this time."""
        self.found["message"] += 1
        self._messages[user] += 1
        self._said(at)
        if name is not None:
            self._names[user] = name

    def row(self, kind: str, row: Row) -> None:
        """Count a row of a dump."""
        self.found[kind] += 1
        if isinstance(row, Message):
            self._messages[row.user] += 1
            self._said(row.at)
            self.attachments.update(attachments_named_by([row]))
            if row.author == row.user and row.name is not None:
                self._names[row.user] = row.name
        elif isinstance(row, MemoryRow):
            self._memories[row.memory.user] += 1

    def _said(self, at: datetime) -> None:
        self._first_at = at if self._first_at is None else min(self._first_at, at)
        self._last_at = at if self._last_at is None else max(self._last_at, at)

    def problem(self, problem: Problem) -> None:
        """Count an entry that cannot be imported, and keep it as an example if there are few so far."""
        self._problems += 1
        if len(self._examples) < SHOWN:
            self._examples.append(problem)

    def loaded(self, format_name: str, *, dry_run: bool) -> Loaded:
        """Return the result."""
        users = sorted({*self._messages, *self._memories}, key=lambda user: (-self._messages[user], user))
        return Loaded(
            format_name,
            dict(self.found),
            {kind: count for kind, count in self.new.items() if count},
            dict(self.skipped),
            self._problems,
            tuple(self._examples),
            dry_run,
            tuple(
                ImportedUser(user, self._names.get(user), self._messages[user], self._memories[user])
                for user in users[:SHOWN]
            ),
            len(users),
            self._first_at,
            self._last_at,
        )
