"""Routes for export, import and deletion."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path as FilePath
from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field
from starlette.responses import StreamingResponse

from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.memory import Memory
from aforesaid.portability import READERS
from aforesaid.portability.exporting import LineWriter, RowsOfUser
from aforesaid.server.api.params import Identifier, SpaceQuery, named
from aforesaid.server.auth.authentication import Admin, MemoryDep, require_all_spaces
from aforesaid.server.schemas import Shape
from aforesaid.server.state import load_upload
from aforesaid.store.people import UsersPage

router = APIRouter(tags=["moving"])

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


@router.get(
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


@router.post(
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


@router.delete("/users/{user}", summary="Erase somebody")
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
    pages = _Pages()
    lines = LineWriter(pages)  # type: ignore[arg-type] # all that it does is write
    lines.begin(vectors=vectors)
    async for page in memory.store.dump(vectors=vectors):
        lines.write(page if chosen is None else [row for row in page if chosen(row)])
        yield pages.taken()
    lines.end()
    yield pages.taken()


class _Pages:
    """A buffer of written data that was not sent yet."""

    def __init__(self) -> None:
        self._written: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._written.append(data)
        return len(data)

    def taken(self) -> bytes:
        whole = b"".join(self._written)
        self._written.clear()
        return whole
