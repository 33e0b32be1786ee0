"""Files of lines, read one by one, however long the file is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any, Final

from aforesaid.errors import InvalidInput

LONGEST: Final = 64 * 1024 * 1024
"""A longer line is not read into memory."""
DEEPEST: Final = 200
"""Whatever is nested more deeply was made to break programs."""


def numbered_lines(stream: IO[bytes], longest: int = LONGEST) -> Iterator[tuple[int, bytes | None]]:
    """Give out lines with their numbers; None for one that is too long."""
    number = 0
    while line := stream.readline(longest):
        number += 1
        if len(line) == longest and not line.endswith(b"\n"):
            while len(rest := stream.readline(longest)) == longest and not rest.endswith(b"\n"):
                pass
            yield number, None
        else:
            yield number, line


def parsed(line: bytes | str | None) -> Any:  # noqa: ANN401 - whatever JSON holds
    """Return what a line of JSON says."""
    if line is None:
        raise InvalidInput("the line is too long to be read")
    try:
        text = line.decode() if isinstance(line, bytes) else line
    except UnicodeDecodeError as error:
        raise InvalidInput(f"it is not UTF-8 (byte {error.start} of it)") from None
    refuse_depth(text)
    try:
        return json.loads(text)
    except RecursionError:
        raise InvalidInput("it is nested too deeply") from None
    except ValueError as error:
        # Also numbers with more digits than Python converts.
        raise InvalidInput(f"it is not JSON: {error}") from None


def refuse_depth(text: str) -> None:
    """Refuse text that opens more brackets than anything sensible does, one within the other."""
    if text.count("[") + text.count("{") <= DEEPEST:
        return
    depth = 0
    inside = False
    escaped = False
    for character in text:
        if escaped:
            escaped = False
        elif inside:
            escaped = character == "\\"
            inside = character != '"'
        elif character == '"':
            inside = True
        elif character in "[{":
            depth += 1
            if depth > DEEPEST:
                raise InvalidInput("it is nested too deeply")
        elif character in "]}":
            depth -= 1
