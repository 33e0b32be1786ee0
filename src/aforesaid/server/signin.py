"""Signing a browser in with a token, and out."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Form, Request
from starlette.responses import RedirectResponse, Response

from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.server.auth import Credential
from aforesaid.server.auth.authentication import Reader, StateDep, count_failure
from aforesaid.server.auth.keys import SESSION_SECONDS
from aforesaid.server.form_errors import page_of_form
from aforesaid.server.languages import COOKIE as LANGUAGE_COOKIE
from aforesaid.server.problems import page
from aforesaid.server.state import AppState

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
    await _record(here, who, "sign-out everywhere" if everywhere else "sign-out")
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(here.cookie)
    return answer


async def _enter(request: Request, here: AppState, token: str, after: str) -> Response:
    who = here.credential_of(token)
    if who is None:
        count_failure(request, here, token)
        return page(request, "login.html", status=401, next=_local(after), wrong=True)
    # The answer leads on to an address without the token, so that it does not stay in the history of the browser.
    await _record(here, who, "sign-in")
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


async def _record(here: AppState, who: Credential, action: str) -> None:
    """Add a row to the audit log of the credential's space; for all spaces, of the default one."""
    await here.memory.record_access(action, "panel", actor=who.actor, space=who.space or DEFAULT_SPACE)


def _local(address: str) -> str:
    """Return an address on this server, whatever was asked for."""
    inside = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if inside else "/"
