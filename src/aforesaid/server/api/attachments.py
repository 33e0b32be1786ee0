"""Routes for the bytes of attachments."""

from __future__ import annotations

import re
from typing import Annotated, Final
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Response

from aforesaid.domain.checks import Within
from aforesaid.errors import NotFound, quoted
from aforesaid.server.api.message_params import HASH
from aforesaid.server.api.params import Identifier, Person
from aforesaid.server.dependencies import MemoryDep

router = APIRouter(tags=["messages"])

_BYTES: Final = "application/octet-stream"
_MEDIA_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)


@router.get(
    "/attachments/{hash}",
    summary="Download an attachment",
    response_class=Response,
    responses={200: {"description": "The bytes.", "content": {_BYTES: {"schema": {"type": "string"}}}}},
)
async def download_attachment(
    person: Person,
    memory: MemoryDep,
    hash: Annotated[str, Path(pattern=HASH, description="The hash of the part.")],  # noqa: A002 - the field of a part
    message: Annotated[Identifier, Query(description="The id of the message that has the part.", examples=["#1"])],
    within: Annotated[Within, Query(description="Whose message: the user's own, or the whole thread's.")] = "user",
    versions: Annotated[bool, Query(description="Read the version with this id, not the newest one.")] = False,
) -> Response:
    """Return the bytes of a part of a message that the key may read, with its media type, as a download.

    The part is named by its `hash`. Bytes that are elsewhere (`url`) are not served.
    """
    found = await person.message(message, within=within, versions=versions)
    part = next((each for each in found.parts if each.hash == hash and each.url is None), None)
    if part is None:
        raise NotFound(f"message {quoted(message)} has no attachment {hash}")
    data = await memory.attachment(hash)
    given = part.media_type or ""
    name = quote(part.name or hash, safe="")
    return Response(
        data,
        media_type=given if _MEDIA_TYPE.fullmatch(given) else _BYTES,
        headers={"Content-Disposition": f"attachment; filename*=UTF-8''{name}"},
    )
