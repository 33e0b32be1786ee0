"""What can be read from a store: each question is a frozen value with the type of its answer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeAlias, TypeVar

from aforesaid.domain.change import Discardable
from aforesaid.domain.checks import Timely, Within
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.hit import EVERY_MESSAGE, Hit, MessageFilter, Similar, Unembedded
from aforesaid.domain.memory import (
    Derived,
    Facts,
    MemoryRecord,
    MemoryVersion,
    NoteMatch,
    Tombstone,
    UnembeddedNote,
    Unextracted,
)
from aforesaid.domain.message import Message, Position
from aforesaid.domain.report import (
    Activity,
    AuditEntry,
    Ledger,
    ListedUser,
    MemoryCount,
    Setting,
    SpaceTotals,
    Stats,
    User,
)
from aforesaid.domain.scope import Ahead, Backlog, Entry, Scope, Session, Subject
from aforesaid.domain.summary import Summary
from aforesaid.domain.thread import Thread
from aforesaid.store.ranking import TextMatches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]

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


Answer = TypeVar("Answer", covariant=True)  # noqa: PLC0105 - the usual name would say less


class Question(Generic[Answer]):
    """Something asked of a store, about all spaces unless it says otherwise."""

    __slots__ = ()
    needs_store: ClassVar[bool] = False
    """True for those who work on what is stored: while a store cannot be reached, nothing else may answer them."""

    @property
    def within_space(self) -> str | None:
        """The space that the answer comes from; None for all of them."""
        return None

    @property
    def short(self) -> bool:
        """Whether the answer takes so little time that several may be read in one go."""
        return False


@dataclass(frozen=True, slots=True)
class OfScope(Question[Answer]):
    """A question about what a scope holds."""

    scope: Scope

    @property
    def within_space(self) -> str:
        """The scope's space."""
        return self.scope.space


@dataclass(frozen=True, slots=True)
class OfScopeShort(OfScope[Answer]):
    """A question about a scope whose answer is short."""

    @property
    def short(self) -> bool:
        """True: the answer takes little time."""
        return True


@dataclass(frozen=True, slots=True)
class OfSpace(Question[Answer]):
    """A question about a whole space."""

    space: str

    @property
    def within_space(self) -> str:
        """The space."""
        return self.space


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


@dataclass(frozen=True, slots=True)
class SearchText(OfScope[list[Hit]]):
    """The messages that best match any of the words; newer first among equals. `words` may be any text."""

    words: str
    within: Within = "user"
    limit: int = 10
    where: MessageFilter = EVERY_MESSAGE


@dataclass(frozen=True, slots=True)
class MatchText(OfScope[TextMatches]):
    """What `SearchText` ranks: the scope's messages as columns, and which of them have which words.

    The vectors that `embedder` gave them may come with it. The columns hold all messages of the scope, so that the
    neighbours of each are known; words and vectors are only those of messages that fulfil `where`.
    """

    words: str
    within: Within = "user"
    embedder: str | None = None
    where: MessageFilter = EVERY_MESSAGE


@dataclass(frozen=True, slots=True, eq=False)
class SearchVector(OfScope[Similar | None]):
    """The messages most similar to a vector, and those in `also`; None when `embedder` has seen nothing."""

    embedder: str
    vector: Vector
    within: Within = "user"
    limit: int = 10
    also: Sequence[int] = ()
    where: MessageFilter = EVERY_MESSAGE


@dataclass(frozen=True, slots=True, eq=False)
class SearchNotes(OfScope[list[NoteMatch]]):
    """The user's active summaries and memories that fit best, by words and by meaning."""

    words: str
    embedder: str
    vector: Vector | None
    limit: int = 10


@dataclass(frozen=True, slots=True)
class MessageVectors(OfScope[dict[int, bytes]]):
    """The vectors of those of the messages that are the user's and that an embedder has seen."""

    needs_store = True
    embedder: str
    seqs: Sequence[int]


@dataclass(frozen=True, slots=True)
class TokenVectors(OfScopeShort[dict[int, bytes]]):
    """The token vectors of those of the messages that the scope holds and that have some, by sequence number."""

    encoder: str
    seqs: Sequence[int]
    within: Within = "user"


@dataclass(frozen=True, slots=True)
class UnembeddedMessages(Question[list[Unembedded]]):
    """The oldest messages, of all spaces, that an embedder has not seen."""

    needs_store = True
    embedder: str
    limit: int


@dataclass(frozen=True, slots=True)
class UnembeddedNotes(Question[list[UnembeddedNote]]):
    """The oldest summaries and memories, of all spaces, that an embedder has not seen."""

    needs_store = True
    embedder: str
    limit: int


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
