"""What a rule can write: rows of the store's tables, as values of the domain.

A write checks nothing; that is done by the rule that yields it. Each kind of store has a table of functions, one for
each class here (`WRITES`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Generic, TypeVar

from aforesaid.domain.change import Discardable
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.memory import Derived, Facts, MemoryRecord, MemoryVersion
from aforesaid.domain.report import Setting
from aforesaid.domain.scope import Entry, Scope
from aforesaid.domain.summary import Summary
from aforesaid.domain.transfer import SessionRow, VectorOf
from aforesaid.store.rules.lookups import OldRow

Answer = TypeVar("Answer", covariant=True)  # noqa: PLC0105 - as in questions


class Write(Generic[Answer]):
    """A write, with the type of its result."""

    __slots__ = ()


# --- Users ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeepUser(Write[None]):
    """The user owns something from now on. A new one was created at a moment (microseconds)."""

    scope: Scope
    at: int


@dataclass(frozen=True, slots=True)
class MergeUser(Write[None]):
    """Bring a user's counts together with those of the same user elsewhere: the earlier creation, the later rest."""

    scope: Scope
    created_at: int
    last_chunk: int
    extracted: int


@dataclass(frozen=True, slots=True)
class RecordAudit(Write[None]):
    """Add a row to the audit log, at a moment (microseconds) or now."""

    scope: Scope
    actor: str
    action: str
    subject: str
    at: int | None = None


@dataclass(frozen=True, slots=True)
class SetExtracted(Write[None]):
    """Memories were extracted from the user's messages up to a number."""

    scope: Scope
    up_to: int


# --- Messages and sessions --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetLastChunk(Write[None]):
    """Set the number of the user's newest archive."""

    scope: Scope
    chunk: int


@dataclass(frozen=True, slots=True)
class ArchiveMessages(Write[None]):
    """Archive messages of the user under a chunk number. `turns` of them are the user's own."""

    scope: Scope
    seqs: Sequence[int]
    chunk: int
    turns: int


@dataclass(frozen=True, slots=True)
class ReleaseMessages(Write[None]):
    """Make the messages of one of the user's archives active again. `turns` of them are the user's own."""

    scope: Scope
    chunk: int
    messages: int
    turns: int


@dataclass(frozen=True, slots=True)
class HideMessages(Write[None]):
    """Mark messages of the user as replaced, though there are no newer versions of them."""

    scope: Scope
    seqs: Sequence[int]


@dataclass(frozen=True, slots=True)
class DescribeSession(Write[None]):
    """Set who opened a session, its timeout, and whether it was detected automatically. One that is unknown is not."""

    row: SessionRow


@dataclass(frozen=True, slots=True)
class PutVector(Write[bool]):
    """Store the vector of a message unless it has one. Says whether it was stored."""

    row: VectorOf


# --- Summaries --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddSummary(Write[int]):
    """Store a summary under the next number, which is at least `least`, and return the number. Its id is not used."""

    summary: Summary
    least: int = 0


@dataclass(frozen=True, slots=True)
class SetSummaryState(Write[None]):
    """Store whether a summary is active, replaced and rolled back."""

    summary: Summary


# --- Memories, facts and settings -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddMemoryRow(Write[int]):
    """Store a memory under the next number, which is at least `least`, and return the number. Its id is not used."""

    memory: MemoryRecord
    least: int = 0


@dataclass(frozen=True, slots=True)
class PutMemoryRow(Write[None]):
    """Store all values of a memory but its sources. `before` is the text that it had."""

    memory: MemoryRecord
    before: str


@dataclass(frozen=True, slots=True)
class AddMemoryVersion(Write[None]):
    """Keep an earlier version of a memory, under the id and revision that it has."""

    version: MemoryVersion


@dataclass(frozen=True, slots=True)
class AddMemorySources(Write[None]):
    """Add messages of the user to the sources of a memory until it has `most` of them; others are left out."""

    scope: Scope
    memory: int
    seqs: Sequence[int]
    most: int


@dataclass(frozen=True, slots=True)
class SetSuccessor(Write[None]):
    """Store which memory superseded another, as it is or (with `revision`) as it was."""

    space: str
    memory: int
    revision: int | None
    by: int


@dataclass(frozen=True, slots=True)
class AddFacts(Write[None]):
    """Store a version of a user's facts."""

    facts: Facts


@dataclass(frozen=True, slots=True)
class RenumberFacts(Write[None]):
    """Give a version of a user's facts the next number, which is free."""

    facts: Facts


@dataclass(frozen=True, slots=True)
class AddTombstone(Write[None]):
    """Store a request to forget what was said up to a message; None: up to the user's newest."""

    scope: Scope
    words: str
    up_to: int | None = None


@dataclass(frozen=True, slots=True)
class PutDerivedText(Write[None]):
    """Store what was derived for the user, in the place of what was there of that kind."""

    scope: Scope
    kind: str
    derived: Derived


@dataclass(frozen=True, slots=True)
class PutReceipt(Write[None]):
    """Store the receipt of a context, in the place of one with the same id."""

    receipt: ContextReceipt


@dataclass(frozen=True, slots=True)
class StoreSetting(Write[None]):
    """Store a setting of a user."""

    scope: Scope
    setting: Setting


@dataclass(frozen=True, slots=True)
class RemoveSetting(Write[None]):
    """Remove a setting of a user, if there is one."""

    scope: Scope
    key: str


# --- Deleting ---------------------------------------------------------------------------------------------------------
# Deleted numbers are not used again, and the bytes are overwritten where the store writes files of its own.


@dataclass(frozen=True, slots=True)
class EraseMessages(Write[None]):
    """Delete messages with their vectors. Bring users, sessions, threads, versions and memories to what is left."""

    space: str
    seqs: Sequence[int]


@dataclass(frozen=True, slots=True)
class EraseSummaries(Write[None]):
    """Delete summaries with their vectors, and threads that nothing else is in."""

    space: str
    numbers: Sequence[int]


@dataclass(frozen=True, slots=True)
class EraseMemories(Write[None]):
    """Delete memories with their vectors and earlier versions."""

    space: str
    numbers: Sequence[int]


@dataclass(frozen=True, slots=True)
class EraseUser(Write[None]):
    """Delete what a user without messages, summaries and memories still has, and the name.

    That is facts, settings, tombstones, receipts, token counts, audit and agenda. Sessions that the user opened
    belong to whoever speaks first in them. What was derived for the user and for `others` is deleted too.
    """

    scope: Scope
    others: Sequence[str]


@dataclass(frozen=True, slots=True)
class EraseDerived(Write[None]):
    """Delete what was derived for users."""

    space: str
    users: Sequence[str]


@dataclass(frozen=True, slots=True)
class EraseFacts(Write[None]):
    """Delete versions of facts."""

    space: str
    rows: Sequence[OldRow]


@dataclass(frozen=True, slots=True)
class EraseMemoryVersions(Write[None]):
    """Delete earlier versions of memories."""

    space: str
    rows: Sequence[OldRow]


@dataclass(frozen=True, slots=True)
class EraseOldRows(Write[int]):
    """Delete at most `limit` rows that are older than a moment, and count them.

    `table` is derived texts, audit, token counts or receipts.
    """

    table: Discardable
    before: int
    limit: int
    space: str | None


# --- Upkeep -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SetProgress(Write[None]):
    """A policy has processed the messages of a space up to a number."""

    policy: str
    space: str
    up_to: int


@dataclass(frozen=True, slots=True)
class PutEntries(Write[None]):
    """Store entries of the agenda, in the place of those of the same subjects."""

    entries: Sequence[Entry]


@dataclass(frozen=True, slots=True)
class AddTokens(Write[None]):
    """Count tokens of a user, or (None) of all users together; a store may count those of each space apart."""

    day: date
    space: str
    user: str | None
    tokens: int


@dataclass(frozen=True, slots=True)
class SetMark(Write[None]):
    """Store a small text about the store itself; None removes it."""

    name: str
    value: str | None
