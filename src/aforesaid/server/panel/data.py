"""Everything at once: taken along, taken in, and erased. Erasing has to be confirmed."""

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
from starlette.responses import Response, StreamingResponse

from aforesaid.domain.counting import counted
from aforesaid.errors import InvalidInput, quoted
from aforesaid.portability import READERS, Loaded
from aforesaid.server.dependencies import Admin, require_all_spaces, state_of
from aforesaid.server.panel.view import Looking, View
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
    return await _page(view, None)


@router.get("/data/export")
async def export(view: Looking, who: Admin) -> Response:
    """Send everything, of all spaces, as one file."""
    require_all_spaces(who)
    folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="aforesaid-export-")
    path = Path(folder) / "aforesaid.jsonl.gz"
    try:
        await view.memory.export(path, actor=who.actor)
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, folder)
        raise
    name = f"aforesaid-{datetime.now(UTC):%Y-%m-%d}.jsonl.gz"
    told = {"Content-Disposition": f'attachment; filename="{name}"', "Content-Length": str(path.stat().st_size)}
    return StreamingResponse(_pieces(path), headers=told, media_type="application/gzip")


@router.post("/data/import")
async def take_in(
    view: Looking,
    who: Admin,
    file: Annotated[UploadFile, File()],
    format: Annotated[str, Form()] = "auto",  # noqa: A002 - the public name of the file's format
    user: Annotated[str, Form()] = "",
    trial: Annotated[str, Form()] = "",
) -> Response:
    """Take a file in: an export, or what another application wrote."""
    require_all_spaces(who)
    if format not in _FORMATS:
        raise InvalidInput(f"unknown format {quoted(format)}; use one of {', '.join(_FORMATS)}", "format")
    with tempfile.TemporaryDirectory(prefix="aforesaid-import-") as folder:
        path = Path(folder) / _file_name(file.filename or "")
        await asyncio.to_thread(_keep, file, path)
        loaded = await load_upload(
            view.memory,
            path,
            format,
            user=user if user.strip() else None,
            space=view.space,
            dry_run=bool(trial),
            actor=who.actor,
        )
    return await _page(view, loaded)


@router.post("/data/purge")
async def purge(
    view: Looking, who: Admin, user: Annotated[str, Form()], confirm: Annotated[str, Form()] = ""
) -> Response:
    """Erase a person for good, once their id was typed twice."""
    whose = view.person(user).scope.user
    if view.memory.known_ids.spelled(confirm) != whose:
        raise InvalidInput(f"type {quoted(whose)} a second time to erase it; nothing was erased", "confirm")
    done = await view.memory.purge(whose, space=view.space, actor=who.actor)
    said = (
        f"Deleted permanently: {counted(done.messages, 'message')}, {counted(done.summaries, 'summary')}, "
        f"{counted(done.memories, 'memory')} of {whose}."
    )
    return view.done(said, view.address("/data"))


async def _page(view: View, loaded: Loaded | None) -> Response:
    return view.page(
        "data.html",
        people=await view.offered(),
        formats=_FORMATS,
        loaded=loaded,
        most=state_of(view.request).options.serving.body_bytes,
    )


def _file_name(given: str) -> str:
    """Return a name for an uploaded file. Some formats name the chat in it; the folder is never the sender's choice."""
    name = re.sub(r"[^\w .,()+&'~-]", "_", given.replace("\\", "/").rpartition("/")[2])
    return name.lstrip(". ")[-_NAME_CHARACTERS:] or "file"


def _keep(file: UploadFile, path: Path) -> None:
    with path.open("xb") as target:
        shutil.copyfileobj(file.file, target)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    """Give a file out piece by piece, then remove it with its folder."""
    try:
        with path.open("rb") as source:
            while piece := await asyncio.to_thread(source.read, _PIECE):
                yield piece
    finally:
        await asyncio.to_thread(shutil.rmtree, path.parent)
