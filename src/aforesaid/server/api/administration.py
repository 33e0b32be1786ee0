"""Routes for users, keys, settings, statistics, the audit log, export, import and deletion."""

from __future__ import annotations

import asyncio
import tempfile
from bisect import bisect_right
from collections.abc import AsyncIterator
from datetime import datetime
from io import BytesIO
from operator import attrgetter
from pathlib import Path as FilePath
from typing import Annotated, Final

from fastapi import APIRouter, HTTPException, Path, Query, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator
from starlette.responses import StreamingResponse

from aforesaid.domain.checks import AlertKind, ComponentStatus
from aforesaid.domain.scope import DEFAULT_SPACE, Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.memory import Memory
from aforesaid.portability import READERS
from aforesaid.portability.exporting import LineWriter, RowsOfUser
from aforesaid.profiles.effective import check_setting
from aforesaid.server.api.params import (
    NAMES,
    PAGE,
    Body,
    Cursor,
    Identifier,
    Limit,
    Moment,
    SpaceQuery,
    Text,
    UserQuery,
    cursor_of,
    named,
    text_of,
    unknown_cursor,
)
from aforesaid.server.auth import Role
from aforesaid.server.authentication import Admin, App, MemoryDep, Overseer, Reader, StateDep, require_all_spaces
from aforesaid.server.schemas import Shape, UserPage, UserShape
from aforesaid.server.state import load_upload
from aforesaid.store.people import UsersPage

audit_router = APIRouter(tags=["audit"])


class Entry(Shape):
    """An entry of the audit log. It names what was viewed or changed, without its content."""

    id: int
    at: datetime
    space: str
    user: str | None = Field(description="Null for what concerns the whole space: settings, exports, keys, sign-ins.")
    name: str | None = Field(default=None, description="The display name that the user used last.")
    actor: str
    action: str
    subject: str

    @field_validator("user", mode="before")
    @classmethod
    def _everybody_is_nobody_in_particular(cls, user: str) -> str | None:
        return None if user == EVERYBODY else user


class Audit(BaseModel):
    """The newest entries, oldest first."""

    entries: list[Entry]


@audit_router.get("/audit", summary="Read the audit log")
async def read_audit(
    who: Admin, memory: MemoryDep, user: UserQuery = None, limit: Limit = 100, space: SpaceQuery = None
) -> Audit:
    """Return who viewed and who changed a user's data; without a user, changes of the whole space.

    The newest entries, oldest first.
    """
    whose = who.user_of(user)
    if whose is None:
        found = await memory.audit(limit, space=who.space_of(space), actor=who.actor)
    else:
        found = await who.person(memory, whose, space=space).audit(limit)
    entries = [Entry.model_validate(each) for each in found]
    names = await memory.names(who.space_of(space), users={each.user for each in entries if each.user is not None})
    return Audit(entries=[each.model_copy(update={"name": names.get(each.user or "")}) for each in entries])


keys_router = APIRouter(tags=["keys"])


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


class KeyShape(Shape):
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


@keys_router.get("/keys", summary="List keys")
async def list_keys(who: Admin, here: StateDep) -> list[KeyShape]:
    """Return all keys without their secrets. Needs an admin key for all spaces."""
    require_all_spaces(who)
    await here.memory.record_access("keys.read", "keys", actor=who.actor, space=DEFAULT_SPACE)
    used = await asyncio.to_thread(here.key_use.all)
    return [KeyShape.taken_from(key, last_used=used.get(key.id)) for key in here.keys.all()]


@keys_router.post("/keys", status_code=201, summary="Make a key")
async def make_key(who: Admin, here: StateDep, new: NewKey) -> MadeKey:
    """Create a key. Needs an admin key for all spaces."""
    require_all_spaces(who)
    # In a thread, because another process may hold the file lock and the disk may be slow.
    key, token = await asyncio.to_thread(
        here.keys.add, new.name, new.role, space=new.space, user=new.user, expires_at=new.expires_at
    )
    await here.record_key(who, "key.add", key)
    return MadeKey.taken_from(key, token=str.__str__(token), last_used=None)


@keys_router.delete("/keys/{key_id}", summary="Take a key away")
async def remove_key(
    who: Admin, here: StateDep, key_id: Annotated[str, Path(min_length=1, max_length=100, examples=["0a1b2c3d"])]
) -> KeyShape:
    """Revoke a key. It is refused immediately, and its event streams end."""
    require_all_spaces(who)
    removed = await asyncio.to_thread(here.keys.remove, key_id)
    here.feed.check_credentials()
    await here.record_key(who, "key.remove", removed)
    used = await asyncio.to_thread(here.key_use.all)
    return KeyShape.taken_from(removed, last_used=used.get(removed.id))


settings_router = APIRouter(tags=["settings"])

Value = Annotated[Text, StringConstraints(max_length=100_000)] | int | float | bool | None


class SettingsShape(BaseModel):
    """Settings of a user, or of a space."""

    space: str
    user: str | None = Field(description="Null for the settings of the space.")
    settings: dict[str, str | int | float | bool | None] = Field(examples=[{"summary_every_n": 20}])


class SettingsEdit(Body):
    """Settings to change. Null resets one to its default."""

    settings: dict[str, Value] = Field(
        min_length=1,
        max_length=100,
        examples=[{"summary_every_n": 20}],
        json_schema_extra={"propertyNames": NAMES},  # Described only: `check_setting` checks them.
    )


@settings_router.get("/settings", summary="Read settings")
async def read_settings(
    who: Reader, memory: MemoryDep, user: UserQuery = None, space: SpaceQuery = None
) -> SettingsShape:
    """Return the settings of a user, or of the whole space without a user."""
    whose, where = who.user_of(user), who.space_of(space)
    if whose is None:
        found = await memory.settings(where, actor=who.actor)
    else:
        found = await who.person(memory, whose, space=space).settings()
    return SettingsShape(space=where, user=whose, settings=found)


@settings_router.put("/settings", summary="Change settings")
async def change_settings(
    who: App, memory: MemoryDep, edit: SettingsEdit, user: UserQuery = None, space: SpaceQuery = None
) -> SettingsShape:
    """Change settings of a user, or without a user of the whole space, which needs the role admin. Effective at once.

    Models and their addresses cannot be changed over HTTP.
    """
    whose, where = who.user_of(user), who.space_of(space)
    if whose is None and not who.may("admin"):
        raise HTTPException(403, "The settings of a space need the role admin; name a user.")
    person = None if whose is None else who.person(memory, whose, space=space)
    scope = Scope.of(EVERYBODY, where) if person is None else person.scope
    for key, value in edit.settings.items():  # All of them first: a wrong one changes nothing.
        try:
            check_setting(scope, key, value)
        except InvalidInput as error:
            error.field = f"settings.{key}"
            raise
    for key, value in edit.settings.items():
        if person is None:
            await memory.set(key, value, space=where, actor=who.actor)
        else:
            await person.set(key, value)
    return await read_settings(who, memory, user, space)


stats_router = APIRouter(tags=["operation"])


class Totals(Shape):
    """Totals over the whole store."""

    spaces: int
    users: int
    threads: int
    sessions: int
    messages: int
    archived: int
    summaries: int
    memories: int
    bytes: int


class SpaceStats(BaseModel):
    """The totals of a space."""

    space: str
    users: int
    messages: int
    archived: int
    totals: Totals | None = Field(description="Over all spaces; only for keys that are for all of them.")


class ComponentShape(Shape):
    """The health of a component."""

    name: str
    status: ComponentStatus
    last_update: datetime | None
    issues: list[str]
    facts: dict[str, str]
    message_count: int | None
    waiting: int | None = Field(description="How much it still has to do.")
    health_check: datetime | None = Field(description="When it was looked at.")


class AlertShape(Shape):
    """An active alert."""

    kind: AlertKind
    about: str
    text: str
    since: datetime


class StorageShape(Shape):
    """The size of the store and its growth."""

    bytes: int
    messages: int
    free: int | None
    since: datetime | None
    bytes_per_day: float | None
    messages_per_day: float | None


class OperationShape(Shape):
    """Latency and errors of an operation in the last minutes."""

    name: str
    model: str
    calls: int
    per_minute: float
    failed: int
    error_rate: float
    mean_seconds: float
    p95_seconds: float | None
    cache_hits: int


class HealthShape(Shape):
    """The health of all components."""

    status: ComponentStatus
    components: list[ComponentShape]
    alerts: list[AlertShape]
    storage: StorageShape | None
    operations: list[OperationShape]


@stats_router.get("/stats", summary="How much is remembered")
async def stats(who: Reader, memory: MemoryDep, space: SpaceQuery = None) -> SpaceStats:
    """Return the totals of the space."""
    where = who.space_of(space)
    users = [user for user in await memory.users(where) if who.user in (None, user.id)]
    return SpaceStats(
        space=where,
        users=len(users),
        messages=sum(user.messages for user in users),
        archived=sum(user.archived for user in users),
        totals=Totals.model_validate(await memory.stats()) if who.everywhere else None,
    )


@stats_router.get("/health", summary="How each part is doing")
async def health(who: Overseer, memory: MemoryDep) -> HealthShape:
    """Return the health of each component, with its issues. Needs a key for all spaces."""
    del who
    found = await memory.health()
    components = [ComponentShape.taken_from(part, facts=dict(part.facts)) for part in found.components]
    return HealthShape.taken_from(found, components=components)


users_router = APIRouter(tags=["users"])


@users_router.get("/users", summary="List users")
async def list_users(
    who: Reader, memory: MemoryDep, cursor: Cursor = None, limit: Limit = PAGE, space: SpaceQuery = None
) -> UserPage:
    """Return the users of the space by id. Without `space`, a key for all spaces gets the users of all of them."""
    where = None if space is None and who.space is None else who.space_of(space)
    found = [user for user in await memory.users(where, actor=who.actor) if who.user in (None, user.id)]
    found.sort(key=attrgetter("space", "id"))
    after = None
    if (text := text_of(cursor)) is not None:
        # The space and the id of the last user of the page before. Neither can contain a line break.
        last_space, separator, last_user = text.partition("\n")
        if not separator:
            raise unknown_cursor()
        after = last_space, last_user
    start = 0 if after is None else bisect_right([(user.space, user.id) for user in found], after)
    page = found[start : start + limit]
    more = cursor_of(f"{page[-1].space}\n{page[-1].id}") if start + limit < len(found) else None
    return UserPage(users=[UserShape.model_validate(user) for user in page], next=more)


moving_router = APIRouter(tags=["moving"])

_LINES: Final = "application/x-ndjson"


class ProblemShape(Shape):
    """An entry of a file that could not be imported."""

    where: str
    why: str


class ImportedUserShape(Shape):
    """A user whose memory an import added to."""

    id: str
    name: str | None = Field(description="The display name in the file.")
    messages: int
    memories: int


class LoadedShape(Shape):
    """The result of an import."""

    format: str
    found: dict[str, int] = Field(description="How many things of each kind there are in it.")
    new: dict[str, int] = Field(description="How many of them were not here before.")
    skipped: dict[str, int]
    problems: int
    examples: list[ProblemShape]
    dry_run: bool
    users: list[ImportedUserShape] = Field(description="Whose memory it became, most messages first: at most 100.")
    user_count: int
    missing_attachments: list[str] = Field(
        description="Hashes of attachments that messages of an export name, but whose bytes are not stored."
    )


class PurgedShape(Shape):
    """The number of deleted rows."""

    messages: int
    summaries: int
    memories: int
    of_others: int = Field(description="How many of these were others', made with the user's words.")


@moving_router.get(
    "/export",
    summary="Take everything out",
    response_class=StreamingResponse,
    responses={200: {"description": "JSON lines.", "content": {_LINES: {"schema": {"type": "string"}}}}},
)
async def export(
    who: Admin,
    memory: MemoryDep,
    user: Annotated[
        Identifier | None,
        Query(description="Only the data of this user. Not needed with a key for one user.", examples=["ann"]),
    ] = None,
    vectors: Annotated[bool, Query(description="Include embedding vectors.")] = False,
    space: Annotated[
        Identifier | None,
        Query(description="The space of the user. Only for keys for all spaces; other keys have their own."),
    ] = None,
) -> StreamingResponse:
    """Return a consistent export of everything, or of one user, as JSON lines, for `load` and `aforesaid import`.

    Without a user, it needs an admin key for all spaces. The export is streamed. Its last line has a checksum, so an
    import detects a truncated file. It has no bytes of attachments: get them one by one from `/attachments/{hash}`.
    """
    whose = who.user_of(user)
    if whose is None:
        require_all_spaces(who)
        if space is not None:
            raise InvalidInput("an export is of everything or of one user; name the user of this space", "user")
        await memory.record_access("export", "everything", actor=who.actor)
        scope = None
    else:
        person = who.person(memory, whose, space=space)
        scope = person.scope
        if not await memory.store.read(UsersPage(scope.space, users=[scope.user])):
            raise NotFound(f"there is no user {quoted(scope.user)} in the space {quoted(scope.space)}")
        await person.record_access("export", "everything about the user")
    headers = {"Content-Disposition": 'attachment; filename="aforesaid.jsonl"'}
    return StreamingResponse(_exported(memory, scope, vectors=vectors), media_type=_LINES, headers=headers)


@moving_router.post(
    "/import",
    summary="Take a file in",
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "The file.",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary", "minLength": 1}}},
        }
    },
)
async def load(
    request: Request,
    who: Admin,
    memory: MemoryDep,
    format: Annotated[  # noqa: A002 - the public name of the file's format
        str, Query(description="`auto`, or the name of a format.", json_schema_extra={"enum": ["auto", *READERS]})
    ] = "auto",
    user: Annotated[Identifier | None, Query(description="Imports everything as the memory of this user.")] = None,
    dry_run: Annotated[bool, Query(description="Check the file without storing anything.")] = False,
    space: SpaceQuery = None,
) -> LoadedShape:
    """Import an export of Aforesaid or of another application. The file is the body of the request.

    Existing entries are recognised. Needs an admin key for all spaces, because an export contains its own spaces.
    """
    require_all_spaces(who)
    with tempfile.TemporaryDirectory(prefix="aforesaid-import-") as folder:
        file = FilePath(folder) / "uploaded"
        with file.open("wb") as out:
            async for part in request.stream():
                await asyncio.to_thread(out.write, part)
        if not file.stat().st_size:
            raise InvalidInput("the request has no body; send the file", "body")
        where = who.space_of(space)
        done = await load_upload(memory, file, format, user=user, space=where, dry_run=dry_run, actor=who.actor)
    examples = [ProblemShape(where=str(each.where), why=str(each.why)) for each in done.examples]
    return LoadedShape.taken_from(done, examples=examples)


@moving_router.delete("/users/{user}", summary="Erase somebody")
async def purge(
    who: Admin,
    memory: MemoryDep,
    user: Annotated[Identifier, Path(examples=["ann"])],
    confirm: Annotated[str, Query(description="The user's id again, as a confirmation.", examples=["ann"])],
    space: SpaceQuery = None,
) -> PurgedShape:
    """Delete all data of a user permanently: messages, summaries, memories, facts, settings. This cannot be undone."""
    whose, where = named(who, user), who.space_of(space)
    if confirm != whose:
        raise InvalidInput("to erase somebody for good, repeat their id in `confirm`", "confirm")
    return PurgedShape.model_validate(await memory.purge(whose, space=where, actor=who.actor))


async def _exported(memory: Memory, scope: Scope | None, *, vectors: bool) -> AsyncIterator[bytes]:
    """Return the lines of an export of everything, or of one user, a page at a time."""
    chosen = None if scope is None else RowsOfUser(scope, vectors=vectors)
    pages = BytesIO()
    lines = LineWriter(pages)
    lines.begin(vectors=vectors)
    async for page in memory.store.dump(vectors=vectors):
        lines.write(page if chosen is None else [row for row in page if chosen(row)])
        yield pages.getvalue()
        pages.seek(0)
        pages.truncate()
    lines.end()
    yield pages.getvalue()
