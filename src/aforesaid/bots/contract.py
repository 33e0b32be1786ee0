"""The contract between a bot session and a chat platform.

An adapter is thin: it converts its platform's events to these values and passes them to a `BotSession`, which stores,
answers and reminds. It also implements `Platform`. Behaviour that all platforms share is not in the adapters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from cachetools import LRUCache

from aforesaid.assistant import CALLED, Button, File
from aforesaid.domain import checks
from aforesaid.domain.checks import ComponentStatus
from aforesaid.domain.report import Component

if TYPE_CHECKING:
    from aforesaid.bots.bot_session import BotSession


ThreadKey: TypeAlias = tuple[str, str]
"""A space and a thread. Messages with the same key are handled in order."""


class Address(NamedTuple):
    """A person and the chat in which they write."""

    space: str
    """The platform's name for direct chats; the name, a colon and an id for a group, which is isolated from others."""
    user: str
    thread: str | None = None
    """A channel or a group; None for the direct chat between this person and the bot."""

    @property
    def thread_key(self) -> ThreadKey:
        """The conversation whose messages are stored and answered in order."""
        return self.space, f"direct:{self.user}" if self.thread is None else self.thread


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message that somebody wrote."""

    address: Address
    id: str
    """The platform's id of the message, which is never used twice in a thread."""
    text: str
    at: datetime
    name: str | None = None
    """The display name of the person."""
    wanted: bool = True
    """Whether the message is addressed to the bot. Other messages are stored but not answered."""
    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of other people who are present or mentioned, by id; the display name comes first."""
    called: tuple[str, ...] = CALLED
    """Names that people call the bot by."""
    quoted: str | None = None
    """The text of the message that this one replies to."""
    reply_to: str | None = None
    """The platform's id of that message."""
    attachments: tuple[str, ...] = ()
    """Descriptions of the attachments: `photo`, `plan.pdf (82 kB)`."""
    language: str | None = None
    """The language of the person's app, a tag such as `pt-BR`. Fixed texts are in it until their messages tell one."""


@dataclass(frozen=True, slots=True)
class Edited:
    address: Address
    id: str
    text: str
    at: datetime
    """When it was edited."""
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Deleted:
    address: Address
    id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Pressed:
    address: Address
    word: str
    id: str | None = None
    """The platform's id of this press, if the platform may deliver it again."""


class Platform(Protocol):
    """A chat platform, as a bot uses it.

    Its methods raise PlatformUnavailable if a retry may help, and PlatformRefused if not.
    """

    @property
    def name(self) -> str:
        """The platform's name, such as `telegram`. Its spaces have this name, or begin with it and a colon."""

    @property
    def longest(self) -> int:
        """Maximum length of one sent text, in UTF-16 code units."""

    async def check(self) -> str:
        """Log in and return the bot's name on the platform. Called first, and again after each failure."""

    async def listen(self, session: BotSession) -> None:
        """Pass events to the session, in order within each thread, until cancelled.

        Raises PlatformUnavailable when the connection is lost; the caller then waits and calls `check` and this again.
        To return means the same.
        """

    async def send(
        self,
        to: Address,
        text: str,
        buttons: Sequence[Button] = (),
        *,
        answers: str | None = None,
        once: str | None = None,
    ) -> None:
        """Send a text of at most `longest` units. `answers` is the id of the message that it replies to.

        `once` is an idempotency key: a platform that supports one shows the message once, however often it is sent.
        """

    async def send_file(self, to: Address, file: File) -> None:
        """Send a file."""

    def typing(self, to: Address) -> AbstractAsyncContextManager[None]:
        """Show a typing indicator until the end of the block. Never raises."""

    async def close(self) -> None:
        """Log out. Closing twice is fine."""


@runtime_checkable
class Attended(Protocol):
    """A platform that stores no messages for people who are offline. Messages for them wait until they are back."""

    def reachable(self, to: Address) -> bool:
        """Return whether a message would reach this address now."""


@runtime_checkable
class Equipped(Protocol):
    """A platform that uses services of its own, for example for speech."""

    def parts(self) -> tuple[Component, ...]:
        """Return the health of each service."""


def is_reachable(platform: Platform, to: Address) -> bool:
    return not isinstance(platform, Attended) or platform.reachable(to)


def owns(platform: str, space: str) -> bool:
    return space == platform or space.startswith(f"{platform}:")


LIVE: Final = timedelta(seconds=30)
"""Messages that arrive within this time of being sent are live. It covers whole-second times, slow polling and clocks
that differ by some seconds. Older ones were sent while the bot was away, and keep their own time."""
_REST_OF_A_SECOND: Final = timedelta(microseconds=999_999)
_THREADS: Final = 10_000
"""Maximum number of threads whose newest time is cached."""


class MessageTimes:
    """Chooses the time of each message so that a live thread is read in the order in which it was stored."""

    def __init__(self) -> None:
        self._newest: LRUCache[ThreadKey, datetime] = LRUCache(_THREADS)
        self._received: LRUCache[ThreadKey, tuple[datetime, datetime]] = LRUCache(_THREADS)
        """When the last received message of a thread was sent, and the time it was stored under."""

    def received(self, thread: ThreadKey, sent_at: datetime) -> datetime:
        """Return the time to store a received message under.

        It is never before a received message that was sent earlier, and while live never before the thread's newest.
        """
        now, platform_time = _now(), sent_at
        live = abs(now - sent_at) <= LIVE
        if live and not sent_at.microsecond:
            # A whole second names all of it. The time of arrival orders messages also across a restart of the bot.
            sent_at = max(sent_at, min(now, sent_at + _REST_OF_A_SECOND))
        at = max(sent_at, self._newest.get(thread, sent_at)) if live else sent_at
        last_sent, last_stored = self._received.get(thread, (platform_time, at))
        if platform_time >= last_sent:
            at = max(at, last_stored)
            self._received[thread] = platform_time, at
        self._advance(thread, at)
        return at

    def sent(self, thread: ThreadKey, question: datetime | None = None) -> datetime:
        """Return the time to store a sent message under: now, but never before its question or its thread's newest."""
        now = _now()
        at = max(now, question or now, self._newest.get(thread, now))
        self._advance(thread, at)
        return at

    def _advance(self, thread: ThreadKey, at: datetime) -> None:
        self._newest[thread] = max(at, self._newest.get(thread, at))


def _now() -> datetime:
    return checks.moment(checks.now())


_MAX_PROBLEMS: Final = 3


@dataclass(slots=True)
class BotStats:
    received: int = 0
    stored: int = 0
    commands: int = 0
    answered: int = 0
    unanswered: int = 0
    """Messages that the model failed to answer."""
    skipped: int = 0
    """Messages that were not answered because too many were waiting."""
    edits: int = 0
    deletions: int = 0
    sent: int = 0
    reminders: int = 0
    reconnections: int = 0
    connected: bool = False
    last: datetime | None = None
    """The time of the last received or sent message."""
    problems: deque[str] = field(default_factory=lambda: deque(maxlen=_MAX_PROBLEMS))
    """The most recent distinct problems; cleared by `mark_ok`."""

    def failed(self, problem: str) -> None:
        if problem not in self.problems:
            self.problems.append(problem)

    def mark_ok(self) -> None:
        self.connected = True
        self.last = datetime.now(UTC)
        self.problems.clear()

    def component(self, name: str, waiting: int, parts: Sequence[Component] = ()) -> Component:
        facts = [("connected", "yes" if self.connected else "no"), ("waiting for an answer", str(waiting))]
        counted = ("received", "stored", "commands", "answered", "unanswered", "skipped", "edits", "deletions", "sent")
        facts += [(what, str(getattr(self, what))) for what in (*counted, "reminders", "reconnections")]
        facts += [(part.name, "; ".join(f"{what}: {how}" for what, how in part.facts)) for part in parts]
        issues = (*self.problems, *(f"{part.name}: {issue}" for part in parts for issue in part.issues))
        status: ComponentStatus = "failing" if issues or not self.connected else "active"
        return Component(f"{name} bot", status, self.last, issues, tuple(facts))
