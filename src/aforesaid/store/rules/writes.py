"""What a rule can do: writes, lookups, and how it is driven."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from aforesaid.domain.change import Discardable
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.memory import Derived, Facts, MemoryRecord, MemoryVersion
from aforesaid.domain.report import AuditEntry, Setting
from aforesaid.domain.scope import Entry, Scope, Subject
from aforesaid.domain.summary import Summary
from aforesaid.domain.transfer import SessionRow, VectorOf
from aforesaid.store.questions import OfScope, OfSpace, Question


class Coverage(NamedTuple):
    """The rows of the log that a summary covers: how many, the first and the last, and the times of first and last."""

    rows: int
    first: int
    last: int
    began_at: int
    ended_at: int
    messages: int
    """How many of the rows are the newest version of a message that was not taken back."""


@dataclass(frozen=True, slots=True)
class IsUser(OfScope[bool]):
    """Whether the user owns something."""


@dataclass(frozen=True, slots=True)
class LastChunk(OfScope[int]):
    """The number of the user's newest archive; 0 where there is none."""


@dataclass(frozen=True, slots=True)
class Extracted(OfScope[int]):
    """The last of the user's messages that memories were extracted from; 0 for none."""


@dataclass(frozen=True, slots=True)
class NewestMemory(OfScope[int]):
    """The id of the user's newest memory, in whatever state; 0 where there is none."""


@dataclass(frozen=True, slots=True)
class MessagesUpTo(OfScope[int]):
    """How many messages the user has up to a number."""

    seq: int


@dataclass(frozen=True, slots=True)
class MessagesCovered(OfScope[Coverage | None]):
    """The user's messages from one number to another that were said from `since` to before `until`; None for none.

    With `here`, only those in the scope's thread.
    """

    first: int
    last: int
    since: int
    until: int
    here: bool


@dataclass(frozen=True, slots=True)
class IsChangedSince(OfScope[bool]):
    """Whether one of the user's messages from one number to another was edited or taken back after a moment."""

    first: int
    last: int
    since: int


@dataclass(frozen=True, slots=True)
class ChunkMessages(OfScope[list[tuple[int, str]]]):
    """The number and the role of each message that an archive of the user still has."""

    chunk: int


@dataclass(frozen=True, slots=True)
class SummariesByNumber(OfScope[list[Summary]]):
    """Those of the summaries that are the user's, by number."""

    numbers: Sequence[int]


@dataclass(frozen=True, slots=True)
class SummariesMadeFrom(OfSpace[list[Summary]]):
    """Summaries that were made from any of these and were not rolled back, by number."""

    numbers: Sequence[int]


@dataclass(frozen=True, slots=True)
class SimilarSummaries(Question[list[Summary]]):
    """Summaries of the same owner, thread, kind, level, messages, prompt, day and version as this one, by number."""

    summary: Summary

    @property
    def within_space(self) -> str:
        """The summary's space."""
        return self.summary.space


@dataclass(frozen=True, slots=True)
class MemoryFirstStated(OfScope[MemoryRecord | None]):
    """The user's memory that was stored at a moment (microseconds) with a text, whatever it says now."""

    created_at: int
    text: str


@dataclass(frozen=True, slots=True)
class AuditIsKnown(Question[bool]):
    """Whether a row of the audit log is there, under whatever number."""

    entry: AuditEntry

    @property
    def within_space(self) -> str:
        """The entry's space."""
        return self.entry.space


@dataclass(frozen=True, slots=True)
class Progress(OfSpace[int]):
    """The last message of a space that a policy has processed; 0 for none."""

    policy: str


@dataclass(frozen=True, slots=True)
class MessagesPassed(OfSpace[int]):
    """How many messages there are after one number, up to another; of the space, where each has its own numbers."""

    after: int
    up_to: int


@dataclass(frozen=True, slots=True)
class PlannedEntries(Question[list[Entry]]):
    """The agenda's entries for these subjects, in any order. Those without one are missing."""

    subjects: Sequence[Subject]


# --- Purging ----------------------------------------------------------------------------------------------------------


class MessageToPurge(NamedTuple):
    """A message that is deleted: whose it is, when it was said (microseconds), its archive and its length."""

    seq: int
    user: str
    thread: str
    at: int
    chunk: int | None
    characters: int


class MemoryToPurge(NamedTuple):
    """A memory that is deleted, and whose it is."""

    id: int
    user: str


@dataclass(frozen=True, slots=True)
class WasPurged(OfScope[bool]):
    """Whether the audit log says that the user was purged."""


@dataclass(frozen=True, slots=True)
class MessagesToPurge(OfScope[list[MessageToPurge]]):
    """The messages of the user, and those that the user said in another's memory (`transfer.purged_by`)."""


@dataclass(frozen=True, slots=True)
class MemoriesToPurge(OfScope[list[MemoryToPurge]]):
    """Memories of the user, those that the user stated in any version, and those with one of the messages as source."""

    seqs: Sequence[int]


@dataclass(frozen=True, slots=True)
class MemoriesFrom(OfSpace[list[MemoryToPurge]]):
    """Memories with one of the messages as source, whoever has them."""

    seqs: Sequence[int]


@dataclass(frozen=True, slots=True)
class SourcesOf(OfSpace[list[MessageToPurge]]):
    """The messages that are sources of memories, by the numbers of the memories."""

    memories: Sequence[int]


@dataclass(frozen=True, slots=True)
class TakenBackBefore(OfSpace[list[MessageToPurge]]):
    """The earlier versions of those of the messages that are tombstones, without those that are named themselves.

    They are deleted with the tombstone: without it they would be shown again.
    """

    seqs: Sequence[int]


@dataclass(frozen=True, slots=True)
class SummariesOfUsers(OfSpace[list[Summary]]):
    """All summaries of users, and all summaries of these days, whoever has them."""

    users: Sequence[str]
    days: Sequence[date]


@dataclass(frozen=True, slots=True)
class RelatedSummaries(OfSpace[list[Summary]]):
    """Summaries that were made from one of these, or are the version before or after one of these."""

    numbers: Sequence[int]


@dataclass(frozen=True, slots=True)
class EntriesOfUsers(OfSpace[list[Entry]]):
    """The agenda's entries of users, in any order."""

    users: Sequence[str]


# --- Deleting by age --------------------------------------------------------------------------------------------------

OldTable: TypeAlias = Literal["archives", "summaries", "memories", "facts", "memory_versions"]


class OldRow(NamedTuple):
    """A row that is old enough."""

    space: str
    user: str
    number: int
    """Of the archive, message, summary or memory, or of the version of facts."""
    revision: int = 0
    """Of a memory, for one of its earlier versions."""


@dataclass(frozen=True, slots=True)
class OldRows(Question[list[OldRow]]):
    """At most `limit` rows that can be deleted (`domain.retention.Discardable`) and are older than a moment.

    Archives come with the oldest first. `space` is for stores that write to one space at a time.
    """

    table: OldTable
    before: int
    limit: int
    space: str | None = None

    @property
    def within_space(self) -> str | None:
        """The space, if there is one."""
        return self.space


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


S = TypeVar("S")
T = TypeVar("T")

Operation: TypeAlias = Question[Any] | Write[Any]
Rule: TypeAlias = Generator[Operation, Any, T]


def ask(operation: Question[T] | Write[T]) -> Rule[T]:
    """Have an operation performed, and return its result."""
    result: T = yield operation
    return result


def run(rule: Generator[S, Any, T], perform: Callable[[S], Any]) -> T:
    """Carry out a rule where operations are performed at once."""
    try:
        operation = next(rule)
        while True:
            operation = rule.send(perform(operation))
    except StopIteration as end:
        result: T = end.value
        return result


async def run_waiting(rule: Generator[S, Any, T], perform: Callable[[S], Awaitable[Any]]) -> T:
    """Carry out a rule where operations are waited for."""
    try:
        operation = next(rule)
        while True:
            operation = rule.send(await perform(operation))
    except StopIteration as end:
        result: T = end.value
        return result
