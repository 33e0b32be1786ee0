"""What routes ask for, and get passed: the memory, and who is asking."""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from fastapi import Depends, HTTPException, Request, Security
from fastapi.security import HTTPBearer

from aforesaid.memory import Memory
from aforesaid.server.auth import Credential, Keys, Role, Sessions
from aforesaid.server.auth.keys import hash_of
from aforesaid.server.auth.sessions import COOKIE
from aforesaid.server.guard.rate import Rates
from aforesaid.server.metrics import HttpMetrics
from aforesaid.server.options import ServerOptions
from aforesaid.server.proxy.remembering import Remembering
from aforesaid.server.proxy.upstream import Upstream
from aforesaid.settings import Secret

_SAFE: Final = ("GET", "HEAD", "OPTIONS")
_GUESSES_PER_SECOND: Final = 0.5
_GUESSES: Final = 20
_NOBODY: Final = Credential("local", "everybody on this machine", "admin")
_bearer: Final = HTTPBearer(auto_error=False, description="A key that `aforesaid key add` made.")


@dataclass(slots=True)
class AppState:
    """What one running application has."""

    memory: Memory
    options: ServerOptions
    keys: Keys
    sessions: Sessions
    http: HttpMetrics
    rates: Rates
    guesses: Rates = field(default_factory=lambda: Rates(_GUESSES_PER_SECOND, _GUESSES))
    link: Secret = field(default_factory=lambda: Secret(secrets.token_urlsafe(32)))
    """The token of the ready link. It counts as long as the server runs."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the server stops: answers without an end have to come to one."""
    upstream: Upstream = field(init=False)
    remembering: Remembering = field(init=False)
    _finishing: set[asyncio.Task[None]] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Prepare the proxy."""
        self.upstream = Upstream(self.options.settings)
        self.remembering = Remembering(self.memory, self.options.serving)

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something to the end, whatever becomes of the request that began it. The server stops after it."""
        task = asyncio.create_task(work)
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)

    async def close(self) -> None:
        """Finish what was begun, and let go of all connections."""
        self.stopping.set()
        await asyncio.gather(*self._finishing, return_exceptions=True)
        await self.upstream.close()

    @property
    def cookie(self) -> str:
        """The name of the cookie: browsers tell servers on one machine apart by their name alone, not by their port."""
        return f"{COOKIE}_{self.options.serving.port}"

    def credential_of(self, token: str) -> Credential | None:
        """Return who has a token."""
        if secrets.compare_digest(hash_of(token), hash_of(self.link)):
            return Credential("link", "the ready link", "admin")
        key = self.keys.find(token)
        return None if key is None else key.credential


def served(request: Request) -> AppState:
    """Return what the application of a request has."""
    found: AppState = request.app.state.served
    return found


def _memory(request: Request) -> Memory:
    return served(request).memory


def guard_guesses(request: Request) -> str:
    """Refuse whoever has guessed wrong too often. Return the caller to count a wrong guess of."""
    caller = request.client.host if request.client else "?"
    if wait := served(request).guesses.empty(caller):
        raise _too_many(wait, "Too many wrong keys came from this address.")
    return caller


async def _who(request: Request, _: Annotated[object, Security(_bearer)]) -> Credential:
    return await identify(request)


async def identify(request: Request) -> Credential:
    """Find out who is asking, or refuse; and count it against what they may ask for. Once for each request."""
    here = served(request)
    who = await _identified(request, here)
    request.state.who = who
    request.scope["caller"] = who.id
    if wait := here.rates.take(who.id):
        raise _too_many(wait, "This key asks for more than it may (server.requests_per_second).")
    return who


async def _identified(request: Request, here: AppState) -> Credential:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        caller = guard_guesses(request)
        who = here.credential_of(token.strip())
        if who is None:
            here.guesses.take(caller)
            raise _unknown("The key is unknown, or its time is over.")
        return who
    cookie = request.cookies.get(here.cookie)
    signed_in = None if cookie is None else here.sessions.find(cookie)
    if signed_in is not None:
        await _check_csrf(request, signed_in)
        return signed_in
    if not here.options.auth:
        return _NOBODY
    raise _unknown("A key is needed: Authorization: Bearer …")


async def _check_csrf(request: Request, who: Credential) -> None:
    """Refuse what a page of another site made a signed-in browser send."""
    if request.method in _SAFE or who.csrf is None:
        return
    sent = request.headers.get("x-csrf-token")
    if sent is None and request.headers.get("content-type", "").startswith(
        ("application/x-www-form-urlencoded", "multipart/form-data")
    ):
        field_ = (await request.form()).get("csrf")
        sent = field_ if isinstance(field_, str) else None
    if sent is None or not secrets.compare_digest(sent.encode(), who.csrf.encode()):
        raise HTTPException(403, "The form's token is missing or old; reload the page and try again.")


async def admitted(request: Request, role: Role) -> Credential:
    """Find out who is asking, or refuse whoever has not at least this role."""
    return _with_role(await identify(request), role)


def _with_role(who: Credential, role: Role) -> Credential:
    if not who.may(role):
        raise HTTPException(403, f"This needs the role {role}; the key has the role {who.role}.")
    return who


def _needs(role: Role) -> Callable[[Credential], Awaitable[Credential]]:
    async def check(who: Annotated[Credential, Depends(_who)]) -> Credential:
        return _with_role(who, role)

    return check


async def _overseer(who: Annotated[Credential, Depends(_needs("reader"))]) -> Credential:
    if not who.everywhere:
        raise HTTPException(403, "This is about all spaces together; the key is for one of them.")
    return who


def _unknown(words: str) -> HTTPException:
    return HTTPException(401, words, {"WWW-Authenticate": "Bearer"})


def _too_many(wait: float, words: str) -> HTTPException:
    return HTTPException(429, words, {"Retry-After": str(math.ceil(wait))})


Here = Annotated[AppState, Depends(served)]
MemoryDep = Annotated[Memory, Depends(_memory)]
Reader = Annotated[Credential, Depends(_needs("reader"))]
App = Annotated[Credential, Depends(_needs("app"))]
Admin = Annotated[Credential, Depends(_needs("admin"))]
Overseer = Annotated[Credential, Depends(_overseer)]
"""Whoever may see what is about all spaces together."""
