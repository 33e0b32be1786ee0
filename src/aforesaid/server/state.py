"""What one running application holds, and the dependencies of its routes."""

from __future__ import annotations

import asyncio
import logging
import secrets
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import AforesaidError, InvalidInput, NotFound, StoreError
from aforesaid.memory import Memory
from aforesaid.portability import Loaded
from aforesaid.server import ServerOptions
from aforesaid.server.auth import COOKIE, LINK, Credential, Key, Keys, KeyUse, PageViews, Sessions, hash_of
from aforesaid.server.guard import HttpMetrics, Rates
from aforesaid.server.proxy.proxy_memory import ProxyMemory
from aforesaid.server.proxy.upstream import Upstream
from aforesaid.settings import Secret
from aforesaid.store import Progress
from aforesaid.store.contract import Owner
from aforesaid.store.searches import ChangeToken

_MOST: Final = 8
"""Maximum uploads that wait for a decision. The oldest ones are dropped."""
_SECONDS: Final = 3600.0
"""An upload that nobody decided about is dropped after this time."""


@dataclass(slots=True)
class PendingImport:
    token: str
    folder: Path
    file: Path
    actor: str
    """Who uploaded it. Nobody else may import it."""
    format: str
    user: str | None
    space: str
    preview: Loaded | None = None
    running: bool = False
    phase: str = ""
    done: int = 0
    total: int = 0
    report: Loaded | None = None
    failure: AforesaidError | None = None
    began: float = field(default_factory=monotonic)

    def progress(self, phase: str, done: int, total: int) -> None:
        self.phase, self.done, self.total = phase, done, total

    @property
    def finished(self) -> bool:
        return self.report is not None or self.failure is not None

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


class PendingImports:
    def __init__(self) -> None:
        self._known: dict[str, PendingImport] = {}

    def begin(self, name: str, *, actor: str, format_name: str, user: str | None, space: str) -> PendingImport:
        """Return a place for an upload, in a folder of its own."""
        waiting = [each for each in self._known.values() if not each.running or each.finished]
        for each in waiting[: max(len(waiting) - _MOST + 1, 0)]:
            self.drop(each)
        for each in waiting:
            if each.began + _SECONDS < monotonic():
                self.drop(each)
        folder = Path(tempfile.mkdtemp(prefix="aforesaid-import-"))
        made = PendingImport(secrets.token_urlsafe(16), folder, folder / name, actor, format_name, user, space)
        self._known[made.token] = made
        return made

    def of(self, token: str, actor: str) -> PendingImport:
        """Return an upload of somebody. Raises NotFound."""
        found = self._known.get(token)
        if found is None or found.actor != actor:
            raise NotFound("this upload is not here any more; upload the file again")
        return found

    def drop(self, pending: PendingImport) -> None:
        """Forget an upload and delete its file."""
        self._known.pop(pending.token, None)
        pending.remove()

    def close(self) -> None:
        for each in list(self._known.values()):
            self.drop(each)


_log: Final = logging.getLogger("aforesaid.server")
_LOOK_SECONDS: Final = 1.0
"""Seconds between checks for changes of other processes and of keys."""


@dataclass(eq=False, slots=True)
class Subscription:
    """One stream that follows a user, or all users of a space."""

    space: str
    user: str | None
    """None for all users of the space."""
    is_valid: Callable[[], bool]
    """Returns whether the credential of the stream is still valid."""
    accesses: bool
    """Whether it is woken when somebody only viewed something."""
    ended: bool = False
    certain: bool = False
    """Whether a change of this process woke it. Otherwise another process changed something, perhaps elsewhere."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self, seconds: float) -> bool:
        """Return True when there may be news or the stream has ended; False after the timeout."""
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True

    def wake(self, *, certain: bool = True) -> None:
        self.certain |= certain
        self._news.set()

    def is_about(self, owners: frozenset[Owner] | None) -> bool:
        """Return whether it follows one of these users; None stands for everybody."""
        if owners is None:
            return True
        return any(space == self.space and self.user in (None, user) for space, user in owners)

    def end(self) -> None:
        self.ended = True
        self._news.set()


class ChangeFeed:
    """All streams of one server."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._streams: set[Subscription] = set()
        self._looking: asyncio.Task[None] | None = None
        self._stop_listening: list[Callable[[], None]] = []

    @contextmanager
    def follow(
        self, space: str, user: str | None, is_valid: Callable[[], bool], *, accesses: bool
    ) -> Iterator[Subscription]:
        """Subscribe to the changes of a user, or of all users of a space; with `accesses`, also to who views them."""
        stream = Subscription(space, user, is_valid, accesses)
        self._streams.add(stream)
        if self._looking is None:
            listen = self._memory.changes.listen
            announced, changed = partial(self._wake, accesses=True), partial(self._wake, accesses=False)
            self._stop_listening = [listen(announced), listen(changed, accesses=False)]
            self._looking = asyncio.create_task(self._look())
        try:
            yield stream
        finally:
            self._streams.discard(stream)
            if not self._streams:
                for stop in self._stop_listening:
                    stop()
                self._stop_listening = []
                if self._looking is not None:
                    self._looking.cancel()
                    self._looking = None

    def check_credentials(self) -> None:
        """End the streams whose key was revoked or has expired, or whose browser was signed out."""
        for stream in tuple(self._streams):
            if not stream.is_valid():
                stream.end()

    def close(self) -> None:
        for stream in tuple(self._streams):
            stream.end()

    def _wake(self, owners: frozenset[Owner] | None, *, accesses: bool) -> None:
        for stream in self._streams:
            if stream.accesses == accesses and stream.is_about(owners):
                stream.wake()

    async def _look(self) -> None:
        """Check for changes of other processes and of keys, until there are no streams."""
        seen = await self._token()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            self.check_credentials()
            token = await self._token()
            if token != seen:
                seen = token
                for stream in self._streams:
                    stream.wake(certain=False)

    async def _token(self) -> str:
        try:
            return await self._memory.store.read(ChangeToken())
        except StoreError as error:
            # Health reports it; streams continue once the store works again.
            _log.debug("changes of other processes cannot be followed: %s", error)
            return f"failing: {error}"


_FAILURES: Final = 20
"""Wrong keys that are answered with 401 before the sender has to wait."""
_SAME_KEY_PER_SECOND: Final = 0.5
_ADDRESS_PER_SECOND: Final = 1.0
"""Higher than for one key: a client with an old key does not use up what its whole address may get wrong."""


@dataclass(slots=True)
class AppState:
    """The parts of a server that live as long as it runs."""

    memory: Memory
    options: ServerOptions
    keys: Keys
    sessions: Sessions
    http: HttpMetrics
    rates: Rates
    failures_by_key: Rates = field(default_factory=lambda: Rates(_SAME_KEY_PER_SECOND, _FAILURES))
    failures_by_address: Rates = field(default_factory=lambda: Rates(_ADDRESS_PER_SECOND, _FAILURES))
    link: Secret = field(default_factory=lambda: Secret(secrets.token_urlsafe(32)))
    """The token of the sign-in link. It is valid as long as the server runs."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server stops: endless answers end then."""
    feed: ChangeFeed = field(init=False)
    key_use: KeyUse = field(init=False)
    upstream: Upstream = field(init=False)
    proxy_memory: ProxyMemory = field(init=False)
    page_views: PageViews = field(default_factory=PageViews)
    imports: PendingImports = field(default_factory=PendingImports)
    _writing_use: bool = False
    _finishing: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.feed = ChangeFeed(self.memory)
        self.key_use = KeyUse(self.options.keys)
        self.upstream = Upstream(self.options.settings, self.memory)
        self.proxy_memory = ProxyMemory(self.memory, self.options.serving)

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work to its end, also when the request that began it is cancelled. The server stops after it."""
        task = asyncio.create_task(work)
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)

    def stop_streams(self) -> None:
        """End endless answers: the server stops."""
        self.stopping.set()
        self.feed.close()

    async def close(self) -> None:
        """Wait for work that was begun, then close all connections."""
        self.stop_streams()
        await asyncio.gather(*self._finishing, return_exceptions=True)
        await asyncio.to_thread(self.imports.close)
        await asyncio.to_thread(self.key_use.write)
        await self.upstream.close()

    @property
    def cookie(self) -> str:
        """The name of the session cookie. Browsers share cookies between ports of a machine, so the port is in it."""
        return f"{COOKIE}_{self.options.serving.port}"

    def credential_of(self, token: str) -> Credential | None:
        """Return the credential of a key or of the sign-in link; None for an unknown or expired one."""
        if secrets.compare_digest(hash_of(token), hash_of(self.link)):
            return Credential(LINK, "the ready link", "admin")
        key = self.keys.find(token)
        if key is None:
            return None
        self.key_use.mark(key.id)
        if self.key_use.is_due and not self._writing_use:
            self._writing_use = True
            self.finish(self._write_use())
        spelled = self.memory.known_ids.spelled
        return replace(key.credential, space=spelled(key.space), user=spelled(key.user))

    async def record_key(self, who: Credential, action: str, key: Key) -> None:
        """Add a row about a key to the audit log of its space; for a key for all spaces, of the default one."""
        subject = f"key {key.id} ({key.role}, {key.name})"
        await self.memory.record_access(action, subject, actor=who.actor, space=key.space or DEFAULT_SPACE)

    async def _write_use(self) -> None:
        try:
            await asyncio.to_thread(self.key_use.write)
        finally:
            self._writing_use = False


async def load_upload(
    memory: Memory,
    file: Path,
    format_name: str,
    *,
    user: str | None,
    space: str,
    dry_run: bool,
    actor: str,
    progress: Progress | None = None,
) -> Loaded:
    """Import an uploaded file. Raises InvalidInput, whose text does not tell where this machine keeps the file."""
    try:
        return await memory.load(
            file, format_name, user=user, space=space, dry_run=dry_run, progress=progress, actor=actor
        )
    except InvalidInput as error:
        raise InvalidInput(str(error).replace(str(file), "the file"), error.field or "body") from error
