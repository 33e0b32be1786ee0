"""Everything at once: exported, imported after a preview, and people erased, which has to be confirmed."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

from fastapi import APIRouter, File, Form, UploadFile
from starlette.responses import RedirectResponse, Response, StreamingResponse

from aforesaid.errors import AforesaidError, InvalidInput
from aforesaid.portability import READERS, Loaded
from aforesaid.server.dependencies import Admin, require_all_spaces, state_of
from aforesaid.server.languages import translate
from aforesaid.server.panel import forms
from aforesaid.server.panel.erasing import erase_person
from aforesaid.server.panel.view import Looking, View
from aforesaid.server.pending_imports import PendingImport
from aforesaid.server.uploads import load_upload

router = APIRouter()

_FORMATS: Final = ("auto", *READERS)
_NAME_CHARACTERS: Final = 60
"""Maximum characters of the name of an uploaded file: at most 240 bytes, which every file system holds."""
_PIECE: Final = 256 * 1024


@router.get("/data")
async def data(view: Looking, who: Admin) -> Response:
    """Show what can be done with all of it."""
    del who
    return await _page(view)


@router.get("/data/export")
async def export(view: Looking, who: Admin) -> Response:
    """Send everything, of all spaces, as one file."""
    require_all_spaces(who)
    folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="aforesaid-export-")
    path = Path(folder) / "aforesaid.jsonl.gz"
    try:
        await view.memory.export(path, attachments=False, actor=who.actor)
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, folder)
        raise
    name = f"aforesaid-{datetime.now(UTC):%Y-%m-%d}.jsonl.gz"
    told = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Length": str(path.stat().st_size)}
    return StreamingResponse(file_in_pieces(path), headers=told, media_type="application/gzip")


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
        raise InvalidInput(forms.unknown(format, _FORMATS), "format")
    if not file.filename:
        raise InvalidInput(translate("choose a file first"), "file")
    imports = state_of(view.request).imports
    whose = await view.find(user) or None
    pending = imports.begin(
        _file_name(file.filename), actor=who.actor, format_name=format, user=whose, space=view.space
    )
    try:
        await asyncio.to_thread(_store_upload, file, pending.file)
        pending.preview = await _load(view, pending, dry_run=True)
    except BaseException as error:
        imports.drop(pending)
        if isinstance(error, InvalidInput) and error.field in {None, "body"}:
            error.field = "file"
        raise
    return RedirectResponse(view.address(f"/data/import/{pending.token}"), 303)


@router.get("/data/import/{token}")
async def look(view: Looking, who: Admin, token: str) -> Response:
    """Show what is in an uploaded file, or how far its import has got, or what became of it."""
    pending = state_of(view.request).imports.of(token, who.actor)
    template = "part/import.html" if view.partly else "import.html"
    return view.page(template, pending=pending)


@router.post("/data/import/{token}")
async def take_in(view: Looking, who: Admin, token: str) -> Response:
    """Store what is in an uploaded file. The page shows how far it has got."""
    require_all_spaces(who)
    state = state_of(view.request)
    pending = state.imports.of(token, who.actor)
    if not pending.running:
        pending.running = True
        state.finish(_import(view, pending))
    return RedirectResponse(view.address(f"/data/import/{token}"), 303)


@router.post("/data/import/{token}/cancel")
async def cancel(view: Looking, who: Admin, token: str) -> Response:
    """Forget an uploaded file without storing anything."""
    imports = state_of(view.request).imports
    pending = imports.of(token, who.actor)
    if not pending.running:
        imports.drop(pending)
    return view.done(translate("Nothing was stored."), view.address("/data"), leave=True)


async def _import(view: View, pending: PendingImport) -> None:
    try:
        pending.report = await _load(view, pending, dry_run=False)
    except AforesaidError as error:
        pending.failure = error
    finally:
        await asyncio.to_thread(pending.remove)


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
    view: Looking, who: Admin, user: Annotated[str, Form()], confirm: Annotated[str, Form()] = ""
) -> Response:
    """Erase a person for good, once their name or id was typed twice."""
    del who
    return await erase_person(view, view.person(await view.find(user)).scope.user, confirm, "confirm")


async def _page(view: View) -> Response:
    return view.page(
        "data.html",
        people=await view.offered(),
        formats=_FORMATS,
        most=state_of(view.request).options.serving.body_bytes,
    )


def _file_name(given: str) -> str:
    """Return a name for an uploaded file. Some formats name the chat in it; the folder is never the sender's choice."""
    name = re.sub(r"[^\w .,()+&'~-]", "_", given.replace("\\", "/").rpartition("/")[2])
    return name.lstrip(". ")[-_NAME_CHARACTERS:] or "file"


def _store_upload(file: UploadFile, path: Path) -> None:
    with path.open("xb") as target:
        shutil.copyfileobj(file.file, target)


async def file_in_pieces(path: Path) -> AsyncIterator[bytes]:
    """Give a file out piece by piece, then remove it with its folder."""
    try:
        with path.open("rb") as source:
            while piece := await asyncio.to_thread(source.read, _PIECE):
                yield piece
    finally:
        await asyncio.to_thread(shutil.rmtree, path.parent)
