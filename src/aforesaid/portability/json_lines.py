"""Read JSON Lines files of any size, line by line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any, Final

from aforesaid.errors import InvalidInput

LONGEST: Final = 64 * 1024 * 1024
"""Maximum bytes of a line. Longer lines are not read into memory."""
DEEPEST: Final = 200
"""Maximum nesting of JSON. Real data is flatter; deeper nesting can exhaust the stack."""


def numbered_lines(stream: IO[bytes], longest: int = LONGEST) -> Iterator[tuple[int, bytes | None]]:
    """Yield lines with their numbers; None for a line that is too long."""
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
    """Return the value of a JSON line. Raises InvalidInput."""
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
        # This includes numbers with more digits than Python converts.
        raise InvalidInput(f"it is not JSON: {error}") from None


def refuse_depth(text: str) -> None:
    """Raise InvalidInput for JSON that is nested more deeply than DEEPEST."""
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
