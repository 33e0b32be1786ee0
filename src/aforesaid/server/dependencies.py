"""FastAPI dependencies of the routes: the memory, the application state and the credential."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Final

from fastapi import Depends, HTTPException, Request, Security
from fastapi.security import HTTPBearer

from aforesaid.memory import Memory
from aforesaid.server.auth import Credential, Role
from aforesaid.server.authentication import check_csrf, credential_of
from aforesaid.server.state import AppState

_bearer: Final = HTTPBearer(auto_error=False, description="A key that `aforesaid key add` made.")


def state_of(request: Request) -> AppState:
    """Return the state of the application that answers a request."""
    found: AppState = request.app.state.served
    return found


def _memory(request: Request) -> Memory:
    return state_of(request).memory


async def _credential(request: Request, _: Annotated[object, Security(_bearer)]) -> Credential:
    return await identify(request)


async def identify(request: Request) -> Credential:
    """Return the credential that `Authentication` found. Raises 403 for a form that another site made."""
    who = credential_of(request)
    await check_csrf(request, who)
    return who


async def admitted(request: Request, role: Role) -> Credential:
    """Return the credential of a request, or refuse one without this role."""
    return _with_role(await identify(request), role)


def _with_role(who: Credential, role: Role) -> Credential:
    if not who.may(role):
        raise HTTPException(403, f"This needs the role {role}; the key has the role {who.role}.")
    return who


def _requires(role: Role) -> Callable[[Credential], Awaitable[Credential]]:
    async def check(who: Annotated[Credential, Depends(_credential)]) -> Credential:
        return _with_role(who, role)

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
