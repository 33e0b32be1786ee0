"""Optimistic concurrency with ETag and If-Match."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from fastapi import Header, HTTPException

from aforesaid.errors import InvalidInput, SourcesChanged, quoted

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=100,
        description="The ETag of the version you read. If the memory has changed since, the response is 412.",
        examples=['"1"'],
    ),
]


def etag(number: int) -> str:
    """Return the ETag of a revision."""
    return f'"{number}"'


def expected(match: str | None) -> int | None:
    """Return the revision that a request expects; None when it expects nothing."""
    if match is None or match.strip() == "*":
        return None
    text = match.strip().removeprefix("W/").strip('"')
    if not text.isascii() or not text.isdecimal() or len(text) > 18:  # noqa: PLR2004 - the digits of a revision
        raise InvalidInput(f"If-Match must be an ETag of this resource or *, not {quoted(match)}", "If-Match")
    return int(text)


@contextmanager
def unchanged(match: str | None) -> Iterator[None]:
    """Return 412 if the current revision is not the expected one."""
    try:
        yield
    except SourcesChanged as error:
        if expected(match) is None:
            raise
        raise HTTPException(412, str(error)) from error
