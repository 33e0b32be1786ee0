"""Questions that only rules ask, inside the transaction of their change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from aforesaid.domain.agenda import Entry, Subject
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.report import AuditEntry
from aforesaid.domain.summary import Summary
from aforesaid.store.questions import OfScope, OfSpace, Question


class Coverage(NamedTuple):
    """The messages that a summary covers: how many, the first and the last, and the times of the first and last."""

    messages: int
    first: int
    last: int
    began_at: int
    ended_at: int


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
class ChunkSize(OfScope[tuple[int, int]]):
    """How many messages an archive of the user still has, and how many of them are the user's own."""

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
class PlannedEntries(Question[list[Entry]]):
    """The agenda's entries for these subjects, in any order. Those without one are missing."""

    subjects: Sequence[Subject]
