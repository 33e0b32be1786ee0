"""Authenticates requests by their headers, and signs browsers in and out."""

from __future__ import annotations

import math
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated, Final

from fastapi import Depends, Security
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from aforesaid.memory import Memory
from aforesaid.server.auth import Credential, Role
from aforesaid.server.auth.keys import hash_of
from aforesaid.server.guard import OTHER_ORIGIN
from aforesaid.server.problems import refusal
from aforesaid.server.state import AppState

MCP_PATH: Final = "/mcp"
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
"""The address of the metadata. The path of the resource may follow."""
_HEADERS: Final = {"Access-Control-Allow-Origin": "*", "Cache-Control": "max-age=3600"}
"""Clients in a browser read it from pages of other servers. It has no secrets."""


def metadata_address(request: Request) -> str:
    """Return the address of the metadata, under the name that the request called the server by."""
    return f"{_origin(request)}{WELL_KNOWN}{MCP_PATH}"


def routes(authorization_servers: Sequence[str]) -> list[Route]:
    """Return the routes of the metadata. Without authorization servers, keys are made by the operator."""

    async def metadata(request: Request) -> JSONResponse:
        found: dict[str, object] = {
            "resource": f"{_origin(request)}{MCP_PATH}",
            "resource_name": "Aforesaid",
            "bearer_methods_supported": ["header"],
        }
        if authorization_servers:
            found["authorization_servers"] = list(authorization_servers)
        return JSONResponse(found, headers=_HEADERS)

    return [
        Route(path, metadata, methods=["GET"], include_in_schema=False) for path in (WELL_KNOWN, WELL_KNOWN + MCP_PATH)
    ]


def _origin(request: Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc}"


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


_bearer: Final = HTTPBearer(auto_error=False, description="A key that `aforesaid key add` made.")


def state_of(request: Request) -> AppState:
    found: AppState = request.app.state.served
    return found


def _memory(request: Request) -> Memory:
    return state_of(request).memory


async def identify(request: Request) -> Credential:
    """Return the credential that `Authentication` found. Raises 403 for a form that another site made."""
    who = credential_of(request)
    await check_csrf(request, who)
    return who


async def admitted(request: Request, role: Role) -> Credential:
    """Return the credential of a request, or refuse one without this role."""
    who = await identify(request)
    if not who.may(role):
        raise HTTPException(403, f"This needs the role {role}; the key has the role {who.role}.")
    return who


def _requires(role: Role) -> Callable[[Request, object], Awaitable[Credential]]:
    async def check(request: Request, _: Annotated[object, Security(_bearer)]) -> Credential:
        return await admitted(request, role)

    return check


def require_all_spaces(who: Credential) -> None:
    """Refuse a key that is limited to one space or one user. Raises 403."""
    if not who.everywhere:
        raise HTTPException(403, "This concerns all spaces; the key is limited to one of them.")


async def _overseer(who: Annotated[Credential, Depends(_requires("reader"))]) -> Credential:
    require_all_spaces(who)
    return who


StateDep = Annotated[AppState, Depends(state_of)]
MemoryDep = Annotated[Memory, Depends(_memory)]
Reader = Annotated[Credential, Depends(_requires("reader"))]
App = Annotated[Credential, Depends(_requires("app"))]
Admin = Annotated[Credential, Depends(_requires("admin"))]
Overseer = Annotated[Credential, Depends(_overseer)]
"""A key for all spaces, of any role."""
