"""What one running application holds."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, Final

from aforesaid.memory import Memory
from aforesaid.server.auth import LINK, Credential, Keys, KeyUse, Sessions
from aforesaid.server.auth.keys import hash_of
from aforesaid.server.auth.page_views import PageViews
from aforesaid.server.auth.sessions import COOKIE
from aforesaid.server.change_feed import ChangeFeed
from aforesaid.server.guard.rate import Rates
from aforesaid.server.metrics import HttpMetrics
from aforesaid.server.options import ServerOptions
from aforesaid.server.pending_imports import PendingImports
from aforesaid.server.proxy.proxy_memory import ProxyMemory
from aforesaid.server.proxy.upstream import Upstream
from aforesaid.settings import Secret

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
        """Prepare the proxy and the streams of events."""
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
        self._mark_used(key.id)
        spelled = self.memory.known_ids.spelled
        return replace(key.credential, space=spelled(key.space), user=spelled(key.user))

    def _mark_used(self, key_id: str) -> None:
        self.key_use.mark(key_id)
        if self.key_use.is_due and not self._writing_use:
            self._writing_use = True
            self.finish(self._write_use())

    async def _write_use(self) -> None:
        try:
            await asyncio.to_thread(self.key_use.write)
        finally:
            self._writing_use = False
