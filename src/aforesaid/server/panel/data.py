"""Pages for import, export, keys and settings."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from fastapi import APIRouter, File, Form, HTTPException, Request, UploadFile
from starlette.responses import RedirectResponse, Response, StreamingResponse

from aforesaid.domain.checks import SettingValue
from aforesaid.domain.scope import DEFAULT_SPACE, Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.errors import AforesaidError, InvalidInput
from aforesaid.portability import READERS, Loaded
from aforesaid.profiles import Profile
from aforesaid.profiles.effective import PROFILE, RUNTIME_SETTINGS, Group, RuntimeSetting, check_setting, tuned
from aforesaid.server.auth import ROLES, Credential, Key
from aforesaid.server.authentication import Admin, StateDep, require_all_spaces, state_of
from aforesaid.server.languages import N_, plural, translate
from aforesaid.server.panel.view import (
    Looking,
    Person,
    View,
    decimal_number,
    not_a_day,
    typed_text,
    unknown_value,
    whole_number,
)
from aforesaid.server.state import AppState, PendingImport, load_upload
from aforesaid.settings import Secret


async def erase_person(view: View, user: str, confirm: str, field: str) -> Response:
    """Erase a person whose name or id was typed as a confirmation. Raises InvalidInput for the field."""
    name = await confirmed_name(view, user, confirm, field)
    done = await view.memory.purge(user, space=view.space, actor=view.who.actor)
    said = translate(
        "Erased for good: {messages}, {summaries}, {memories} of {name}.",
        messages=plural("{count} message", "{count} messages", done.messages),
        summaries=plural("{count} summary", "{count} summaries", done.summaries),
        memories=plural("{count} memory", "{count} memories", done.memories),
        name=name,
    )
    return view.done(said, view.address("/audit", user=user), leave=True)


async def confirmed_name(view: View, user: str, confirm: str, field: str) -> str:
    """Return the name of a person, if it or the id was typed. Raises InvalidInput for the field."""
    await view.look_up([user])
    name = view.names.get(user, user)
    if view.memory.known_ids.spelled(confirm).casefold() not in {user.casefold(), name.strip().casefold()}:
        raise InvalidInput(translate("type “{name}” to confirm; nothing was erased", name=name), field)
    return name


router = APIRouter()

_FORMATS: Final = ("auto", *READERS)
_NAME_CHARACTERS: Final = 60
"""Maximum characters of the name of an uploaded file: at most 240 bytes, which every file system holds."""
_PIECE: Final = 256 * 1024


@router.get("/data")
async def data(view: Looking, _: Admin) -> Response:
    most = state_of(view.request).options.serving.body_bytes
    return view.page("data.html", people=await view.offered(), formats=_FORMATS, most=most)


@router.get("/data/export")
async def export(view: Looking, who: Admin) -> Response:
    require_all_spaces(who)
    name = f"aforesaid-{datetime.now(UTC):%Y-%m-%d}.jsonl.gz"
    return await sent_export(view, f'filename="{name}"', actor=who.actor)


@router.get("/data/backup")
async def backup(view: Looking, who: Admin) -> Response:
    """Send a verified backup of the whole store."""
    require_all_spaces(who)

    async def write(path: Path) -> None:
        await view.memory.backup(path, actor=who.actor)

    name = f'filename="aforesaid-{datetime.now(UTC):%Y-%m-%d}.db"'
    return await _sent(write, name, "application/vnd.sqlite3")


async def sent_export(
    view: View, name: str, *, actor: str, user: str | None = None, space: str = DEFAULT_SPACE
) -> Response:
    """Send an export of everything, or of one user, as a file. `name` is its name as the header has it."""

    async def write(path: Path) -> None:
        await view.memory.export(path, user=user, space=space, attachments=False, actor=actor)

    return await _sent(write, name, "application/gzip")


async def _sent(write: Callable[[Path], Awaitable[None]], name: str, media_type: str) -> Response:
    """Send a file once it is written, then remove it."""
    folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="aforesaid-export-")
    path = Path(folder) / ("aforesaid.jsonl.gz" if media_type.endswith("gzip") else "aforesaid.db")
    try:
        await write(path)
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, folder)
        raise
    headers = {"Content-Disposition": f"attachment; {name}", "Content-Length": str(path.stat().st_size)}
    return StreamingResponse(_pieces(path), headers=headers, media_type=media_type)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    """Give a file out piece by piece, then remove it with its folder."""
    try:
        with path.open("rb") as source:
            while piece := await asyncio.to_thread(source.read, _PIECE):
                yield piece
    finally:
        await asyncio.to_thread(shutil.rmtree, path.parent)


@router.post("/data/import")
async def upload(
    view: Looking,
    who: Admin,
    file: Annotated[UploadFile, File()],
    format: Annotated[str, Form()] = "auto",  # noqa: A002 - the public name of the file's format
    user: Annotated[str, Form()] = "",
) -> Response:
    """Receive a file, an export or what another application wrote, and show what is in it. Nothing is stored yet."""
    require_all_spaces(who)
    if format not in _FORMATS:
        raise InvalidInput(unknown_value(format, _FORMATS), "format")
    if not file.filename:
        raise InvalidInput(translate("choose a file first"), "file")
    imports = state_of(view.request).imports
    whose = await view.find(user) or None
    # Some formats name the chat in the name of the file; the folder is never the sender's choice.
    name = re.sub(r"[^\w .,()+&'~-]", "_", file.filename.replace("\\", "/").rpartition("/")[2])
    name = name.lstrip(". ")[-_NAME_CHARACTERS:] or "file"
    pending = imports.begin(name, actor=who.actor, format_name=format, user=whose, space=view.space)

    def store() -> None:
        with pending.file.open("xb") as target:
            shutil.copyfileobj(file.file, target)

    try:
        await asyncio.to_thread(store)
        pending.preview = await _load(view, pending, dry_run=True)
    except BaseException as error:
        imports.drop(pending)
        if isinstance(error, InvalidInput) and error.field in {None, "body"}:
            error.field = "file"
        raise
    return RedirectResponse(view.address(f"/data/import/{pending.token}"), 303)


@router.get("/data/import/{token}")
async def look(view: Looking, who: Admin, token: str) -> Response:
    pending = state_of(view.request).imports.of(token, who.actor)
    template = "part/import.html" if view.partly else "import.html"
    return view.page(template, pending=pending, here=await view.memory.stats())


@router.post("/data/import/{token}")
async def take_in(view: Looking, who: Admin, token: str) -> Response:
    """Store what is in an uploaded file. The page shows how far it has got."""
    require_all_spaces(who)
    state = state_of(view.request)
    pending = state.imports.of(token, who.actor)

    async def load() -> None:
        try:
            pending.report = await _load(view, pending, dry_run=False)
        except AforesaidError as error:
            pending.failure = error
        finally:
            await asyncio.to_thread(pending.remove)

    if not pending.running:
        pending.running = True
        state.finish(load())
    return RedirectResponse(view.address(f"/data/import/{token}"), 303)


@router.post("/data/import/{token}/cancel")
async def cancel(view: Looking, who: Admin, token: str) -> Response:
    imports = state_of(view.request).imports
    pending = imports.of(token, who.actor)
    if not pending.running:
        imports.drop(pending)
    return view.done(translate("Nothing was stored."), view.address("/data"), leave=True)


async def _load(view: View, pending: PendingImport, *, dry_run: bool) -> Loaded:
    return await load_upload(
        view.memory,
        pending.file,
        pending.format,
        user=pending.user,
        space=pending.space,
        dry_run=dry_run,
        actor=pending.actor,
        progress=None if dry_run else pending.progress,
    )


@router.post("/data/purge")
async def purge(
    view: Looking, _: Admin, user: Annotated[str, Form()], confirm: Annotated[str, Form()] = ""
) -> Response:
    return await erase_person(view, view.person(await view.find(user)).scope.user, confirm, "confirm")


ROLE_WORDS: Final = {
    "reader": N_("can see everything and change nothing"),
    "app": N_("can store messages and correct memories: for apps, bots and the proxy"),
    "admin": N_("can also change settings and keys, export, erase and read the audit log"),
}


@router.get("/keys")
async def keys(view: Looking, who: Admin, here: StateDep) -> Response:
    require_all_spaces(who)
    await here.memory.record_access("keys.read", "keys", actor=who.viewer, space=DEFAULT_SPACE)
    return await _keys_page(view, here)


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
    require_all_spaces(who)
    if not name.strip():
        raise InvalidInput(translate("give the key a name, such as the app that uses it"), "name")
    if key_user.strip() and not key_space.strip():
        raise InvalidInput(translate("name the space of this person too"), "key_space")
    end = None
    if given := expires_at.strip():
        try:
            day = date.fromisoformat(given)
        except ValueError:
            raise InvalidInput(not_a_day(given), "expires_at") from None
        if day < datetime.now(UTC).date():
            raise InvalidInput(translate("this day is over; choose a day to come"), "expires_at")
        end = datetime.combine(day, time(23, 59, 59), UTC)
    space, user = key_space.strip() or None, key_user.strip() or None
    key, token = await asyncio.to_thread(here.keys.add, name.strip(), role, space=space, user=user, expires_at=end)
    await here.record_key(who, "key.add", key)
    return await _keys_page(view, here, made=key, token=token)


@router.post("/keys/{key_id}/revoke")
async def revoke(view: Looking, who: Admin, here: StateDep, key_id: str) -> Response:
    """Revoke a key. It is refused at once, and its event streams end."""
    require_all_spaces(who)
    removed = await asyncio.to_thread(here.keys.remove, key_id)
    here.feed.check_credentials()
    await here.record_key(who, "key.remove", removed)
    return view.done(translate("Revoked: {name}", name=removed.name), view.address("/keys"))


async def _keys_page(view: View, here: AppState, made: Key | None = None, token: Secret | None = None) -> Response:
    used = await asyncio.to_thread(here.key_use.all)
    now = datetime.now(UTC)
    rows = []
    for key in reversed(here.keys.all()):
        expires = None if key.expires_at is None else datetime.fromisoformat(key.expires_at)
        rows.append((key, datetime.fromisoformat(key.created_at), expires, used.get(key.id), key.expired(now)))
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


GROUPS: Final[Mapping[Group, str]] = {
    "Limits": N_("How much of each layer of memory goes into a context."),
    "Context": N_("What the model is sent, and how much of it."),
    "Learning": N_("What happens by itself."),
}


class Source(NamedTuple):
    """The value of a setting that applies now, where it comes from, and what applies without it."""

    value: SettingValue
    place: str
    """`person`, `space`, `profile` or `default`."""
    otherwise: SettingValue
    """What applies when the field is left empty."""


@router.get("/settings")
async def of_space(view: Looking, who: Admin) -> Response:
    _whole(who)
    stored = await view.memory.settings(view.space, actor=who.viewer)
    usual = _defaults(view.memory.profile, stored)
    sources = {key: _source(stored.get(key), None, usual.get(key), "space") for key in RUNTIME_SETTINGS}
    return view.page("settings.html", stored=stored, sources=sources, groups=_groups(of_space=True))


@router.post("/settings")
async def change_space(request: Request, view: Looking, who: Admin) -> Response:
    _whole(who)
    given = await _given(request, of_space=True)
    stored = await view.memory.settings(view.space)
    changed = {key: value for key, value in given.items() if stored.get(key) != value}
    for key, value in changed.items():  # All of them first: a wrong one changes nothing.
        check_setting(Scope.of(EVERYBODY, view.space), key, value)
    for key, value in changed.items():
        await view.memory.set(key, value, space=view.space, actor=who.actor)
    return view.done(
        _said(changed),
        view.address("/settings"),
    )


@router.get("/person/settings")
async def of_person(person: Person, _: Admin) -> Response:
    above = await person.view.memory.settings(person.view.space)
    stored = await person.memory.settings()
    usual = _defaults(person.view.memory.profile, above | stored)
    return await person.page(
        "person/settings.html",
        tab="settings",
        stored=stored,
        sources={key: _source(stored.get(key), above.get(key), usual.get(key), "person") for key in RUNTIME_SETTINGS},
        groups=_groups(of_space=False),
    )


@router.post("/person/settings")
async def change_person(request: Request, person: Person, _: Admin) -> Response:
    given = await _given(request, of_space=False)
    stored = await person.memory.settings()
    changed = {key: value for key, value in given.items() if stored.get(key) != value}
    for key, value in changed.items():
        check_setting(person.memory.scope, key, value)
    for key, value in changed.items():
        await person.memory.set(key, value)
    return person.view.done(
        _said(changed),
        person.address("/person/settings"),
    )


def _source(own: SettingValue, above: SettingValue, usual: SettingValue, place: str) -> Source:
    """Return where a value comes from: set here, set for the space, or as the profile has it."""
    otherwise = usual if above is None else above
    if own is not None:
        return Source(own, place, otherwise)
    return Source(otherwise, "profile" if above is None else "space", otherwise)


def _whole(who: Credential) -> None:
    if who.user is not None:
        raise HTTPException(403, translate("These settings are about everybody; the key is for one person."))


def _defaults(profile: Profile, stored: dict[str, SettingValue]) -> dict[str, SettingValue]:
    """Return the values of the profile, which hold where nothing is set."""
    chosen = tuned(profile, {PROFILE: stored.get(PROFILE)})
    return {key: setting.default(chosen) for key, setting in RUNTIME_SETTINGS.items()}


async def _given(request: Request, *, of_space: bool) -> dict[str, SettingValue]:
    """Return what a form says about settings. An empty field takes a setting back."""
    form = await request.form()
    found: dict[str, SettingValue] = {}
    for field in _shown(of_space=of_space):
        sent = form.get(field.key)
        if not isinstance(sent, str):
            continue
        text = typed_text(sent).strip()
        if not text:
            found[field.key] = None
        elif field.kind == "whole":
            found[field.key] = whole_number(text, translate(field.label), field.key)
        elif field.kind == "share":
            found[field.key] = decimal_number(text, translate(field.label), field.key)
        else:
            found[field.key] = text == "on" if field.kind == "switch" else text
    return found


def _shown(*, of_space: bool) -> list[RuntimeSetting]:
    return [each for each in RUNTIME_SETTINGS.values() if each.group and (of_space or not each.space_only)]


def _groups(*, of_space: bool) -> list[tuple[str, str, list[RuntimeSetting]]]:
    shown = _shown(of_space=of_space)
    return [(name, words, [each for each in shown if each.group == name]) for name, words in GROUPS.items()]


def _said(changed: dict[str, SettingValue]) -> str:
    return translate("Saved. It takes effect at once.") if changed else translate("Nothing was changed.")
