"""What moves from one store to another, and what is left when somebody is erased.

A dump is a stream of rows: first the messages in the order of the log, then all that refers to them. Numbers in a row
(of messages, summaries, memories, archives) are those of the store that it came from; whoever restores it puts the new
numbers in their place. Some rows are values of the domain as they are: `Message`, `Facts`, `AuditEntry`,
`ContextReceipt`.

What can be worked out again is no part of a dump: keyword indexes, the agenda, portraits, vectors unless asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple, TypeAlias

from aforesaid.domain.checks import counted, microseconds
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.memory import Facts, MemoryRecord, MemoryVersion
from aforesaid.domain.message import Draft, Message, sequence_number
from aforesaid.domain.report import AuditEntry, Setting
from aforesaid.domain.scope import Scope, Session
from aforesaid.domain.summary import Summary


class SessionRow(NamedTuple):
    """A session. Its times and counts are computed from its messages; this row has the rest."""

    session: Session
    automatic: bool
    """Whether the session was detected automatically."""


class SummaryRow(NamedTuple):
    """A summary, and the messages of its archive where it has one of its own (level 1, not rolled back)."""

    summary: Summary
    messages: tuple[int, ...] = ()


class MemoryRow(NamedTuple):
    """A memory with its earlier versions, oldest first."""

    memory: MemoryRecord
    versions: tuple[MemoryVersion, ...] = ()

    @property
    def first_text(self) -> str:
        """The text of the first version. With its creation time, it identifies the memory."""
        return self.versions[0].before.text if self.versions else self.memory.text


class SuccessorRow(NamedTuple):
    """Which memory superseded another, sent once both are stored. Never part of a dump."""

    space: str
    memory: int
    revision: int | None
    """Of the memory as it was at this revision; None: as it is."""
    by: int


class ForgottenRow(NamedTuple):
    """A user's request to forget."""

    space: str
    user: str
    words: str
    up_to: int


class SettingRow(NamedTuple):
    """A setting of a user."""

    space: str
    user: str
    setting: Setting


class UserRow(NamedTuple):
    """A user, and the progress of memory extraction."""

    space: str
    user: str
    created_at: datetime
    last_chunk: int
    extracted: int
    """The last message that memories were extracted from; 0 for none."""
    looked_through: int
    """Number of their messages up to it."""


class DayRow(NamedTuple):
    """A day of a space that was summarised, with the last message that was known then."""

    policy: str
    space: str
    day: str
    done_at: int
    done_seq: int


class SpendingRow(NamedTuple):
    """Tokens of a day: of a user, or (with empty names) of all together."""

    day: date
    space: str
    user: str
    tokens: int


class VectorOf(NamedTuple):
    """The vector of a message."""

    embedder: str
    space: str
    seq: int
    value: bytes


Row: TypeAlias = (
    Message
    | SessionRow
    | SummaryRow
    | MemoryRow
    | SuccessorRow
    | Facts
    | ForgottenRow
    | SettingRow
    | UserRow
    | DayRow
    | SpendingRow
    | ContextReceipt
    | AuditEntry
    | VectorOf
)


class Restored(NamedTuple):
    """The result for a row: its number in this store (0 for kinds without numbers), and whether it is new."""

    number: int
    fresh: bool


@dataclass(frozen=True, slots=True)
class Purged:
    """How much a purge deleted: a user's own data, and other users' summaries and memories made from it."""

    messages: int
    summaries: int
    memories: int
    of_others: int = 0
    """Number of these summaries and memories that were other users'. Their summaries are made again."""

    @property
    def counts(self) -> str:
        """The counts as the audit log shows them: `1 message, 2 summaries, 0 memories`."""
        counts = {"message": self.messages, "summary": self.summaries, "memory": self.memories}
        return ", ".join(counted(number, noun) for noun, number in counts.items())


def draft_of(message: Message) -> Draft:
    """Return the draft of a stored message, as far as the message contains it."""
    return Draft(
        Scope(message.space, message.user, message.thread),
        message.role,
        message.text,
        message.author,
        message.name,
        microseconds(message.at, "at"),
        True,
        microseconds(message.stored_at, "stored_at"),
        None if sequence_number(message.id) == message.seq else message.id,
        message.replaces,
        message.details,
    )


def purged_by(user: str, owner: str, author: str, role: str) -> bool:
    """Return whether a message goes when a user is erased: it is theirs, or in another's memory and said by them.

    The assistant's words have the author `assistant`; a user of that name must not take all of them along.
    """
    return owner == user or (author == user and author != role)
