"""Questions that only rules ask, inside the transaction of their change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal, NamedTuple, TypeAlias

from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.report import AuditEntry
from aforesaid.domain.scope import Entry, Subject
from aforesaid.domain.summary import Summary
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
