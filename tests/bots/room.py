"""A platform for tests: records sent messages, and fails on demand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import count

from aforesaid.assistant import Button, File
from aforesaid.bots import Address, BotSession, IncomingMessage

NOON = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)


class Room:
    """A platform that records what is sent."""

    name = "room"
    longest = 2000

    def __init__(self) -> None:
        self.sent: list[tuple[Address, str]] = []
        self.buttons: list[Sequence[Button]] = []
        self.files: list[tuple[Address, File]] = []
        self.failures: list[Exception] = []
        """Errors that the next sends raise, in order."""
        self.typing_now: set[Address] = set()
        self.closed = False
        self.something_sent = asyncio.Event()

    @property
    def texts(self) -> list[str]:
        return [text for _, text in self.sent]

    async def check(self) -> str:
        return "roombot"

    async def listen(self, session: BotSession) -> None:
        del session
        await asyncio.Event().wait()

    async def send(
        self,
        to: Address,
        text: str,
        buttons: Sequence[Button] = (),
        *,
        answers: str | None = None,
        once: str | None = None,
    ) -> None:
        del answers, once
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append((to, text))
        self.buttons.append(buttons)
        self.something_sent.set()

    async def send_file(self, to: Address, file: File) -> None:
        self.files.append((to, file))

    @asynccontextmanager
    async def typing(self, to: Address) -> AsyncIterator[None]:
        self.typing_now.add(to)
        try:
            yield
        finally:
            self.typing_now.discard(to)

    async def close(self) -> None:
        self.closed = True


_numbers = count(1)


def incoming(
    text: str,
    user: str = "ann",
    thread: str | None = None,
    *,
    id: str | None = None,  # noqa: A002
    name: str | None = None,
    wanted: bool = True,
    people: dict[str, tuple[str, ...]] | None = None,
    quoted: str | None = None,
    attachments: tuple[str, ...] = (),
    at: datetime = NOON,
) -> IncomingMessage:
    """Return an incoming message in a direct chat, or in a channel of the space `room:1`."""
    return IncomingMessage(
        Address("room" if thread is None else "room:1", user, thread),
        id or f"m{next(_numbers)}",
        text,
        at,
        name,
        wanted=wanted,
        people=people or {},
        quoted=quoted,
        attachments=attachments,
    )
