"""The connection to a Mumble server."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import ssl
import struct
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypeAlias

from aforesaid import __version__
from aforesaid.background import end
from aforesaid.bots.mumble import messages
from aforesaid.errors import PlatformRefused, PlatformUnavailable, quoted
from aforesaid.extras import re

_FINGERPRINT: Final = re.compile(r"[0-9a-f]{64}")


class Address(NamedTuple):
    host: str
    port: int = 64738
    fingerprint: str | None = None
    """SHA-256 of its certificate, in hexadecimal digits, with or without colons."""
    certificate: Path | None = None
    """A PEM file with the bot's own certificate and key."""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


async def open_connection(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect, and verify the server before anything is sent."""
    expected = None if address.fingerprint is None else plain_fingerprint(address.fingerprint)
    unchecked = expected is not None or _is_here(address.host)
    try:
        reader, writer = await _open(address, _context(address, check=not unchecked))
    except ssl.SSLCertVerificationError as error:
        raise await _unknown(address, error) from None
    if expected is not None and (found := _fingerprint(writer)) != expected:
        writer.transport.abort()
        raise PlatformRefused(
            f"the certificate of the Mumble server at {address} has the fingerprint {found}, not {expected}. If the "
            f"certificate was renewed, change bots.mumble.fingerprint; otherwise this may be another server"
        )
    return reader, writer


def plain_fingerprint(given: str) -> str:
    """Return a fingerprint as lowercase digits. Raises PlatformRefused if it is none."""
    digits = given.replace(":", "").replace(" ", "").casefold()
    if not _FINGERPRINT.fullmatch(digits):
        raise PlatformRefused(f"{quoted(given)} is not a fingerprint: it must be 64 hexadecimal digits (SHA-256)")
    return digits


async def _open(address: Address, context: ssl.SSLContext) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await asyncio.open_connection(address.host, address.port, ssl=context, server_hostname=address.host)
    except ssl.SSLCertVerificationError:
        raise
    except OSError as error:
        why = error.strerror or str(error) or type(error).__name__
        raise PlatformUnavailable(f"no Mumble server can be reached at {address}: {why}") from error


async def _unknown(address: Address, error: ssl.SSLCertVerificationError) -> PlatformRefused:
    """Return an error that names the fingerprint of an untrusted certificate and says how to trust it."""
    _, writer = await _open(address, _context(address, check=False))
    found = _fingerprint(writer)
    writer.transport.abort()
    return PlatformRefused(
        f"the certificate of the Mumble server at {address} is not trusted ({error.verify_message}), as is usual for "
        f"Mumble. Its fingerprint (SHA-256) is {found}. If that is your server, write into aforesaid.toml, under "
        f'[bots.mumble]: fingerprint = "{found}"'
    )


def _context(address: Address, *, check: bool) -> ssl.SSLContext:
    if check:
        context = ssl.create_default_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if address.certificate is not None:
        try:
            context.load_cert_chain(address.certificate)
        except (OSError, ssl.SSLError) as error:
            raise PlatformRefused(
                f"the bot's own certificate {address.certificate} cannot be used: {error}. It must be a PEM file that "
                f"holds a certificate and its key"
            ) from error
    return context


def _fingerprint(writer: asyncio.StreamWriter) -> str:
    return hashlib.sha256(writer.get_extra_info("ssl_object").getpeercert(binary_form=True)).hexdigest()


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class RateLimit:
    """A token bucket: a burst, then `per_second` messages. Servers allow five at once and one per second by default."""

    def __init__(self, burst: int = 4, per_second: float = 0.95) -> None:
        self._burst = burst
        self._per_second = per_second
        self._free = float(burst)
        self._counted_at: float | None = None
        self._turn = asyncio.Lock()

    async def wait(self) -> None:
        """Wait until the next message may be sent, first come first served."""
        async with self._turn:
            time = asyncio.get_running_loop().time
            now = time()
            since = 0.0 if self._counted_at is None else now - self._counted_at
            self._free = min(self._burst, self._free + since * self._per_second)
            if self._free < 1:
                await asyncio.sleep((1 - self._free) / self._per_second)
                self._free, now = 1.0, time()
            self._free, self._counted_at = self._free - 1, now


@dataclass(frozen=True, slots=True)
class Person:
    """A connected user. The session number is theirs until they disconnect."""

    session: int
    name: str = ""
    user_id: int | None = None
    """The id of a user who is registered on this server."""
    certificate: str | None = None
    """The hash of the certificate of their client."""
    channel: int = 0
    muted: bool = False
    suppressed: bool = False
    """Whether they may not speak in their channel."""

    @property
    def silenced(self) -> bool:
        return self.muted or self.suppressed

    @property
    def id(self) -> str:
        """The user's id, which survives a rename if the server allows it.

        The certificate comes first: it stays the same when somebody registers. Anybody can use a name.
        """
        if self.certificate:
            return self.certificate
        if self.user_id is not None:
            return f"user-{self.user_id}"
        return f"name-{self.name}"


@dataclass(frozen=True, slots=True)
class Channel:
    id: int
    name: str = ""
    parent: int | None = None


def _said(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a message has: the others are as they were."""
    return {name: value for name, value in fields.items() if value is not None}


class People:
    def __init__(self) -> None:
        self.persons: dict[int, Person] = {}
        self.channels: dict[int, Channel] = {}

    def user(self, state: messages.UserState) -> None:
        if state.session is not None:
            given = {"name": state.name, "user_id": state.user_id, "certificate": state.hash or None}
            given |= {"channel": state.channel_id, "muted": state.mute, "suppressed": state.suppress}
            known = self.persons.get(state.session, Person(state.session))
            self.persons[state.session] = replace(known, **_said(given))

    def gone(self, session: int | None) -> Person | None:
        return None if session is None else self.persons.pop(session, None)

    def channel(self, state: messages.ChannelState) -> None:
        if state.channel_id is not None:
            known = self.channels.get(state.channel_id, Channel(state.channel_id))
            given = {"name": state.name, "parent": state.parent}
            self.channels[state.channel_id] = replace(known, **_said(given))

    def find_channel(self, path: str) -> Channel | None:
        """Find a channel by its name or path, such as `Games/Chess`. Case does not matter.

        A path may begin at any channel. If several match, the oldest is returned.
        """
        names = [part.strip().casefold() for part in path.split("/") if part.strip()]
        for number in sorted(self.channels):
            channel: Channel | None = self.channels[number]
            rest = list(names)
            while channel is not None and rest and channel.name.casefold() == rest[-1]:
                rest.pop()
                channel = None if channel.parent is None else self.channels.get(channel.parent)
            if names and not rest:
                return self.channels[number]
        return None


_log: Final = logging.getLogger("aforesaid.bots")

_HEAD: Final = struct.Struct(">HI")
_LARGEST: Final = 8 * 1024 * 1024
_SPOKEN_VERSION: Final = 1 << 16 | 4 << 8
"""1.4: servers send voice in another format to clients of version 1.5 and later."""
_BOT: Final = 1
_PING_SECONDS: Final = 10.0
_SILENCE_SECONDS: Final = 30.0
_ENTRY_SECONDS: Final = 20.0
_FAREWELL_SECONDS: Final = 2.0
_USUAL_LENGTH: Final = 5000

_REFUSALS: Final = {
    1: "it wants another version of Mumble",
    2: "it does not allow this name: choose another one in bots.mumble.name",
    3: "this name is registered to somebody else's certificate or password: choose another one in bots.mumble.name, or "
    "set bots.mumble.certificate or bots.mumble.password",
    4: "the password of the server is wrong: set bots.mumble.password",
    5: "somebody of this name is there already",
    6: "the server is full",
    7: "it wants a certificate: set bots.mumble.certificate",
    8: "its authenticator does not work",
    9: "it takes no new connections",
}
"""Why a server rejects a login, by the number in `Reject`."""
_PASSING: Final = {5, 6, 8, 9}
"""Temporary refusals: after a broken connection, a server may still list the bot as connected."""
_DENIALS: Final[dict[int | None, str]] = {
    4: "a text is longer than the server allows",
    7: "it wants a certificate: set bots.mumble.certificate",
    9: "the channel is full",
}
"""Why a server denies a request other than for a missing permission, by the number in `PermissionDenied`."""


@dataclass(frozen=True, slots=True)
class TextReceived:
    """A text message. `channel` is None for a private message to the bot."""

    person: Person
    channel: int | None
    html: str


@dataclass(frozen=True, slots=True)
class VoiceReceived:
    person: Person
    packet: messages.VoicePacket


@dataclass(frozen=True, slots=True)
class PersonLeft:
    person: Person


@dataclass(frozen=True, slots=True)
class Denied:
    why: str


Event: TypeAlias = TextReceived | VoiceReceived | PersonLeft | Denied


class Link:
    """An authenticated connection. Use `open` to create one."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: Address, rate_limit: RateLimit
    ) -> None:
        self.people = People()
        self.session = 0
        self.message_length = _USUAL_LENGTH
        """Maximum characters of a text including its markup; 0 for no limit."""
        self.bandwidth: int | None = None
        """Maximum bits per second that the bot may send."""
        self._reader = reader
        self._writer = writer
        self._address = address
        self._rate_limit = rate_limit
        self._pinging: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, address: Address, name: str, password: str | None, rate_limit: RateLimit) -> Self:
        """Connect and log in. Raises PlatformError, which says what to do."""
        reader, writer = await open_connection(address)
        link = cls(reader, writer, address, rate_limit)
        try:
            async with asyncio.timeout(_ENTRY_SECONDS):
                await link._enter(name, password)
        except TimeoutError:
            writer.transport.abort()
            raise PlatformUnavailable(
                f"the login at the Mumble server at {address} took longer than {_ENTRY_SECONDS:g} s"
            ) from None
        except BaseException:
            writer.transport.abort()
            raise
        link._pinging = asyncio.create_task(link._ping(), name="aforesaid-mumble-ping")
        return link

    @property
    def me(self) -> Person:
        return self.people.persons.get(self.session, Person(self.session))

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield events in order until the connection breaks; then raise PlatformError.

        This generator reads the connection, so the caller must handle each event quickly.
        """
        while True:
            kind, body = await self._frame()
            event = self._voice(body) if kind == messages.TUNNEL else self._event(self._message(kind, body))
            if event is not None:
                yield event

    async def write(self, html: str, *, channel: int | None = None, session: int | None = None) -> None:
        """Send a text to a channel or a person, within the rate limit."""
        await self._rate_limit.wait()
        sessions = () if session is None else (session,)
        channels = () if channel is None else (channel,)
        await self.send(messages.TextMessage(session=sessions, channel_id=channels, message=html))

    async def change(self, state: messages.UserState) -> None:
        """Change the state of the bot itself, such as its channel or comment."""
        await self._rate_limit.wait()
        await self.send(state)

    async def send(self, message: messages.Message) -> None:
        await self._send(messages.NUMBERS[type(message)], messages.encode_protobuf(message))

    async def send_voice(self, packet: bytes) -> None:
        await self._send(messages.TUNNEL, packet)

    async def close(self) -> None:
        """Disconnect. May be called twice."""
        await end(self._pinging)
        self._writer.close()
        # The server may have closed the connection already, or not answer any more.
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_FAREWELL_SECONDS):
                await self._writer.wait_closed()

    async def _send(self, number: int, body: bytes) -> None:
        try:
            self._writer.write(_HEAD.pack(number, len(body)) + body)
            await self._writer.drain()
        except OSError as error:
            raise self._lost(error) from error

    async def _enter(self, name: str, password: str | None) -> None:
        """Log in, and read until all channels and users are known."""
        await self.send(messages.Version(_SPOKEN_VERSION, f"Aforesaid {__version__}"))
        await self.send(messages.Authenticate(name, password or None, opus=True, client_type=_BOT))
        while not self.session:
            kind, body = await self._frame()
            if kind != messages.TUNNEL:
                message = self._message(kind, body)
                if isinstance(message, messages.ServerSync):
                    self.session = message.session or 0
                    self.bandwidth = message.max_bandwidth
                self._event(message)

    async def _frame(self) -> tuple[int, bytes]:
        try:
            # The server answers every ping: silence means that it cannot be reached any more.
            async with asyncio.timeout(_SILENCE_SECONDS):
                number, length = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
                if length > _LARGEST:
                    raise self._lost(
                        messages.MalformedData(f"a message of {length} bytes exceeds the maximum of {_LARGEST}")
                    )
                return number, await self._reader.readexactly(length)
        except TimeoutError:
            raise PlatformUnavailable(
                f"the Mumble server at {self._address} has been silent for {_SILENCE_SECONDS:g} s"
            ) from None
        except (OSError, asyncio.IncompleteReadError) as error:
            raise self._lost(error) from error

    def _lost(self, error: Exception) -> PlatformUnavailable:
        closed = isinstance(error, asyncio.IncompleteReadError)
        why = "the server closed it" if closed else str(error) or type(error).__name__
        return PlatformUnavailable(f"the connection to the Mumble server at {self._address} broke: {why}")

    def _message(self, number: int, body: bytes) -> messages.Message | None:
        kind = messages.KINDS.get(number)
        try:
            return None if kind is None else messages.decode_protobuf(kind, body)
        except messages.MalformedData as error:
            raise self._lost(error) from error

    def _event(self, message: messages.Message | None) -> Event | None:
        match message:
            case messages.UserState():
                self.people.user(message)
            case messages.UserRemove():
                if message.session == self.session:
                    what = "banned" if message.ban else "kicked"
                    why = f": {message.reason}" if message.reason else ""
                    raise PlatformRefused(f"the bot was {what} from the Mumble server at {self._address}{why}")
                person = self.people.gone(message.session)
                return None if person is None else PersonLeft(person)
            case messages.ChannelState():
                self.people.channel(message)
            case messages.ChannelRemove():
                self.people.channels.pop(message.channel_id or 0, None)
            case messages.ServerConfig() if message.message_length is not None:
                self.message_length = message.message_length
            case messages.Reject():
                said = message.reason or "no reason given"
                why = _REFUSALS.get(message.type or 0, said)
                text = f"the Mumble server at {self._address} rejected the bot: {why} ({said})"
                raise PlatformUnavailable(text) if message.type in _PASSING else PlatformRefused(text)
            case messages.PermissionDenied():
                missing = f"permission {message.permission or 0:#x} is missing"
                return Denied(message.reason or _DENIALS.get(message.type, missing))
            case messages.TextMessage():
                person = self.people.persons.get(message.actor or 0)
                if person is None or person.session == self.session:
                    # Announcements of the server have no author.
                    return None
                private = self.session in message.session
                return TextReceived(person, None if private else self.me.channel, message.message or "")
        return None

    def _voice(self, body: bytes) -> Event | None:
        try:
            packet = messages.decode_packet(body)
        except messages.MalformedData as error:
            # It comes from another client; a broken client must not end the bot's connection.
            _log.debug("a voice packet was dropped: %s", error)
            return None
        person = None if packet is None else self.people.persons.get(packet.session)
        return None if packet is None or person is None else VoiceReceived(person, packet)

    async def _ping(self) -> None:
        """Send a ping every few seconds; a server closes connections without them."""
        try:
            while True:
                await asyncio.sleep(_PING_SECONDS)
                await self.send(messages.Ping(int(time.monotonic() * 1000)))
        except PlatformUnavailable as error:
            # The reader of the connection fails as well, and reports it.
            _log.debug("no ping could be sent: %s", error)
