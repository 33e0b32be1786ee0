"""What a platform hands in, and what it is asked to do.

An adapter is thin: it turns its platform's events into these values and gives them to a `BotSession`, which stores,
answers and reminds. It also implements `Platform`. What all platforms share is not in the adapters.
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
"""The space and the thread whose messages keep their order."""


class Address(NamedTuple):
    """Who is talked with, and where."""

    space: str
    """The platform's name for direct chats; the name, a colon and an id for a group, whose wall nothing crosses."""
    user: str
    thread: str | None = None
    """A channel or a group; None for the direct chat of this person and the bot."""

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
    """What the person is called."""
    wanted: bool = True
    """Whether the bot is spoken to. What is not for it is stored, and not answered."""
    people: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Others who are around or mentioned, by id: what each is called, the name that is shown first."""
    called: tuple[str, ...] = CALLED
    """What the bot is called."""
    quoted: str | None = None
    """The text that it is a reply to."""
    attachments: tuple[str, ...] = ()
    """What came along, in words: `photo`, `plan.pdf (82 kB)`."""


@dataclass(frozen=True, slots=True)
class Edited:
    """A message that was changed by its author."""

    address: Address
    id: str
    text: str
    at: datetime
    """When it was changed."""
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
    """The platform's id of the pressing, where the platform may hand it in again."""


class Platform(Protocol):
    """A chat platform, as a bot uses it.

    What it raises is PlatformUnavailable where another try may help, PlatformRefused where it would not.
    """

    @property
    def name(self) -> str:
        """What it is called: `telegram`. Its spaces are called so, too, or begin with it and a colon."""

    @property
    def longest(self) -> int:
        """The longest text that can be sent at once, in units of UTF-16."""

    async def check(self) -> str:
        """Log in, and return what the bot is called there. Called before everything else, and again after a failure."""

    async def listen(self, desk: BotSession) -> None:
        """Hand in what is said, in the order of each thread, until it is cancelled.

        Raises PlatformUnavailable when the connection is lost: then it is called again after a pause.
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
        """Send a text that is not too long. `answers` is the message that it is a reply to.

        `once` names this very message: a platform that can shows it once, however often it is asked to send it.
        """

    async def send_file(self, to: Address, file: File) -> None:
        """Send a file."""

    def typing(self, to: Address) -> AbstractAsyncContextManager[None]:
        """Show that the bot is writing, until the end of the block. Never raises."""

    async def close(self) -> None:
        """Log out. Closing twice is fine."""


@runtime_checkable
class Attended(Protocol):
    """A platform that keeps nothing for those who are away: what is for them waits until they are back."""

    def reachable(self, to: Address) -> bool:
        """Tell whether somebody could be written to now."""


@runtime_checkable
class Equipped(Protocol):
    """A platform that needs services of its own, as for speech."""

    def parts(self) -> tuple[Component, ...]:
        """Say how each of them is doing."""


def owns(platform: str, space: str) -> bool:
    """Tell whether a space is one of a platform's."""
    return space == platform or space.startswith(f"{platform}:")
