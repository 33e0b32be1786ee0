"""Routes for keys."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.server.api.params import Body, Identifier, Moment
from aforesaid.server.auth import Credential, Role
from aforesaid.server.auth.keys import Key
from aforesaid.server.dependencies import Admin, StateDep, require_all_spaces
from aforesaid.server.state import AppState

router = APIRouter(tags=["keys"])


class NewKey(Body):
    """A key to create."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"user": {"type": "string"}}, "required": ["user"]},
            "then": {"properties": {"space": {"type": "string"}}, "required": ["space"]},
        }
    )

    name: Identifier = Field(description="Its name in the audit log.", examples=["my-app"])
    role: Role = Field(examples=["app"])
    space: Identifier | None = Field(default=None, description="Limits the key to one space. Default: all spaces.")
    user: Identifier | None = Field(default=None, description="Limits the key to one user; needs `space`.")
    expires_at: Moment | None = None


class KeyShape(BaseModel):
    """A key without its secret."""

    id: str
    name: str
    role: Role
    space: str | None
    user: str | None
    created_at: datetime
    expires_at: datetime | None
    last_used: datetime | None = Field(description="When a request last came with it; null if none did.")


class MadeKey(KeyShape):
    """A new key with its token."""

    token: str = Field(description="The key itself. It is shown this once.")


@router.get("/keys", summary="List keys")
async def list_keys(who: Admin, here: StateDep) -> list[KeyShape]:
    """Return all keys without their secrets. Needs an admin key for all spaces."""
    require_all_spaces(who)
    await here.memory.record_access("keys.read", "keys", actor=who.actor, space=DEFAULT_SPACE)
    used = await asyncio.to_thread(here.key_use.all)
    return [_shown(key, used.get(key.id)) for key in here.keys.all()]


@router.post("/keys", status_code=201, summary="Make a key")
async def make_key(who: Admin, here: StateDep, new: NewKey) -> MadeKey:
    """Create a key. Needs an admin key for all spaces."""
    require_all_spaces(who)
    # In a thread, because another process may hold the file lock and the disk may be slow.
    key, token = await asyncio.to_thread(
        here.keys.add, new.name, new.role, space=new.space, user=new.user, expires_at=new.expires_at
    )
    await _record(here, who, "key.add", key)
    return MadeKey(token=str.__str__(token), **_shown(key, None).model_dump())


@router.delete("/keys/{key_id}", summary="Take a key away")
async def remove_key(
    who: Admin, here: StateDep, key_id: Annotated[str, Path(min_length=1, max_length=100, examples=["0a1b2c3d"])]
) -> KeyShape:
    """Revoke a key. It is refused immediately, and its event streams end."""
    require_all_spaces(who)
    removed = await asyncio.to_thread(here.keys.remove, key_id)
    here.feed.check_credentials()
    await _record(here, who, "key.remove", removed)
    return _shown(removed, (await asyncio.to_thread(here.key_use.all)).get(removed.id))


async def _record(here: AppState, who: Credential, action: str, key: Key) -> None:
    """Add a row about a key to the audit log of its space; for a key for all spaces, of the default one."""
    subject = f"key {key.id} ({key.role}, {key.name})"
    await here.memory.record_access(action, subject, actor=who.actor, space=key.space or DEFAULT_SPACE)


def _shown(key: Key, last_used: datetime | None) -> KeyShape:
    return KeyShape(
        id=key.id,
        name=key.name,
        role=key.role,
        space=key.space,
        user=key.user,
        created_at=datetime.fromisoformat(key.created_at),
        expires_at=None if key.expires_at is None else datetime.fromisoformat(key.expires_at),
        last_used=last_used,
    )
