"""Reads JSON piece by piece, documents of any size and lines, and the fields of its objects."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import IO, Any, Final, TypeVar

from aforesaid.domain import checks
from aforesaid.errors import InvalidInput, quoted
from aforesaid.extras import re

T = TypeVar("T")

LONGEST: Final = 64 * 1024 * 1024
"""Maximum bytes of a line. Longer lines are not read into memory."""
DEEPEST: Final = 200
"""Maximum nesting of JSON. Real data is flatter; deeper nesting can exhaust the stack."""
CHUNK: Final = 1024 * 1024
LARGEST: Final = 64 * 1024 * 1024
"""Maximum number of characters of a single value."""

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_OUTSIDE: Final = re.compile(r'["\[\]{}]')
_INSIDE: Final = re.compile(r'["\\]')
_AFTER_SCALAR: Final = re.compile(r"[,\]}\s]")
_STRING_OR_BRACKET: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)
_DECODER: Final = json.JSONDecoder()


class Damaged(InvalidInput):
    """A value that cannot be read. Reading can continue after it."""


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
    """Return the value of a JSON text. Raises Damaged."""
    if line is None:
        raise Damaged("the line is too long to be read")
    try:
        text = line.decode() if isinstance(line, bytes) else line
    except UnicodeDecodeError as error:
        raise Damaged(f"it is not UTF-8 (byte {error.start} of it)") from None
    if text.count("[") + text.count("{") > DEEPEST:
        depth = 0
        for found in _STRING_OR_BRACKET.findall(text):
            depth += (found in "[{") - (found in "]}")
            if depth > DEEPEST:
                raise Damaged("it is nested too deeply")
    try:
        return json.loads(text)
    except RecursionError:
        raise Damaged("it is nested too deeply") from None
    except ValueError as error:
        # This includes numbers with more digits than Python converts.
        raise Damaged(f"it is not JSON: {error}") from None


class JsonStream:
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
        return self._inside("{", "}")

    def elements(self) -> Iterator[int]:
        """Iterate over a list: yield the number of each element, positioned before it."""
        return self._inside("[", "]")

    def _inside(self, opening: str, closing: str) -> Iterator[Any]:
        self._take(opening)
        if self.peek() == closing:
            self._place += 1
            return
        number = 0
        while True:
            number += 1
            what: object = number
            if opening == "{":
                what = self.value()
                if not isinstance(what, str):
                    raise InvalidInput(f"a key of an object is no text (character {self.position:,})")
                self._take(":")
            self._expect_value()
            before = self.position
            yield what
            if self.position == before:
                self.skip()
            found = self.peek()
            if not found or found not in (",", closing):
                wrong = f"{found!r} found instead of a comma" if found else "the file ends"
                raise InvalidInput(f"{wrong} (character {self.position:,}); the rest is not read")
            self._place += 1
            if found == closing:
                return

    def value(self) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return the next value. Raises Damaged, positioned after the value, if it cannot be read."""
        self._expect_value()
        buffer, place = self._buffer, self._place
        try:
            # The fast path, which nearly always applies: the value is completely in the buffer.
            found, end = _DECODER.raw_decode(buffer, place)
        except (ValueError, RecursionError):
            pass
        else:
            # A number may continue after the end of the buffer.
            is_whole = end < len(buffer) or self._ended
            if is_whole and buffer.count("[", place, end) + buffer.count("{", place, end) <= DEEPEST:
                self._move_to(end)
                return found
        text = self._text(self._largest)
        if text is None:
            raise Damaged(f"it has more than {self._largest:,} characters")
        return parsed(text)

    def skip(self) -> None:
        self._expect_value()
        self._text(0)

    def _text(self, largest: int) -> str | None:
        """Return the text of the next value; None if it does not fit in the buffer and is longer than `largest`.

        Its end is found by its brackets and quotes.
        """
        at, depth, inside, fits = self._place, 0, False, True
        is_scalar = self._buffer[at] not in '"[{'
        while True:
            match = (_AFTER_SCALAR if is_scalar else _INSIDE if inside else _OUTSIDE).search(self._buffer, at)
            if match is None or (match[0] == "\\" and match.end() == len(self._buffer)):
                at = len(self._buffer) if match is None else match.start()
                if not fits or at - self._place > largest:
                    self._passed += at
                    self._buffer, self._place, at, fits = self._buffer[at:], 0, 0, False
                if self._more():
                    continue
                if not is_scalar:
                    raise InvalidInput(f"the file ends in the middle of a value (character {self.position:,})")
            elif is_scalar:
                at = match.start()
            else:
                at = match.end()
                if match[0] == "\\":
                    at += 1
                    continue
                if match[0] == '"':
                    inside = not inside
                else:
                    depth += 1 if match[0] in "[{" else -1
                if inside or depth > 0:
                    continue
            text = self._buffer[self._place : at] if fits else None
            self._move_to(at)
            return text

    def _expect_value(self) -> None:
        found = self.peek()
        if not found or found in ",:]}":
            raise InvalidInput(f"a value is missing at character {self.position:,}; the rest is not read")

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

    def _more(self) -> bool:
        """Read more data. Returns False at the end of the stream."""
        if self._ended:
            return False
        block = self._stream.read(CHUNK)
        self._ended = not block
        self._buffer += self._decoder.decode(block, final=self._ended)
        return True


class Fields:
    """The fields of one JSON object. All methods raise InvalidInput for a value that is something else."""

    __slots__ = ("values",)

    def __init__(self, values: object, what: str = "the entry") -> None:
        if not isinstance(values, dict):
            raise InvalidInput(f"{what} must be an object, not {_kind(values)}")
        self.values: Mapping[str, Any] = values

    def has(self, name: str) -> bool:
        """Return whether a field is there and is not null."""
        return self.values.get(name) is not None

    def raw(self, name: str) -> Any:  # noqa: ANN401 - whatever JSON holds
        """Return a field as it is; None where it is missing."""
        return self.values.get(name)

    def needed(self, name: str) -> Any:  # noqa: ANN401
        """Return a field that must be there."""
        if name not in self.values:
            raise InvalidInput(f"{name} is missing")
        return self.values[name]

    def words(self, *names: str) -> str | None:
        """Return the first of several fields that is a non-empty string."""
        for name in names:
            value = self.values.get(name)
            if isinstance(value, str) and value.strip():
                return value
        return None

    def inner(self, name: str) -> Fields:
        """Return a field that is an object; an empty one where it is missing or something else."""
        value = self.values.get(name)
        return Fields(value if isinstance(value, dict) else {})

    def objects(self, name: str) -> list[Fields]:
        return [Fields(value) for value in self.items(name) if isinstance(value, dict)]

    def items(self, name: str) -> list[Any]:
        """Return a list; an empty one where it is missing."""
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise InvalidInput(f"{name} must be a list, not {_kind(value)}")
        return value

    def real(self, name: str) -> float:
        return checks.number(self.needed(name), name)

    def text(self, name: str) -> str:
        """Return a string that every store can hold."""
        return checks.storable(self.needed(name), name)

    def name(self, name: str) -> str:
        """Return an id of a user, a thread, a space."""
        return checks.identifier(self.needed(name), name)

    def number(self, name: str, least: int = 0) -> int:
        return checks.at_least(self.needed(name), least, name)

    def flag(self, name: str) -> bool:
        value = self.needed(name)
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} must be true or false, not {_kind(value)}")
        return value

    def moment(self, name: str) -> datetime:
        return as_moment(self.needed(name), name)

    def day(self, name: str) -> date:
        try:
            return date.fromisoformat(self.text(name))
        except ValueError:
            raise InvalidInput(f"{name} is not a day: {quoted(self.raw(name))}") from None

    def word(self, name: str, known: Sequence[T]) -> T:
        value = self.needed(name)
        for word in known:
            if value == word:
                return word
        raise InvalidInput(f"{name} is {quoted(value)}; it must be one of {', '.join(map(str, known))}")

    def numbers(self, name: str) -> tuple[int, ...]:
        return tuple(checks.at_least(each, 1, name) for each in self.items(name))

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(checks.storable(each, name) for each in self.items(name))

    def blob(self, name: str) -> bytes:
        """Return bytes written as hexadecimal digits."""
        try:
            return bytes.fromhex(self.text(name))
        except ValueError:
            raise InvalidInput(f"{name} must be hexadecimal digits") from None

    def seconds(self, name: str) -> timedelta:
        number = self.real(name)
        try:
            return timedelta(seconds=number)
        except OverflowError:
            raise InvalidInput(f"{name} is too long: {number}") from None


def as_moment(value: object, name: str) -> datetime:
    """Return a time in ISO 8601 format with a time zone. Raises InvalidInput."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a time in ISO form, not {_kind(value)}")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise InvalidInput(f"{name} is not a time in ISO form: {quoted(value[:40])}") from None
    return checks.moment(checks.microseconds(moment, name))


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
