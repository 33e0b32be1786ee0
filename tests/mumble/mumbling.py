"""A real Mumble server for tests, and people on it."""

from __future__ import annotations

import asyncio
import getpass
import shutil
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from numpy.typing import NDArray

from aforesaid.bots.mumble.link import Address, Event, Link, RateLimit, TextReceived, VoiceReceived
from aforesaid.bots.mumble.speech import OpusReader, SpeechOutput, as_opus, as_wav
from mumble.speaking import sound_of, words_of

SERVER: Final = shutil.which("mumble-server", path="/usr/sbin:/usr/bin") or shutil.which("murmurd", path="/usr/sbin")
needs_server: Final = pytest.mark.skipif(
    SERVER is None, reason="Debian's mumble-server is not installed, so nothing was tried against a real server"
)
needs_openssl: Final = pytest.mark.skipif(
    shutil.which("openssl") is None, reason="openssl is not installed, so no certificate could be made"
)
SUPERUSER: Final = "SuperUser"
PASSWORD: Final = "of the super user"  # noqa: S105 - of a server that lives for a test
_PATIENCE: Final = 60.0
_SPEECH_ENDS: Final = 5.0
"""Seconds without packets after which speech is over: a server may drop any packet, also the last."""


class MumbleServer:
    """A server on loopback with a database of its own. The port stays the same when it is started again."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        given = {
            "database": folder / "mumble.sqlite",
            "host": "127.0.0.1",
            "port": self.port,
            "logfile": "",
            "pidfile": "",
            "ice": "",
            "dbus": "",
            "bonjour": "false",
            "uname": getpass.getuser(),
            "kdfiterations": 1000,
            "messageburst": 1000,
            "messagelimit": 1000,
            # Tests come and go from one address.
            "autobanAttempts": 0,
            **settings,
        }
        self._ini = folder / "mumble.ini"
        self._ini.write_text("".join(f"{key}={value}\n" for key, value in given.items()), encoding="utf-8")
        self._process: subprocess.Popen[bytes] | None = None

    def allow_superuser(self) -> None:
        """Connect as the administrator."""
        told = [str(SERVER), "-ini", str(self._ini), "-supw", PASSWORD]
        subprocess.run(told, check=True, capture_output=True, timeout=_PATIENCE)

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self.port)

    def start(self) -> None:
        log = self.folder / "mumble.log"
        with log.open("wb") as file:
            self._process = subprocess.Popen([str(SERVER), "-fg", "-ini", str(self._ini)], stdout=file, stderr=file)
        until = time.monotonic() + _PATIENCE
        while b"Server listening" not in log.read_bytes():
            assert self._process.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < until, log.read_text(encoding="utf-8")
            time.sleep(0.02)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_PATIENCE)
            self._process = None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(_PATIENCE)
            self._process = None


class Someone:
    """A connected person, who records all events."""

    def __init__(self, link: Link) -> None:
        self.link = link
        self.seen: list[Event] = []
        self.ended: Exception | None = None
        self._news = asyncio.Event()

    async def listen(self) -> None:
        try:
            async for event in self.link.events():
                self.seen.append(event)
                self._news.set()
        except Exception as error:
            self.ended = error
            self._news.set()

    async def told(self) -> str:
        """Wait for the next text that somebody writes, and return it."""
        event = await self.wait(lambda event: isinstance(event, TextReceived))
        assert isinstance(event, TextReceived)
        return event.html

    async def say(self, text: str, *, whisper_to: int | None = None) -> None:
        """Say something aloud."""
        await SpeechOutput(self.link).speak(as_opus(sound_of(text), 40_000), whisper_to=whisper_to)

    async def hears(self) -> str:
        """Wait until somebody has said something, and return it in words."""
        return await asyncio.to_thread(words_of, as_wav(await self.spoken_to()))

    async def spoken_to(self) -> NDArray[np.int16]:
        """Wait until somebody has said something, and return how it sounds."""
        reader = OpusReader()
        said: list[NDArray[np.int16]] = []
        while True:
            try:
                patience = _SPEECH_ENDS if said else _PATIENCE
                event = await self.wait(lambda event: isinstance(event, VoiceReceived), patience)
            except TimeoutError:
                if not said:
                    raise
                return np.concatenate(said)
            assert isinstance(event, VoiceReceived)
            said.append(reader.read(event.packet.opus))
            if event.packet.last:
                return np.concatenate(said)

    async def wait(self, found: Callable[[Event], bool], patience: float = _PATIENCE) -> Event:
        """Wait for an event, which may have been before, and take it out."""
        try:
            async with asyncio.timeout(patience):
                while True:
                    for at, event in enumerate(self.seen):
                        if found(event):
                            return self.seen.pop(at)
                    assert self.ended is None, self.ended
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise TimeoutError(f"it did not come within {patience:g} s, but these did: {self.seen}") from None


@asynccontextmanager
async def connect(
    address: Address, name: str, password: str | None = None, *, rate_limit: RateLimit | None = None
) -> AsyncIterator[Link]:
    """Connect to a server and disconnect at the end."""
    link = await Link.open(address, name, password, rate_limit or RateLimit())
    try:
        yield link
    finally:
        await link.close()


@asynccontextmanager
async def someone(address: Address, name: str, password: str | None = None) -> AsyncIterator[Someone]:
    """Let somebody onto a server."""
    async with connect(address, name, password, rate_limit=RateLimit(1000, 1000)) as link:
        person = Someone(link)
        listening = asyncio.create_task(person.listen())
        try:
            yield person
        finally:
            listening.cancel()
            with suppress(asyncio.CancelledError):
                await listening


async def until(true: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    async with asyncio.timeout(_PATIENCE):
        while not true():
            await asyncio.sleep(0.01)


def make_certificate(folder: Path, name: str) -> Path:
    """Make a certificate as a Mumble client does for its user: one file with the key and the certificate."""
    key, made = folder / "key.pem", folder / "own.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}", "-days", "2"]
        + ["-keyout", str(key), "-out", str(made)],
        check=True,
        capture_output=True,
    )
    made.write_bytes(key.read_bytes() + made.read_bytes())
    return made
