"""Questions about summaries, memories and facts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from aforesaid.domain.checks import Timely
from aforesaid.domain.memory import Derived, Facts, MemoryRecord, MemoryVersion, Tombstone, Unextracted
from aforesaid.domain.message import Message
from aforesaid.domain.report import MemoryCount
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary
from aforesaid.store.questions.base import OfScope, OfScopeShort, OfSpace, Question


@dataclass(frozen=True, slots=True)
class SummaryById(OfScopeShort[Summary]):
    """One of the user's summaries, in whatever state. Raises NotFound."""

    summary: int


@dataclass(frozen=True, slots=True)
class Summaries(OfScopeShort[list[Summary]]):
    """The user's summaries, highest level first, oldest first within a level; `active=None` for every state.

    With `here`, only those of the scope's thread.
    """

    active: bool | None = True
    kind: str | None = None
    day: date | None = None
    here: bool = False


@dataclass(frozen=True, slots=True)
class CoveredMessages(OfScope[list[Message]]):
    """The messages below a summary of any level, by when they were said."""

    needs_store = True
    summary: int


@dataclass(frozen=True, slots=True)
class SummariesAbove(OfScope[list[Summary]]):
    """The summaries, at every level and of every kind, that one of the user's messages lies below."""

    needs_store = True
    seq: int


@dataclass(frozen=True, slots=True)
class SummariesWithoutModel(Question[list[Summary]]):
    """Active summaries of a kind and prompt, of all spaces, that no model and no person wrote, by id."""

    needs_store = True
    kind: str
    prompt: str
    after: int
    limit: int


@dataclass(frozen=True, slots=True)
class Memories(OfScopeShort[list[MemoryRecord]]):
    """The user's memories, most important first, newest first among equals."""

    active: bool | None = True
    messages: tuple[int, int] | None = None
    """If given, only memories that rest on a message from the first sequence number to the last one."""


@dataclass(frozen=True, slots=True)
class MemoryById(OfScopeShort[MemoryRecord]):
    """One of the user's memories, in whatever state. Raises NotFound."""

    memory: int


@dataclass(frozen=True, slots=True)
class MemoryVersions(OfScope[list[MemoryVersion]]):
    """What a memory was before each of its changes, oldest first."""

    memory: int


@dataclass(frozen=True, slots=True)
class MemoriesOfSpace(OfSpace[list[MemoryRecord]]):
    """The newest `limit` memories of a space with an id below `before`, newest first: of all users, or one."""

    needs_store = True
    user: str | None = None
    active: bool | None = None
    category: str | None = None
    kind: str | None = None
    state: str | None = None
    """The stored state: a memory that is over can still be stored as active."""
    before: int | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class MemoryCounts(OfSpace[list[MemoryCount]]):
    """How many memories of a space there are, in every state: of all users, or one. Counted where they are stored."""

    needs_store = True
    user: str | None = None


@dataclass(frozen=True, slots=True)
class DueMemories(Question[list[MemoryRecord]]):
    """Active memories, of all spaces, whose time has come at a moment, oldest first."""

    needs_store = True
    what: Timely
    before: datetime
    limit: int


@dataclass(frozen=True, slots=True)
class NewestFacts(OfScopeShort[Facts | None]):
    """The newest version of the user's facts."""


@dataclass(frozen=True, slots=True)
class FactsVersions(OfScopeShort[list[Facts]]):
    """All versions of the user's facts, oldest first."""


@dataclass(frozen=True, slots=True)
class Tombstones(OfScopeShort[list[Tombstone]]):
    """What the user asked to forget, oldest first."""


@dataclass(frozen=True, slots=True)
class DerivedText(OfScopeShort[Derived | None]):
    """What upkeep derived for the user and stored."""

    kind: str


@dataclass(frozen=True, slots=True)
class UnextractedUsers(Question[list[Unextracted]]):
    """Users, of all spaces, with messages that nothing was extracted from; after a user. Reads no messages."""

    needs_store = True
    limit: int
    after: Scope | None = None
