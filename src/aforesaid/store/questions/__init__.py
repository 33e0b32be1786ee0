"""Everything that can be asked of a store.

A question is a value with a result type: `await store.read(questions.Memories(scope))` returns a list of memories. It
also says three things about itself: the space it stays within, whether answering it is short, and whether only the
durable store can answer it.

Isolation. A question that names a scope reaches nothing outside of it: a foreign id is NotFound, like one that does not
exist. Questions without a scope are for those who look after a whole space or the whole store.

Versions. A message can replace an earlier one. `Messages`, `MessageCount`, `Threads`, `SearchText`, `MatchText` and
`SearchVector` know only the newest version. All others return every version, marked by `replaced`: cursors, ledgers and
archives stay right.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from aforesaid.domain.change import Discardable
from aforesaid.domain.checks import Within
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.hit import EVERY_MESSAGE, MessageFilter
from aforesaid.domain.message import Message, Position
from aforesaid.domain.report import Activity, AuditEntry, Ledger, ListedUser, Setting, SpaceTotals, Stats, User
from aforesaid.domain.scope import Ahead, Backlog, Entry, Scope, Session, Subject
from aforesaid.domain.thread import Thread
from aforesaid.store.questions.base import (
    OfScope,
    OfScopeShort,
    OfSpace,
    Question,
)
from aforesaid.store.questions.notes import (
    CoveredMessages,
    DerivedText,
    DueMemories,
    FactsVersions,
    Memories,
    MemoriesOfSpace,
    MemoryById,
    MemoryCounts,
    MemoryVersions,
    NewestFacts,
    Summaries,
    SummariesAbove,
    SummariesWithoutModel,
    SummaryById,
    Tombstones,
    UnextractedUsers,
)
from aforesaid.store.questions.searches import (
    MatchText,
    MessageVectors,
    SearchNotes,
    SearchText,
    SearchVector,
    TokenVectors,
    UnembeddedMessages,
    UnembeddedNotes,
)

__all__ = [
    "CoveredMessages",
    "DerivedText",
    "DueMemories",
    "FactsVersions",
    "MatchText",
    "Memories",
    "MemoriesOfSpace",
    "MemoryById",
    "MemoryCounts",
    "MemoryVersions",
    "MessageVectors",
    "NewestFacts",
    "OfScope",
    "OfScopeShort",
    "OfSpace",
    "Question",
    "SearchNotes",
    "SearchText",
    "SearchVector",
    "Summaries",
    "SummariesAbove",
    "SummariesWithoutModel",
    "SummaryById",
    "TokenVectors",
    "Tombstones",
    "UnembeddedMessages",
    "UnembeddedNotes",
    "UnextractedUsers",
]
"""What other modules here define."""

_SHORT_READ: Final = 500
"""Maximum messages of a read that counts as short."""


@dataclass(frozen=True, slots=True)
class Messages(OfScope[list[Message]]):
    """The newest `limit` messages, by when they were said, oldest first.

    Of a message with several versions, only the newest; with `versions`, all of them.

    With `before`, only those that come before a position, or before the message with that sequence number. A number
    that is none of the scope's messages means: up to the message that was stored last before it, inclusive.

    With `after`, the oldest `limit` messages that come after a position.
    """

    within: Within = "user"
    limit: int = 50
    before: int | Position | None = None
    archived: bool = True
    versions: bool = False
    where: MessageFilter = EVERY_MESSAGE
    after: Position | None = None

    @property
    def short(self) -> bool:
        """Whether few messages are read: with a filter, many may be passed over."""
        return self.limit <= _SHORT_READ and self.where == EVERY_MESSAGE


@dataclass(frozen=True, slots=True)
class MessageCount(OfScope[int]):
    """The number of messages that `Messages` would return without a limit."""

    within: Within = "user"
    archived: bool = True
    where: MessageFilter = EVERY_MESSAGE


@dataclass(frozen=True, slots=True)
class Threads(OfScope[list[Thread]]):
    """The threads that the user has messages in, by their last message, newest first.

    With `before`, only those that come after a thread in that order: after the place that a `Thread` had when it was
    read, or after the thread with an id. Raises NotFound if the user has no messages in the thread with this id.
    """

    limit: int = 50
    before: Thread | str | None = None


@dataclass(frozen=True, slots=True)
class MessageById(OfScopeShort[Message]):
    """One message by its id. Raises NotFound.

    Where several threads use the id, the one in the scope's own thread is returned, otherwise the newest.
    """

    message_id: str
    within: Within = "user"


@dataclass(frozen=True, slots=True)
class MessagesByNumber(OfScopeShort[list[Message]]):
    """Those of the messages that the scope holds, by sequence number."""

    seqs: Sequence[int]
    within: Within = "user"


@dataclass(frozen=True, slots=True)
class VersionsOf(OfScope[list[Message]]):
    """All versions of those of the messages that are the user's, by sequence number. Any version names all of them."""

    seqs: Sequence[int]


@dataclass(frozen=True, slots=True)
class AttachmentHashes(Question[frozenset[str]]):
    """The hashes that the parts of messages name, of all spaces. Reads all messages that have details."""

    needs_store = True


@dataclass(frozen=True, slots=True)
class ResponseOwner(Question[tuple[str, str] | None]):
    """The space and the user of the answer that the proxy stored first under a provider's response id, in any space.

    None if there is none. The first one counts: whoever stores the id later, in metadata of their own, gets nothing.
    """

    needs_store = True
    response: str


@dataclass(frozen=True, slots=True)
class MessagesAfter(OfScope[list[Message]]):
    """The user's first messages with a sequence number above `after`, by sequence number.

    With `here`, only those in the scope's thread.
    """

    after: int
    limit: int
    here: bool = False
    archived: bool = True


@dataclass(frozen=True, slots=True)
class MessagesBetween(OfSpace[list[Message]]):
    """What was said in a space from one moment to before another (microseconds), by when it was said."""

    needs_store = True
    since: int
    until: int


@dataclass(frozen=True, slots=True)
class ActivityPerDay(OfSpace[list[Activity]]):
    """How much was said on each day (of UTC) between two moments on which something was, by all or for one user.

    Counted where it is stored: it takes no more memory for a million messages than for ten.
    """

    needs_store = True
    since: int
    until: int
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Sessions(OfScope[list[Session]]):
    """The sessions that the scope's newest messages are in, oldest first by start."""

    within: Within = "user"
    limit: int = 50


@dataclass(frozen=True, slots=True)
class UserLedger(OfScope[Ledger]):
    """The user's counts. A user nobody has heard of has zeros.

    With `here`, only the user's messages in the scope's thread and the active summaries of that thread are counted;
    open turns are those that no archive and no summary of the thread covers.
    """

    here: bool = False

    @property
    def short(self) -> bool:
        """Whether the counts are stored; those of a thread are counted."""
        return not self.here


@dataclass(frozen=True, slots=True)
class Settings(OfScopeShort[list[Setting]]):
    """The user's settings, by name."""


@dataclass(frozen=True, slots=True)
class AuditRows(OfScope[list[AuditEntry]]):
    """The newest audit rows about the user, oldest first."""

    limit: int = 100


@dataclass(frozen=True, slots=True)
class Receipts(OfScopeShort[list[ContextReceipt]]):
    """Receipts of the user's contexts, newest first: since a moment (microseconds), by id, or by what they led to."""

    limit: int = 100
    since: int | None = None
    before: str | None = None
    """Only receipts with a smaller id, which are older."""
    ids: Sequence[str] | None = None
    replies: Sequence[int] | None = None
    """Sequence numbers of replies."""


@dataclass(frozen=True, slots=True)
class DisplayNames(OfSpace[dict[str, str]]):
    """The display names of a space by user id: of everybody who wrote under one, or of `users` alone.

    The name of the message that was said last counts, whoever owns that message. Authors who own nothing are included,
    the assistant too (under `assistant`). Does not read the log.
    """

    users: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class Users(Question[list[User]]):
    """The users who own something, of one space or of all, by space and id."""

    space: str | None = None


@dataclass(frozen=True, slots=True)
class UsersPage(OfSpace[list[ListedUser]]):
    """The users of a space who own something, last active first: `limit` of them after the first `skip`.

    With `users`, only these; with `id_part`, those too whose id contains it, whatever the case of its ASCII letters.
    The log is read for the names and first times of the returned users alone.
    """

    needs_store = True
    limit: int = 100
    skip: int = 0
    users: Collection[str] | None = None
    id_part: str | None = None


@dataclass(frozen=True, slots=True)
class TotalsOfSpaces(Question[list[SpaceTotals]]):
    """The counts of each space that has users, last active first. Does not read the log."""

    needs_store = True


@dataclass(frozen=True, slots=True)
class IrregularIds(Question[frozenset[str]]):
    """The ids of users, spaces, threads and named sessions that `domain.known_ids.regular` would change."""

    needs_store = True


@dataclass(frozen=True, slots=True)
class Totals(Question[Stats]):
    """Totals of the whole store."""


@dataclass(frozen=True, slots=True)
class Marks(Question[dict[str, str]]):
    """Small texts about the store itself, by name."""

    needs_store = True


@dataclass(frozen=True, slots=True)
class ChangeToken(Question[str]):
    """A text that is another one once any process has changed something. Cheap: no data is read.

    A store that one process has to itself always returns the same: that process knows what it changes.
    """

    needs_store = True


@dataclass(frozen=True, slots=True)
class Unprocessed(Question[Ahead]):
    """The oldest messages, of all spaces, that a policy has not yet seen."""

    needs_store = True
    policy: str
    limit: int


@dataclass(frozen=True, slots=True)
class DueEntries(Question[list[Entry]]):
    """What a policy has to look at by a moment, longest waiting first.

    With `failing` also what failed and is to be tried again later.
    """

    needs_store = True
    policy: str
    due_by: int
    limit: int
    failing: bool = False


@dataclass(frozen=True, slots=True)
class PlannedEntry(Question[Entry | None]):
    """What is planned for one subject."""

    needs_store = True
    subject: Subject

    @property
    def within_space(self) -> str:
        """The subject's space."""
        return self.subject.space

    @property
    def short(self) -> bool:
        """True: the answer takes little time."""
        return True


@dataclass(frozen=True, slots=True)
class PolicyBacklog(Question[Backlog]):
    """How much a policy has to do by a moment, and how much of it fails."""

    needs_store = True
    policy: str
    due_by: int


@dataclass(frozen=True, slots=True)
class DiscardableCount(Question[int]):
    """How much the change `Discard` would remove in all, if it were made again and again."""

    needs_store = True
    what: Discardable
    before: int


@dataclass(frozen=True, slots=True)
class TokensSpent(Question[int]):
    """The tokens that a user spent on a day; with None, what all spent together."""

    day: date
    scope: Scope | None

    @property
    def short(self) -> bool:
        """True: the answer takes little time."""
        return True
