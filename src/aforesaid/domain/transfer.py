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
from aforesaid.errors import SourcesChanged


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


class Restore(NamedTuple):
    """Store a row of a dump as it is. What is there already stays, so that twice is as good as once.

    A message, a summary, a memory keeps its number if that is beyond all that were given out here, and gets the next
    one otherwise; the result says which. All that the row refers to must be named by its number in this store.

    - A message is stored as active, in the session that it names; a session named after the message itself is named
      after the number that it gets. Its archive comes with the summary of it. A new version replaces the version that
      it names; where that one is not here, it is a message like any other.
    - A summary of messages or of summaries that are not free any more (archived here by another) is kept as rolled
      back. Of two that would be the newest of their kind, the one that was here stays it.
    - A memory that is here in an earlier revision is brought to the later one.
    - Facts are merged by their times; of two values of a setting the later one counts, of two counts of tokens the
      larger one.

    With `number`, the row must have or get that number; otherwise SourcesChanged is raised.
    """

    row: Row
    number: int | None = None


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


def as_expected(change: Restore, result: Restored) -> Restored:
    """Return the result. Raises SourcesChanged if it has a different number than the change expects."""
    if change.number is not None and change.number != result.number:
        raise SourcesChanged(f"a row was expected to get the number {change.number}, and has {result.number} here")
    return result


def purged_by(user: str, owner: str, author: str, role: str) -> bool:
    """Return whether a message goes when a user is erased: it is theirs, or in another's memory and said by them.

    The assistant's words have the author `assistant`; a user of that name must not take all of them along.
    """
    return owner == user or (author == user and author != role)
