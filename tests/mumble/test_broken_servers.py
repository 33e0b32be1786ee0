"""Servers that do not do what they should: each ends the connection with a reason, or is put up with."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path

import pytest

from aforesaid.bots.mumble import link as link_module
from aforesaid.bots.mumble import messages
from aforesaid.bots.mumble.link import Address, Denied, Link, PersonLeft, TextReceived
from aforesaid.bots.mumble.messages import (
    NUMBERS,
    Message,
    PermissionDenied,
    Reject,
    ServerSync,
    TextMessage,
    UserRemove,
    UserState,
    encode_protobuf,
)
from aforesaid.errors import PlatformRefused, PlatformUnavailable
from mumble.mumbling import connect, make_certificate, needs_openssl

pytestmark = needs_openssl

Play = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Serve = Callable[[Play], AbstractAsyncContextManager[Address]]


def frame(number: int, body: bytes) -> bytes:
    return struct.pack(">HI", number, len(body)) + body


def message(said: Message) -> bytes:
    return frame(NUMBERS[type(said)], encode_protobuf(said))


ENTRY = message(UserState(session=1, name="bot")) + message(UserState(session=2, name="ann")) + message(ServerSync(1))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("certificate"), "localhost")


@pytest.fixture
def serve(certificate: Path) -> Serve:
    @asynccontextmanager
    async def serving(play: Play) -> AsyncIterator[Address]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        over: list[asyncio.Task[object]] = []

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            over.append(asyncio.current_task())  # type: ignore[arg-type]
            try:
                await play(reader, writer)
            finally:
                writer.transport.abort()

        server = await asyncio.start_server(talk, "127.0.0.1", 0, ssl=context)
        try:
            yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
        finally:
            server.close()
            for task in over:
                task.cancel()
            await asyncio.gather(*over, return_exceptions=True)

    return serving


async def forever(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    del writer
    while await reader.read(65536):
        pass


def sends(data: bytes) -> Play:
    """Send something, and then listen."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await forever(reader, writer)

    return play


async def hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.close()


async def enter(address: Address) -> list[object]:
    """Get in, and return everything that happens until it is over."""
    happened: list[object] = []
    async with connect(address, "bot") as link:
        async for event in link.events():
            happened.append(event)
            if isinstance(event, PersonLeft):
                break
    return happened


@pytest.mark.parametrize(
    ("play", "error", "why"),
    [
        (hangs_up, PlatformUnavailable, "the server closed it"),
        (sends(struct.pack(">HI", 11, 2**31)), PlatformUnavailable, "2147483648 bytes exceeds the maximum"),
        (sends(frame(9, b"\x08")), PlatformUnavailable, "longer than ten bytes or truncated"),
        (sends(ENTRY + frame(11, b"\x1a\xff")), PlatformUnavailable, "number"),
        (sends(message(Reject(99, "no reason that is known"))), PlatformRefused, "no reason that is known"),
        (sends(message(Reject(6, "full"))), PlatformUnavailable, "the server is full"),
        (sends(ENTRY + message(UserRemove(1, "spam", ban=True))), PlatformRefused, "banned.*spam"),
    ],
)
async def test_a_broken_server_ends_it_with_a_reason(
    serve: Serve, play: Play, error: type[Exception], why: str
) -> None:
    async with serve(play) as address:
        with pytest.raises(error, match=why):
            await enter(address)


async def test_a_server_that_never_lets_anybody_in_is_given_up(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "_ENTRY_SECONDS", 0.2)
    async with serve(forever) as address:
        with pytest.raises(PlatformUnavailable, match="took longer than"):
            await enter(address)


async def test_a_server_that_falls_silent_is_noticed_and_was_asked_before(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "_PING_SECONDS", 0.02)
    monkeypatch.setattr(link_module, "_SILENCE_SECONDS", 0.5)
    asked: list[int] = []

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(ENTRY)
        with suppress(asyncio.IncompleteReadError):
            while True:
                number, length = struct.unpack(">HI", await reader.readexactly(6))
                await reader.readexactly(length)
                asked.append(number)

    async with serve(play) as address:
        with pytest.raises(PlatformUnavailable, match="has been silent"):
            await enter(address)
    assert asked[:2] == [0, 2]
    assert 3 in asked, "no ping was sent"


async def test_what_is_merely_strange_is_put_up_with(serve: Serve) -> None:
    strange = [
        frame(999, b"from the future"),
        frame(1, b""),
        frame(1, b"\xff\xff\xff"),
        frame(1, b"\x80\x02\x01\x02\x03"),
        frame(1, messages.encode_packet(b"of nobody", 1)),
        message(TextMessage(actor=77, message="of nobody")),
        message(TextMessage(message="of the server itself")),
        message(UserState(name="of no session")),
        message(UserRemove(session=55)),
        message(PermissionDenied(permission=4)),
        message(PermissionDenied(type=4)),
        message(PermissionDenied(type=0, reason="not on Sundays")),
        message(TextMessage(actor=2, session=(1,), message="at last")),
        message(UserRemove(session=2)),
    ]
    async with serve(sends(ENTRY + b"".join(strange))) as address:
        happened = await enter(address)
    assert [type(event).__name__ for event in happened] == ["Denied", "Denied", "Denied", "TextReceived", "PersonLeft"]
    assert [event.why for event in happened if isinstance(event, Denied)] == [
        "permission 0x4 is missing",
        "a text is longer than the server allows",
        "not on Sundays",
    ]
    told = happened[3]
    assert isinstance(told, TextReceived)
    assert (told.person.name, told.channel, told.html) == ("ann", None, "at last")


async def test_leaving_twice_is_fine(serve: Serve) -> None:
    async with serve(sends(ENTRY)) as address:
        async with connect(address, "bot") as link:
            assert isinstance(link, Link)
            await link.close()
        await link.close()
