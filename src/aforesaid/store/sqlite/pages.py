"""Reading rows straight from the pages of a database, where its own structure is damaged."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

Value: TypeAlias = int | float | str | bytes | None

_HEADER: Final = 100
"""Bytes of the first page that belong to the file header."""
_TABLE_LEAF: Final = 0x0D
_INDEX_LEAF: Final = 0x0A
_USUAL_SIZE: Final = 4096
_WAL_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_TEXT: Final = 13
"""Odd types from here on are texts, even ones from 12 on are bytes."""
_NUMBERS: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
"""The lengths of whole numbers by their types."""


class RawRow(NamedTuple):
    """A row of a table, or an entry of an index (whose number is zero)."""

    number: int
    values: tuple[Value, ...]


def raw_rows(path: Path) -> Iterator[RawRow]:
    """Return every row that can be read from a database and from the write-ahead log beside it.

    Pages that are no longer in use may still hold rows, and one row may come several times.
    """
    data = path.read_bytes()
    size = int.from_bytes(data[16:18], "big")
    size = 65536 if size == 1 else size
    if size < 512 or size & (size - 1):  # noqa: PLR2004 - no page is smaller
        size = _USUAL_SIZE
    pages = {number + 1: data[start : start + size] for number, start in enumerate(range(0, len(data), size))}
    newer = list(_frames(path.with_name(path.name + "-wal"), size))
    images = [*pages.items(), *newer]
    latest = pages | dict(newer)
    for number, page in images:
        yield from _leaf(page, _HEADER if number == 1 else 0, latest, size)


def _frames(path: Path, size: int) -> Iterator[tuple[int, bytes]]:
    if not path.exists():
        return
    data = path.read_bytes()
    step = _FRAME_HEADER + size
    for start in range(_WAL_HEADER, len(data) - step + 1, step):
        yield int.from_bytes(data[start : start + 4], "big"), data[start + _FRAME_HEADER : start + step]


def _leaf(page: bytes, start: int, pages: dict[int, bytes], size: int) -> Iterator[RawRow]:
    kind = page[start] if len(page) > start else 0
    if kind not in (_TABLE_LEAF, _INDEX_LEAF):
        return
    cells = int.from_bytes(page[start + 3 : start + 5], "big")
    for place in range(start + 8, min(start + 8 + 2 * cells, size), 2):
        offset = int.from_bytes(page[place : place + 2], "big")
        try:
            yield _cell(page, offset, kind, pages, size)
        except (ValueError, IndexError, KeyError, UnicodeDecodeError, OverflowError):
            continue  # a damaged cell; the others are tried all the same


def _cell(page: bytes, offset: int, kind: int, pages: dict[int, bytes], size: int) -> RawRow:
    length, offset = _varint(page, offset)
    number = 0
    if kind == _TABLE_LEAF:
        number, offset = _varint(page, offset)
        most = size - 35
    else:
        most = (size - 12) * 64 // 255 - 23
    local = length
    if length > most:
        least = (size - 12) * 32 // 255 - 23
        spilled = least + (length - least) % (size - 4)
        local = spilled if spilled <= most else least
    if length > (1 << 26) or offset + local > len(page):
        raise ValueError("the cell does not fit")
    payload = bytearray(page[offset : offset + local])
    following = int.from_bytes(page[offset + local : offset + local + 4], "big") if local < length else 0
    while len(payload) < length:
        more = pages[following]
        payload += more[4 : 4 + min(size - 4, length - len(payload))]
        following = int.from_bytes(more[:4], "big")
    return RawRow(number, tuple(_record(bytes(payload))))


def _record(payload: bytes) -> Iterator[Value]:
    end, at = _varint(payload, 0)
    types = []
    while at < end:
        kind, at = _varint(payload, at)
        types.append(kind)
    if at != end:
        raise ValueError("the head of the record does not fit")
    for kind in types:
        value, at = _value(payload, at, kind)
        yield value


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind == 0:
        return None, at
    if kind in (8, 9):
        return kind - 8, at
    if kind in _NUMBERS:
        end = at + _NUMBERS[kind]
        return int.from_bytes(payload[at:end], "big", signed=True), end
    if kind < _TEXT - 1:
        raise ValueError("a type that is not used here")
    end = at + (kind - (_TEXT if kind % 2 else _TEXT - 1)) // 2
    if end > len(payload):
        raise ValueError("the value does not fit")
    return (payload[at:end].decode() if kind % 2 else payload[at:end]), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for place in range(8):
        byte = data[at + place]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more follows
            return value, at + place + 1
    return value << 8 | data[at + 8], at + 9


def log_is_broken(path: Path) -> bool:
    """Tell whether a write-ahead log has pages that SQLite will not read, because something before them is damaged.

    SQLite takes the first damaged page for the end of the log, as after a power cut, and says nothing.
    """
    data = path.read_bytes() if path.exists() else b""
    if len(data) <= _WAL_HEADER:
        return False
    order: Literal["big", "little"] = "big" if data[3] & 1 else "little"
    size = int.from_bytes(data[8:12], "big")
    salts, step = data[16:24], _FRAME_HEADER + size
    sums = _sums((0, 0), data[:24], order)
    if sums != (int.from_bytes(data[24:28], "big"), int.from_bytes(data[28:32], "big")):
        return True
    whole = True
    for start in range(_WAL_HEADER, len(data) - step + 1, step):
        frame = data[start : start + step]
        if whole and frame[8:16] == salts:
            sums = _sums(_sums(sums, frame[:8], order), frame[_FRAME_HEADER:], order)
            whole = sums == (int.from_bytes(frame[16:20], "big"), int.from_bytes(frame[20:24], "big"))
        else:
            whole = False
        if not whole and frame[8:16] == salts:
            return True
    return False


def _sums(sums: tuple[int, int], data: bytes, order: Literal["big", "little"]) -> tuple[int, int]:
    """Add to the checksums that SQLite keeps of a write-ahead log."""
    first, second = sums
    numbers = struct.unpack(f"{'>' if order == 'big' else '<'}{len(data) // 4}I", data)
    for one, two in zip(numbers[::2], numbers[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + two + first) & 0xFFFFFFFF
    return first, second
