"""Lists as parameters of queries: whole columns of rows travel as arrays, in the database's own binary form.

psycopg writes a list element by element, as text with quotes, and names its type after the largest number in it. Writing
them here takes a tenth of the time, and the type is always the same, so that a query is prepared once.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from psycopg import DataError
from psycopg.adapt import Dumper, PyFormat
from psycopg.pq import Format
from psycopg.types.array import ListBinaryDumper

if TYPE_CHECKING:
    from psycopg.abc import AdaptContext, Buffer, DumperKey

_HEAD: Final = struct.Struct("!IIIII")
"""Dimensions, whether there are NULLs, the elements' type, how many there are, the number of the first."""
_LENGTH: Final = struct.Struct("!i").pack
_NULL: Final = b"\xff\xff\xff\xff"


class _Kind(NamedTuple):
    """A type of elements: its number and that of its arrays in PostgreSQL, and how elements are written."""

    element: int
    array: int
    written: Callable[[Sequence[Any]], bytes]


def _of_any_length(encoded: Sequence[bytes]) -> bytes:
    return b"".join(chain.from_iterable((_LENGTH(len(each)), each) for each in encoded))


def _texts(values: Sequence[str]) -> bytes:
    return _of_any_length([value.encode() for value in values])


def _whole_numbers(values: Sequence[int]) -> bytes:
    try:
        return struct.pack("!" + "iq" * len(values), *chain.from_iterable((8, value) for value in values))
    except struct.error as error:
        raise DataError(f"a number is too large: {error}") from error


def _truths(values: Sequence[bool]) -> bytes:
    return b"".join([b"\x00\x00\x00\x01\x01" if value else b"\x00\x00\x00\x01\x00" for value in values])


_KINDS: Final[dict[type, _Kind]] = {
    str: _Kind(25, 1009, _texts),
    int: _Kind(20, 1016, _whole_numbers),
    bool: _Kind(16, 1000, _truths),
    bytes: _Kind(17, 1001, _of_any_length),
}


class _ArrayDumper(Dumper):
    """Writes lists of one kind of elements, some of which may be missing."""

    format = Format.BINARY

    def __init__(self, cls: type, context: AdaptContext | None, kind: _Kind) -> None:
        super().__init__(cls, context)
        self.oid = kind.array
        self._kind = kind

    def dump(self, obj: Sequence[Any]) -> Buffer:
        """Return the list as PostgreSQL reads it."""
        element, _, written = self._kind
        missing = None in obj
        head = _HEAD.pack(1, int(missing), element, len(obj), 1)
        if missing:
            return head + b"".join([_NULL if value is None else written((value,)) for value in obj])
        return head + written(obj)


class ListDumper(ListBinaryDumper):
    """Chooses how a list is written: by us where its first element is of a kind that we know."""

    def get_key(self, obj: list[Any], format: PyFormat) -> DumperKey:  # noqa: A002 - as psycopg calls it
        """Name what is to be written, so that the dumper is found again."""
        kind = _kind(obj)
        return super().get_key(obj, format) if kind is None else (list, kind)

    def upgrade(self, obj: list[Any], format: PyFormat) -> Any:  # noqa: A002, ANN401 - a dumper of another class
        """Return what writes such a list."""
        kind = _kind(obj)
        return super().upgrade(obj, format) if kind is None else _ArrayDumper(list, None, _KINDS[kind])


def _kind(values: list[Any]) -> type | None:
    first = next((value for value in values if value is not None), None)
    return type(first) if type(first) in _KINDS else None
