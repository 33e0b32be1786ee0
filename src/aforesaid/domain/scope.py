"""Where a message belongs: its space, user, thread and session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b
from typing import Final, NamedTuple, Self

from aforesaid.domain.checks import Role, SessionState, identifier
from aforesaid.errors import InvalidInput, quoted
from aforesaid.extras import re

DEFAULT_SPACE = "default"
_DIRECT = "direct:"
_CHAT = "direct@"
_OWNER_BYTES = 6


class Scope(NamedTuple):
    """A user in a space, with the current thread and optionally the session."""

    space: str
    user: str
    thread: str
    session: str | None = None

    @classmethod
    def of(
        cls,
        user: object,
        space: object = DEFAULT_SPACE,
        thread: object = None,
        session: object = None,
        chat: object = None,
    ) -> Self:
        """Return a scope with validated names: of a thread, of a private chat, or else of the user's direct chat."""
        owner = identifier(user, "the user id", "user")
        if chat is not None:
            if thread is not None:
                raise InvalidInput(
                    "both a chat and a thread are given; name one: a chat is private, a thread is shared", "chat"
                )
            name = chat_thread(owner, identifier(chat, "the chat id", "chat"))
        elif thread is None:
            name = direct_thread(owner)
        else:
            name = identifier(thread, "the thread id", "thread")
            if is_direct(name) and name != direct_thread(owner) and not name.startswith(_chats_of(owner)):
                raise InvalidInput(
                    f"the thread {quoted(name)} is another user's direct chat, not {quoted(owner)}'s", "thread"
                )
        return cls(
            space=identifier(space, "the space", "space"),
            user=owner,
            thread=name,
            session=None if session is None else identifier(session, "the session id", "session"),
        )

    def named_session(self) -> str:
        """Return the session. Raises InvalidInput if the scope has none."""
        if self.session is None:
            raise InvalidInput("within='session' needs a session; name one: memory.user(…, session=…)", "session")
        return self.session


def direct_thread(user: str) -> str:
    """Return the thread of a user's direct chat."""
    return f"{_DIRECT}{user}"


def chat_thread(user: str, chat: str) -> str:
    """Name the thread of one of several chats that a user has with the assistant alone.

    The name holds a hash of the user id, so that two users whose apps number their chats 1, 2, 3 share no thread.
    """
    return f"{_chats_of(user)}{chat}"


def chat_name(thread: str) -> str:
    """Return the name of a chat from that of its thread; other threads unchanged."""
    return thread.partition("/")[2] if thread.startswith(_CHAT) else thread


def is_chat(thread: str) -> bool:
    """Return whether a thread is one of several private chats of a user, not the direct chat."""
    return thread.startswith(_CHAT)


def is_direct(thread: str) -> bool:
    """Return whether a thread is a direct chat, which belongs to one user."""
    return thread.startswith((_DIRECT, _CHAT))


def _chats_of(user: str) -> str:
    return f"{_CHAT}{blake2b(user.encode(), digest_size=_OWNER_BYTES).hexdigest()}/"


SESSION_SILENCE: Final = 30 * 60 * 1_000_000
"""A silence of 30 minutes, in microseconds, closes a session."""
_IDLE_AFTER: Final = 3
"""A session is idle once it has been quiet for this part (one third) of its timeout."""
_AUTOMATIC: Final = re.compile(r"s-([0-9]{1,18})")


@dataclass(frozen=True, slots=True)
class Session:
    """A part of a thread without a long silence. It closes after `timeout` of silence."""

    id: str
    space: str
    thread: str
    user: str
    """The user who opened it."""
    started_at: datetime
    last_activity: datetime
    messages: int
    timeout: timedelta

    def state(self, now: datetime | None = None) -> SessionState:
        """Return the state at `now`: active, idle after a third of the timeout, closed after the timeout."""
        quiet = (now or datetime.now(UTC)) - self.last_activity
        if quiet >= self.timeout:
            return "closed"
        return "idle" if quiet * _IDLE_AFTER >= self.timeout else "active"


@dataclass(frozen=True, slots=True)
class SessionBounds:
    """The first and last message times of a session, in microseconds."""

    key: int
    started: int
    last: int


@dataclass(frozen=True, slots=True)
class Placement:
    """The session of a message: `keep` (None: a new session), after `absorb` was merged into it."""

    keep: SessionBounds | None
    absorb: SessionBounds | None = None


def place(at: int, timeout: int, candidates: Sequence[SessionBounds]) -> Placement:
    """Decide which session a message said at `at` belongs to.

    `candidates` are the last two automatic sessions of the thread, by time, that began before `at + timeout`.
    Two of them can be near only when the message closes the silence between them; then they become one.
    """
    near = [stretch for stretch in candidates if stretch.started - timeout < at < stretch.last + timeout]
    if not near:
        return Placement(keep=None)
    near.sort(key=lambda stretch: (stretch.started, stretch.key))
    return Placement(keep=near[0], absorb=near[1] if len(near) > 1 else None)


def automatic_name(seq: int) -> str:
    """Return the name of the session that a message opened."""
    return f"s-{seq}"


def opening_message(name: str) -> int | None:
    """Return the sequence number in an automatic session name; None for a name that a caller chose."""
    match = _AUTOMATIC.fullmatch(name)
    return None if match is None else int(match[1])


class Passed(NamedTuple):
    """The fields of a message that the summary policies need."""

    seq: int
    space: str
    user: str
    thread: str
    role: Role
    at: int
    characters: int


class Ahead(NamedTuple):
    """The unprocessed messages after the position `after`."""

    after: int
    passed: tuple[Passed, ...]


class Subject(NamedTuple):
    """The subject of an agenda entry: a user, thread or day. Unused fields are empty."""

    policy: str
    space: str
    user: str = ""
    thread: str = ""
    day: str = ""

    @property
    def scope(self) -> Scope:
        """The scope of the subject: its user, in its thread or else in the user's direct chat."""
        return Scope(self.space, self.user, self.thread or direct_thread(self.user))

    @property
    def date(self) -> date:
        """The day of the subject."""
        return date.fromisoformat(self.day)


class Touch(NamedTuple):
    """The effect of new messages on a subject."""

    subject: Subject
    messages: int
    characters: int
    last_seq: int
    due_at: int


@dataclass(frozen=True, slots=True)
class Entry:
    """An agenda entry: a subject that is due for a check, and when."""

    subject: Subject
    messages: int
    """Number of messages processed."""
    characters: int
    waiting: int
    """Number of messages since the last check."""
    last_seq: int
    due_at: int | None
    done_at: int | None = None
    """When it was last summarised, and up to which message."""
    done_seq: int = 0
    failures: int = 0
    """Number of consecutive failures."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Backlog:
    """The amount of pending work."""

    entries: int
    messages: int
    failing: int
    error: str | None
    """The last error."""
