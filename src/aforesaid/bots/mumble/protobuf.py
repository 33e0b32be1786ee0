"""The part of Protocol Buffers that Mumble needs: flat messages of numbers, strings and bytes.

A message is a dataclass whose fields declare their number and type. None and empty fields are not sent. Unknown fields
are skipped, so newer servers may send more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import Field, field, fields
from typing import Any, Final, NamedTuple, TypeVar

from aforesaid.errors import AforesaidError

_VARINT: Final = 0
_FIXED64: Final = 1
_BYTES: Final = 2
_FIXED32: Final = 5
_LONGEST_VARINT: Final = 10
_SIXTY_FOUR: Final = (1 << 64) - 1

Made = TypeVar("Made")


class MalformedData(AforesaidError):
    """Received data does not follow the protocol."""


class _Kind(NamedTuple):
    wire: int
    write: Callable[[Any], bytes]
    read: Callable[[Any], Any]


class _Place(NamedTuple):
    number: int
    kind: _Kind
    repeated: bool


def varint(value: int) -> bytes:
    """Encode a number with seven bits per byte. Negative numbers take ten bytes, as in every implementation."""
    value &= _SIXTY_FOUR
    out = bytearray()
    while value > 0x7F:  # noqa: PLR2004 - what fits into seven bits
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Decode a number; return it and the position after it."""
    value = 0
    for count, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:  # noqa: PLR2004 - the last byte has its highest bit clear
            return value & _SIXTY_FOUR, at + count + 1
    raise MalformedData("a number is longer than ten bytes or truncated")


def pieces(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yield the number, wire type and value of each field of a message."""
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        wire = key & 7
        if wire == _VARINT:
            value, at = read_varint(data, at)
            yield key >> 3, wire, value
            continue
        if wire == _BYTES:
            length, at = read_varint(data, at)
        elif wire in {_FIXED32, _FIXED64}:
            length = 4 if wire == _FIXED32 else 8
        else:
            raise MalformedData(f"a field has the unknown wire type {wire}")
        if at + length > len(data):
            raise MalformedData("a message is truncated inside a field")
        yield key >> 3, wire, data[at : at + length]
        at += length


def _written_bytes(value: bytes) -> bytes:
    return varint(len(value)) + value


_NUMBER: Final = _Kind(_VARINT, varint, int)
_SIGNED: Final = _Kind(_VARINT, varint, lambda value: value - (1 << 64) if value >> 63 else value)
_FLAG: Final = _Kind(_VARINT, lambda value: varint(int(value)), bool)
_TEXT: Final = _Kind(
    _BYTES,
    # Half of a surrogate pair has no UTF-8; it becomes a question mark instead of an error.
    lambda value: _written_bytes(value.encode("utf-8", "replace")),
    lambda value: value.decode("utf-8", "replace"),
)
_DATA: Final = _Kind(_BYTES, _written_bytes, bytes)


def _one(number: int, kind: _Kind) -> Any:  # noqa: ANN401 - placeholder for the value of a field
    return field(default=None, metadata={"place": _Place(number, kind, repeated=False)})


def _many(number: int, kind: _Kind) -> Any:  # noqa: ANN401
    return field(default=(), metadata={"place": _Place(number, kind, repeated=True)})


def number(at: int) -> Any:  # noqa: ANN401
    """Declare a non-negative number or an enum."""
    return _one(at, _NUMBER)


def signed(at: int) -> Any:  # noqa: ANN401
    """Declare a number that may be negative."""
    return _one(at, _SIGNED)


def flag(at: int) -> Any:  # noqa: ANN401
    """Declare a boolean."""
    return _one(at, _FLAG)


def text(at: int) -> Any:  # noqa: ANN401
    """Declare a string."""
    return _one(at, _TEXT)


def data(at: int) -> Any:  # noqa: ANN401
    """Declare bytes."""
    return _one(at, _DATA)


def numbers(at: int) -> Any:  # noqa: ANN401
    """Declare repeated numbers."""
    return _many(at, _NUMBER)


def texts(at: int) -> Any:  # noqa: ANN401
    """Declare repeated strings."""
    return _many(at, _TEXT)


def many_data(at: int) -> Any:  # noqa: ANN401
    """Declare repeated bytes: nested messages."""
    return _many(at, _DATA)


def _places(kind: type) -> tuple[tuple[str, _Place], ...]:
    declared: tuple[Field[Any], ...] = fields(kind)
    return tuple((each.name, each.metadata["place"]) for each in declared)


def encode(message: Any) -> bytes:  # noqa: ANN401 - any of the declared messages
    """Encode a message."""
    out = bytearray()
    for name, place in _places(type(message)):
        held = getattr(message, name)
        for value in held if place.repeated else () if held is None else (held,):
            out += varint(place.number << 3 | place.kind.wire) + place.kind.write(value)
    return bytes(out)


def decode(kind: type[Made], wired: bytes) -> Made:
    """Decode a message. If a field occurs twice, the last value wins."""
    by_number = {place.number: (name, place) for name, place in _places(kind)}
    found: dict[str, Any] = {}
    for number_, wire, value in pieces(wired):
        if number_ not in by_number:
            continue
        name, place = by_number[number_]
        for each in _unpacked(place, wire, value):
            read = place.kind.read(each)
            found[name] = (*found.get(name, ()), read) if place.repeated else read
    return kind(**found)


def _unpacked(place: _Place, wire: int, value: int | bytes) -> Iterator[int | bytes]:
    """Yield the values of one field: repeated numbers may be packed into one."""
    if wire == place.kind.wire:
        yield value
    elif place.repeated and place.kind.wire == _VARINT and isinstance(value, bytes) and wire == _BYTES:
        at = 0
        while at < len(value):
            single, at = read_varint(value, at)
            yield single
    else:
        raise MalformedData(f"field {place.number} has the wire type {wire} instead of {place.kind.wire}")
