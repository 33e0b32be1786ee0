"""Questions about messages and sessions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aforesaid.domain.literals import Within
from aforesaid.domain.message import Message, Position
from aforesaid.domain.message_filter import EVERY_MESSAGE, MessageFilter
from aforesaid.domain.report import Activity, Ledger
from aforesaid.domain.session import Session
from aforesaid.domain.thread import Thread
from aforesaid.store.questions.base import OfScope, OfScopeShort, OfSpace, Question

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
