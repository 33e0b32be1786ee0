"""Authenticates requests by their headers, and signs browsers in and out."""

from __future__ import annotations

import math
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Form, Security
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.memory import Memory
from aforesaid.server.auth import SESSION_SECONDS, Credential, Role, hash_of
from aforesaid.server.form_errors import page_of_form
from aforesaid.server.guard import OTHER_ORIGIN
from aforesaid.server.languages import COOKIE as LANGUAGE_COOKIE
from aforesaid.server.problems import page, refusal
from aforesaid.server.state import AppState

MCP_PATH: Final = "/mcp"
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
"""The address of the metadata. The path of the resource may follow."""
_HEADERS: Final = {"Access-Control-Allow-Origin": "*", "Cache-Control": "max-age=3600"}
"""Clients in a browser read it from pages of other servers. It has no secrets."""


def routes(authorization_servers: Sequence[str]) -> list[Route]:
    """Return the routes of the metadata. Without authorization servers, keys are made by the operator."""

    async def metadata(request: Request) -> JSONResponse:
        found: dict[str, object] = {
            "resource": f"{request.url.scheme}://{request.url.netloc}{MCP_PATH}",
            "resource_name": "Aforesaid",
            "bearer_methods_supported": ["header"],
        }
        if authorization_servers:
            found["authorization_servers"] = list(authorization_servers)
        return JSONResponse(found, headers=_HEADERS)

    return [
        Route(path, metadata, methods=["GET"], include_in_schema=False) for path in (WELL_KNOWN, WELL_KNOWN + MCP_PATH)
    ]


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
            length = request.headers.get("content-length", "0")
            short = length.isdecimal() and int(length) <= _DRAINED_BYTES
            if not short or "transfer-encoding" in request.headers:
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


async def identify(request: Request) -> Credential:
    """Return the credential that `Authentication` found. Raises 403 for a form that another site made."""
    who = credential_of(request)
    if request.method in _SAFE_METHODS or who.csrf is None:
        return who
    sent = request.headers.get("x-csrf-token")
    if sent is None and request.headers.get("content-type", "").startswith(
        ("application/x-www-form-urlencoded", "multipart/form-data")
    ):
        field = (await request.form()).get("csrf")
        sent = field if isinstance(field, str) else None
    if sent is None or not secrets.compare_digest(sent.encode(), who.csrf.encode()):
        raise HTTPException(403, "The form's token is missing or old; reload the page and try again.")
    return who


def too_many(wait: float, words: str) -> HTTPException:
    """Return a 429 error with the seconds to wait in Retry-After."""
    return HTTPException(429, words, {"Retry-After": str(math.ceil(wait))})


def _unauthorized(request: Request, words: str, **challenge: str) -> HTTPException:
    """Return a 401 error. Clients of MCP learn where the metadata of OAuth are (RFC 9728)."""
    if request.url.path == MCP_PATH:
        challenge["resource_metadata"] = f"{request.url.scheme}://{request.url.netloc}{WELL_KNOWN}{MCP_PATH}"
    parameters = ", ".join(f'{name}="{value}"' for name, value in challenge.items())
    return HTTPException(401, words, {"WWW-Authenticate": f"Bearer {parameters}".strip()})


_bearer: Final = HTTPBearer(auto_error=False, description="A key that `aforesaid key add` made.")


def state_of(request: Request) -> AppState:
    found: AppState = request.app.state.served
    return found


def _memory(request: Request) -> Memory:
    return state_of(request).memory


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


router = APIRouter(include_in_schema=False)

_LANGUAGE_SECONDS: Final = 365 * 24 * 60 * 60


@router.get("/login")
async def sign_in(request: Request, here: StateDep, token: str | None = None, next: str = "/") -> Response:  # noqa: A002
    """Show the sign-in page; with a token, as in the ready link, sign in at once."""
    if token is None:
        return page(request, "login.html", next=_local(next), wrong=False)
    return await _enter(request, here, token, next)


@router.post("/login")
async def sign_in_by_form(
    request: Request,
    here: StateDep,
    token: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/",  # noqa: A002 - the name that is usual for it
) -> Response:
    return await _enter(request, here, token.strip(), next)


@router.post("/language")
async def choose_language(request: Request, language: Annotated[str, Form()] = "") -> Response:
    """Remember the language of this browser in a cookie, and show the page again. Without one, forget it."""
    answer = RedirectResponse(str(page_of_form(request) or "/"), 303)
    if language in request.app.state.languages.by_code:
        answer.set_cookie(LANGUAGE_COOKIE, language, max_age=_LANGUAGE_SECONDS, httponly=True, samesite="lax")
    else:
        answer.delete_cookie(LANGUAGE_COOKIE)
    return answer


@router.post("/logout")
async def sign_out(request: Request, here: StateDep, who: Reader, everywhere: Annotated[str, Form()] = "") -> Response:
    """End the session of this browser, or of all browsers that signed in with the same key or link."""
    if everywhere:
        here.sessions.close_all(who)
    here.sessions.close(request.cookies.get(here.cookie, ""))
    here.feed.check_credentials()
    action = "sign-out everywhere" if everywhere else "sign-out"
    await here.memory.record_access(action, "panel", actor=who.actor, space=who.space or DEFAULT_SPACE)
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(here.cookie)
    return answer


async def _enter(request: Request, here: AppState, token: str, after: str) -> Response:
    who = here.credential_of(token)
    if who is None:
        count_failure(request, here, token)
        return page(request, "login.html", status=401, next=_local(after), wrong=True)
    # The answer leads on to an address without the token, so that it does not stay in the history of the browser.
    await here.memory.record_access("sign-in", "panel", actor=who.actor, space=who.space or DEFAULT_SPACE)
    answer = RedirectResponse(_local(after), 303)
    answer.set_cookie(
        here.cookie,
        here.sessions.open(who),
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
    )
    return answer


def _local(address: str) -> str:
    """Return an address on this server, whatever was asked for."""
    inside = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if inside else "/"
