"""Keys for apps and people: made, listed with their last use, revoked."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Final

from fastapi import APIRouter, Form
from starlette.responses import Response

from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import InvalidInput
from aforesaid.server.auth import ROLES
from aforesaid.server.auth.keys import Key
from aforesaid.server.dependencies import Admin, StateDep, require_all_spaces
from aforesaid.server.languages import N_, translate
from aforesaid.server.panel import forms
from aforesaid.server.panel.view import Looking, View
from aforesaid.server.state import AppState
from aforesaid.settings import Secret

router = APIRouter()

ROLE_WORDS: Final = {
    "reader": N_("can see everything and change nothing"),
    "app": N_("can store messages and correct memories: for apps, bots and the proxy"),
    "admin": N_("can also change settings and keys, export, erase and read the audit log"),
}
"""What each role may do."""


@router.get("/keys")
async def keys(view: Looking, who: Admin, here: StateDep) -> Response:
    """Show all keys, the newest first."""
    require_all_spaces(who)
    await here.memory.record_access("keys.read", "keys", actor=who.viewer, space=DEFAULT_SPACE)
    return await _page(view, here)


@router.post("/keys")
async def make(
    view: Looking,
    who: Admin,
    here: StateDep,
    name: Annotated[str, Form()] = "",
    role: Annotated[str, Form()] = "",
    key_space: Annotated[str, Form()] = "",
    key_user: Annotated[str, Form()] = "",
    expires_at: Annotated[str, Form()] = "",
) -> Response:
    """Make a key, and show it this once."""
    require_all_spaces(who)
    if not name.strip():
        raise InvalidInput(translate("give the key a name, such as the app that uses it"), "name")
    if key_user.strip() and not key_space.strip():
        raise InvalidInput(translate("name the space of this person too"), "key_space")
    key, token = await asyncio.to_thread(
        here.keys.add,
        name.strip(),
        role,
        space=key_space.strip() or None,
        user=key_user.strip() or None,
        expires_at=_end_of_day(expires_at.strip()),
    )
    await _record(here, who.actor, "key.add", key)
    return await _page(view, here, made=key, token=token)


@router.post("/keys/{key_id}/revoke")
async def revoke(view: Looking, who: Admin, here: StateDep, key_id: str) -> Response:
    """Revoke a key. It is refused at once, and its event streams end."""
    require_all_spaces(who)
    removed = await asyncio.to_thread(here.keys.remove, key_id)
    here.feed.check_credentials()
    await _record(here, who.actor, "key.remove", removed)
    return view.done(translate("Revoked: {name}", name=removed.name), view.address("/keys"))


async def _page(view: View, here: AppState, made: Key | None = None, token: Secret | None = None) -> Response:
    used = await asyncio.to_thread(here.key_use.all)
    now = datetime.now(UTC)
    rows = [
        (key, datetime.fromisoformat(key.created_at), _moment(key.expires_at), used.get(key.id), key.expired(now))
        for key in reversed(here.keys.all())
    ]
    return view.page(
        "keys.html",
        keys=rows,
        roles=[(role, ROLE_WORDS[role]) for role in ROLES],
        spaces=await view.spaces(),
        people=await view.offered(),
        tomorrow=(now + timedelta(days=1)).date().isoformat(),
        made=made,
        token="" if token is None else str.__str__(token),
    )


def _moment(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)


def _end_of_day(given: str) -> datetime | None:
    """Return the end of a day in UTC; None for no day."""
    if not given:
        return None
    try:
        day = date.fromisoformat(given)
    except ValueError:
        raise InvalidInput(forms.not_a_day(given), "expires_at") from None
    if day < datetime.now(UTC).date():
        raise InvalidInput(translate("this day is over; choose a day to come"), "expires_at")
    return datetime.combine(day, time(23, 59, 59), UTC)


async def _record(here: AppState, actor: str, action: str, key: Key) -> None:
    subject = f"key {key.id} ({key.role}, {key.name})"
    await here.memory.record_access(action, subject, actor=actor, space=key.space or DEFAULT_SPACE)
