"""Reads JSON piece by piece: documents of any size, and lines."""

from __future__ import annotations

import codecs
import json
import re
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


CHUNK: Final = 1024 * 1024
LARGEST: Final = 64 * 1024 * 1024
"""Maximum number of characters of a single value."""

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_OUTSIDE: Final = re.compile(r'["\[\]{}]')
_INSIDE: Final = re.compile(r'["\\]')
_AFTER_SCALAR: Final = re.compile(r"[,\]}\s]")
_DECODER: Final = json.JSONDecoder()


class Damaged(InvalidInput):
    """A value that cannot be read. Reading can continue after it."""


class _Extent:
    """Finds the end of a value by its brackets and quotes, in text that arrives in pieces."""

    def __init__(self) -> None:
        self._depth = 0
        self._inside = False
        self._escaped = False
        self._scalar: bool | None = None

    def end(self, text: str, at: int, *, last: bool) -> int | None:
        """Return the end of the value in a piece; None if it continues in the next one."""
        if self._scalar is None and at < len(text):
            self._scalar = text[at] not in '"[{'
        if self._scalar:
            match = _AFTER_SCALAR.search(text, at)
            if match is not None:
                return match.start()
            return len(text) if last else None
        if self._escaped and at < len(text):
            at, self._escaped = at + 1, False
        while match := (_INSIDE if self._inside else _OUTSIDE).search(text, at):
            at = match.end()
            found = match[0]
            if found == "\\":
                self._escaped = at >= len(text)
                at += 1
                continue
            if found == '"':
                self._inside = not self._inside
            else:
                self._depth += 1 if found in "[{" else -1
            if not self._inside and self._depth <= 0:
                return at
        return None


class JsonStream:
    """A JSON parser over a stream of characters."""

    def __init__(self, stream: IO[bytes], largest: int = LARGEST) -> None:
        """Read from `stream`. Invalid UTF-8 is reported for the strings that contain it."""
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="surrogateescape")
        self._buffer = ""
        self._place = 0
        self._passed = 0
        self._ended = False
        self._largest = largest

    @property
    def position(self) -> int:
        """Number of characters read."""
        return self._passed + self._place

    def peek(self) -> str:
        """Return the next non-space character; an empty string at the end."""
        while True:
            match = _SPACE.match(self._buffer, self._place)
            if match is not None:
                self._place = match.end()
            if self._place < len(self._buffer):
                return self._buffer[self._place]
            if not self._more():
                return ""

    def members(self) -> Iterator[str]:
        """Iterate over an object: yield each key, positioned before its value, which may be left unread."""
        self._take("{")
        if self.peek() == "}":
            self._place += 1
            return
        while True:
            key = self.value()
            if not isinstance(key, str):
                raise InvalidInput(f"a key of an object is no text (character {self.position:,})")
            self._take(":")
            yield from self._before_value(key)
            if self._at_end("}"):
                return

    def elements(self) -> Iterator[int]:
        """Iterate over a list: yield the index of each element, positioned before it."""
        self._take("[")
        if self.peek() == "]":
            self._place += 1
            return
        number = 0
        while True:
            number += 1
            yield from self._before_value(number)
            if self._at_end("]"):
                return

    def value(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return the next value. Raises Damaged, positioned after the value, if it cannot be read."""
        self._expect_value()
        whole = self._at_hand()
        if whole is not None:
            return whole[0]
        extent, at = _Extent(), self._place
        while (end := extent.end(self._buffer, at, last=self._ended)) is None:
            at = len(self._buffer)
            if at - self._place > self._largest:
                self._drop(extent)
                raise Damaged(f"it has more than {self._largest:,} characters")
            self._need_more()
        text = self._buffer[self._place : end]
        self._move_to(end)
        try:
            refuse_depth(text)
            return json.loads(text)
        except RecursionError:
            raise Damaged("it is nested too deeply") from None
        except ValueError as error:
            raise Damaged(str(error) if isinstance(error, InvalidInput) else f"it is not JSON: {error}") from None

    def skip(self) -> None:
        """Skip a value without building it."""
        self._expect_value()
        extent = _Extent()
        end = extent.end(self._buffer, self._place, last=self._ended)
        if end is None:
            self._drop(extent)
        else:
            self._move_to(end)

    def _at_hand(self) -> tuple[Any] | None:
        """Read a value that is completely in the buffer: the fast path, which nearly always applies."""
        try:
            found, end = _DECODER.raw_decode(self._buffer, self._place)
        except (ValueError, RecursionError):
            return None
        # A number may continue after the end of the buffer.
        if end == len(self._buffer) and not self._ended:
            return None
        text = self._buffer[self._place : end]
        if text.count("[") + text.count("{") > DEEPEST:
            return None
        self._move_to(end)
        return (found,)

    def _drop(self, extent: _Extent) -> None:
        """Skip the rest of a value."""
        while True:
            self._passed += len(self._buffer)
            self._buffer, self._place = "", 0
            self._need_more()
            end = extent.end(self._buffer, 0, last=self._ended)
            if end is not None:
                self._move_to(end)
                return

    def _before_value(self, what: Any) -> Iterator[Any]:  # noqa: ANN401 - a key or a number
        self._expect_value()
        before = self.position
        yield what
        if self.position == before:
            self.skip()

    def _expect_value(self) -> None:
        found = self.peek()
        if not found or found in ",:]}":
            raise InvalidInput(f"a value is missing at character {self.position:,}; the rest is not read")

    def _at_end(self, closing: str) -> bool:
        """Consume a comma or the closing bracket; return whether it was the closing bracket."""
        found = self.peek()
        if not found or found not in (",", closing):
            what = f"{found!r} found instead of a comma" if found else "the file ends"
            raise InvalidInput(f"{what} (character {self.position:,}); the rest is not read")
        self._place += 1
        return found == closing

    def _take(self, wanted: str) -> None:
        found = self.peek()
        if found != wanted:
            what = f"{found!r} stands" if found else "the file ends"
            raise InvalidInput(f"{what} where {wanted!r} should be (character {self.position:,})")
        self._place += 1

    def _move_to(self, place: int) -> None:
        self._place = place
        if place > CHUNK:
            self._buffer = self._buffer[place:]
            self._passed += place
            self._place = 0

    def _need_more(self) -> None:
        if not self._more():
            raise InvalidInput(f"the file ends in the middle of a value (character {self.position:,})")

    def _more(self) -> bool:
        """Read more data. Returns False at the end of the stream."""
        if self._ended:
            return False
        block = self._stream.read(CHUNK)
        self._ended = not block
        self._buffer += self._decoder.decode(block, final=self._ended)
        return True
