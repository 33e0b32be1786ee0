"""The data of one person: taken along as a file, or erased for good."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Form
from starlette.responses import Response, StreamingResponse

from aforesaid.server.dependencies import Admin
from aforesaid.server.panel.data import file_in_pieces
from aforesaid.server.panel.erasing import erase_person
from aforesaid.server.panel.view import Person, PersonView
from aforesaid.store import questions

router = APIRouter()

_THREADS: Final = 500


class StoredCounts(NamedTuple):
    """How much is stored about a person."""

    messages: int
    summaries: int
    memories: int
    facts: int
    threads: int


@router.get("/person/data")
async def data(person: Person, who: Admin) -> Response:
    """Show what can be done with all that is known about somebody."""
    del who
    return await person.page("person/data.html", tab="data", stored=await _count_stored(person))


@router.get("/person/export")
async def export(person: Person, who: Admin) -> Response:
    """Send all that is stored about a person as one file."""
    folder = await asyncio.to_thread(tempfile.mkdtemp, prefix="aforesaid-export-")
    path = Path(folder) / "person.jsonl.gz"
    try:
        space = person.view.space
        await person.view.memory.export(path, user=person.user, space=space, attachments=False, actor=who.actor)
    except BaseException:
        await asyncio.to_thread(shutil.rmtree, folder)
        raise
    name = quote(f"{person.name}-{datetime.now(UTC):%Y-%m-%d}.jsonl.gz".replace("/", "_"), safe="")
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        "Content-Length": str(path.stat().st_size),
    }
    return StreamingResponse(file_in_pieces(path), headers=headers, media_type="application/gzip")


@router.post("/person/erase")
async def erase(person: Person, who: Admin, confirm: Annotated[str, Form()] = "") -> Response:
    """Erase a person for good, once their name or id was typed."""
    del who
    return await erase_person(person.view, person.user, confirm, "confirm")


async def _count_stored(person: PersonView) -> StoredCounts:
    store, scope = person.view.memory.store, person.memory.scope
    ledger = await store.read(questions.UserLedger(scope))
    return StoredCounts(
        ledger.messages,
        len(await store.read(questions.Summaries(scope, active=None))),
        len(await store.read(questions.Memories(scope, active=None))),
        len(await store.read(questions.FactsVersions(scope))),
        len(await person.memory.threads(_THREADS)),
    )
