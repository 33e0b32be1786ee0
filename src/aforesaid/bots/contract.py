"""The contract between a bot session and a chat platform.

An adapter is thin: it converts its platform's events to these values and passes them to a `BotSession`, which stores,
answers and reminds. It also implements `Platform`. Behaviour that all platforms share is not in the adapters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

from aforesaid.assistant import CALLED, Button, File
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


@dataclass(frozen=True, slots=True)
class Edited:
    """A message that its author edited."""

    address: Address
    id: str
    text: str
    at: datetime
    """When it was edited."""
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Deleted:
    """A message that was deleted on the platform."""

    address: Address
    id: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Pressed:
    """A button that was pressed."""

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


def owns(platform: str, space: str) -> bool:
    """Return whether a space belongs to a platform."""
    return space == platform or space.startswith(f"{platform}:")
