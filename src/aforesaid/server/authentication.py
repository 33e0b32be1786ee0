"""Authenticates requests by their headers, before the body is read."""

from __future__ import annotations

import math
import secrets
from dataclasses import replace
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from aforesaid.server.auth import Credential
from aforesaid.server.auth.keys import hash_of
from aforesaid.server.guard.hosts import OTHER_ORIGIN
from aforesaid.server.problems import refusal
from aforesaid.server.resource_metadata import MCP_PATH, WELL_KNOWN, metadata_address
from aforesaid.server.state import AppState

CREDENTIAL: Final = "aforesaid.credential"
"""The key of the credential in the ASGI scope."""
_OPEN: Final = ("/healthz", "/readyz", "/login", "/language", "/openapi.json")
_OPEN_BELOW: Final = ("/static/", WELL_KNOWN)
_SAFE_METHODS: Final = ("GET", "HEAD", "OPTIONS")
_LOCAL: Final = Credential("local", "everybody on this machine", "admin", default_user="local")
_DRAINED_BYTES: Final = 64 * 1024
"""Maximum bytes of a refused request's body that are read; a longer one closes the connection."""


class Authentication:
    """Refuses requests without a valid credential, and requests beyond the rate limit of a credential."""

    def __init__(self, app: ASGIApp, state: AppState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with its credential, or refuse it."""
        if scope["type"] != "http" or scope["path"] in _OPEN or scope["path"].startswith(_OPEN_BELOW):
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        try:
            who = authenticate(request, self._state)
            scope["caller"] = who.id
            if wait := self._state.rates.take(who.id):
                raise too_many(wait, "This key exceeds its rate limit (server.requests_per_second).")
        except HTTPException as error:
            answer = refusal(request, error)
            if not _is_short(request):
                answer.headers["Connection"] = "close"
            await answer(scope, receive, send)
            return
        if self._state.page_views.is_refresh(request, who):
            who = replace(who, refreshing=True)
        scope[CREDENTIAL] = who
        request.state.who = who
        await self._app(scope, receive, send)


def authenticate(request: Request, state: AppState) -> Credential:
    """Return the credential of a request, by its key or by the cookie of a signed-in browser. Raises 401 or 429.

    Clients of Anthropic's API send the key as `x-api-key`.
    """
    scheme, _, rest = request.headers.get("authorization", "").partition(" ")
    token = rest.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key", "").strip()
    who = state.credential_of(token) if token else _signed_in(request, state)
    if who is not None:
        return who
    if not state.options.auth:
        return _LOCAL  # Clients of the proxy always send some key; without authentication it means nothing.
    if token:
        # For the access log: which key a client still sends, never the key itself.
        if (refused := state.keys.describe_refused(token)) is not None:
            request.scope["caller"] = refused
        count_failure(request, state, token)
        raise _unauthorized(request, "The key is unknown or has expired.", error="invalid_token")
    raise _unauthorized(request, "A key is needed: Authorization: Bearer …, or x-api-key: …")


def _signed_in(request: Request, state: AppState) -> Credential | None:
    """Return the credential of a signed-in browser.

    Pages of other origins need a key: a browser may send along the cookie of whoever is signed in to the panel.
    """
    if request.scope.get(OTHER_ORIGIN):
        return None
    return state.sessions.find(request.cookies.get(state.cookie, ""))


def credential_of(request: Request) -> Credential:
    """Return the credential that `Authentication` found for a request."""
    found: Credential = request.scope[CREDENTIAL]
    return found


def is_still_valid(request: Request, state: AppState) -> bool:
    """Return whether the credential that a request came with still exists and allows the same."""
    try:
        return authenticate(request, state) == credential_of(request)
    except HTTPException:
        return False


def count_failure(request: Request, state: AppState, token: str) -> None:
    """Count a wrong key against its sender. Raises 429 for one who fails too often.

    A valid key never gets here: nobody is refused because others at the same address fail.
    """
    address = request.client.host if request.client else "?"
    wait = state.failures_by_key.take(f"{address} {hash_of(token)}") or state.failures_by_address.take(address)
    if wait:
        raise too_many(wait, "Too many wrong keys came from this address.")


async def check_csrf(request: Request, who: Credential) -> None:
    """Refuse cross-site request forgery."""
    if request.method in _SAFE_METHODS or who.csrf is None:
        return
    sent = request.headers.get("x-csrf-token")
    if sent is None and request.headers.get("content-type", "").startswith(
        ("application/x-www-form-urlencoded", "multipart/form-data")
    ):
        field = (await request.form()).get("csrf")
        sent = field if isinstance(field, str) else None
    if sent is None or not secrets.compare_digest(sent.encode(), who.csrf.encode()):
        raise HTTPException(403, "The form's token is missing or old; reload the page and try again.")


def too_many(wait: float, words: str) -> HTTPException:
    """Return a 429 error with the seconds to wait in Retry-After."""
    return HTTPException(429, words, {"Retry-After": str(math.ceil(wait))})


def _unauthorized(request: Request, words: str, **challenge: str) -> HTTPException:
    """Return a 401 error. Clients of MCP learn where the metadata of OAuth are (RFC 9728)."""
    if request.url.path == MCP_PATH:
        challenge["resource_metadata"] = metadata_address(request)
    parameters = ", ".join(f'{name}="{value}"' for name, value in challenge.items())
    return HTTPException(401, words, {"WWW-Authenticate": f"Bearer {parameters}".strip()})


def _is_short(request: Request) -> bool:
    """Return whether the body of a request is short enough to be read and discarded."""
    length = request.headers.get("content-length", "0")
    return "transfer-encoding" not in request.headers and length.isdecimal() and int(length) <= _DRAINED_BYTES
