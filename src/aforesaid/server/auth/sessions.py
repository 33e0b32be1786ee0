"""Browser sessions. They end when the server stops."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from aforesaid.server.auth.credential import Credential
from aforesaid.server.auth.keys import Keys, hash_of
from aforesaid.settings import Secret

COOKIE: Final = "aforesaid_session"
LASTS_SECONDS: Final = 7 * 24 * 60 * 60
_MOST: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Session:
    credential: Credential
    until: float


class Sessions:
    """Browser sessions by the hash of their cookie."""

    def __init__(self, keys: Keys, clock: Callable[[], float] = time.monotonic) -> None:
        self._keys = keys
        self._clock = clock
        self._sessions: dict[str, _Session] = {}

    def open(self, credential: Credential) -> Secret:
        """Sign a browser in. Return the value of its cookie."""
        self._tidy()
        cookie = Secret(secrets.token_urlsafe(32))
        signed_in = replace(credential, csrf=secrets.token_urlsafe(24))
        self._sessions[hash_of(cookie)] = _Session(signed_in, self._clock() + LASTS_SECONDS)
        return cookie

    def find(self, cookie: str) -> Credential | None:
        """Return the credential of a cookie; None if its key was revoked."""
        session = self._sessions.get(hash_of(cookie))
        if session is None or session.until <= self._clock():
            return None
        kind, _, number = session.credential.id.partition(":")
        if kind == "key" and self._keys.get(number) is None:
            return None
        return session.credential

    def close(self, cookie: str) -> None:
        """Sign a browser out."""
        self._sessions.pop(hash_of(cookie), None)

    def close_all(self, credential: Credential) -> int:
        """Sign out every browser that signed in with the same credential. Return how many there were."""
        found = [name for name, session in self._sessions.items() if session.credential.id == credential.id]
        for name in found:
            del self._sessions[name]
        return len(found)

    def _tidy(self) -> None:
        now = self._clock()
        for name in [name for name, session in self._sessions.items() if session.until <= now]:
            del self._sessions[name]
        while len(self._sessions) >= _MOST:
            del self._sessions[next(iter(self._sessions))]
