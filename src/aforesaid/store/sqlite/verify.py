"""Checks a file, and salvages what a damaged one still holds."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import apsw

from aforesaid.domain.message import message_hash
from aforesaid.errors import StoreDamaged
from aforesaid.store import checksums
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.contract import Progress
from aforesaid.store.sql import Row, for_sqlite

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_PAGE: Final = 2_000

_FOR_HASHES: Final = """
SELECT l.seq, CAST(o.space AS BLOB), CAST(o.name AS BLOB), CAST(t.name AS BLOB), CAST(l.given_id AS BLOB), CAST(l.role AS BLOB),
       CAST(a.name AS BLOB), CAST(l.name AS BLOB), CAST(l.text AS BLOB), l.at, l.stored_at, l.hash, CAST(l.details AS BLOB)
  FROM log l JOIN person o ON o.id = l.owner JOIN person a ON a.id = l.author JOIN thread t ON t.id = l.thread
 WHERE l.seq > ? ORDER BY l.seq LIMIT ?
"""


def check_database(connection: apsw.Connection) -> Iterator[str]:
    """Let SQLite check its own pages and indexes."""
    for (finding,) in connection.execute("PRAGMA integrity_check(20)"):
        if finding != "ok":
            yield finding


def check_references(connection: apsw.Connection) -> Iterator[str]:
    """Check that whatever is referred to exists."""
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} refers to a missing row of {parent}"
    yield from check_by_queries(connection, "references")


def check_index(connection: apsw.Connection) -> Iterator[str]:
    """Compare the keyword index with the messages. Needs the writing connection."""
    for table, what in (("log_index", "the messages"), ("note_index", "the summaries and memories")):
        try:
            # With rank 1 the content is compared too; without it, drift goes unnoticed.
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        except apsw.CorruptError:
            yield f"the keyword index does not match {what}"


def hash_pages(
    read: Callable[[str, tuple[int, int]], list[Row]], total: int, progress: Progress | None
) -> Iterator[str]:
    """Recompute the hash of every message, a page at a time."""
    last, done = 0, 0
    while page := read(_FOR_HASHES, (last, _PAGE)):
        for row in page:
            if not _intact(row):
                yield f"#{row[0]} is not what was stored"
        last = page[-1][0]
        done += len(page)
        if progress is not None:
            progress("hashes", done, max(total, done))


def _intact(row: Row) -> bool:
    try:
        *texts, details = [None if text is None else bytes(text).decode() for text in (*row[1:9], row[12])]
    except UnicodeDecodeError:
        return False
    space, user, thread, given_id, role, author, name, text = texts
    if space is None or user is None or thread is None or role is None or author is None or text is None:
        return False
    names = space, user, thread, given_id, role, author, name
    return bool(message_hash(*names, text, row[9], row[10], details) == row[11])


def check_checksums(connection: apsw.Connection) -> Iterator[str]:
    """Recompute the checksum of every row that has one."""
    for table in CHECKSUMS.columns:
        try:
            for (name,) in connection.execute(CHECKSUMS.wrong(table)):
                yield f"{table} {name} is not what was stored"
        except UnicodeDecodeError:
            yield f"a row of {table} is not what was stored: it has text that is not valid UTF-8"


def check_by_queries(connection: apsw.Connection, check: str) -> Iterator[str]:
    """Run the queries of a check that both databases have."""
    queries, template = checksums.CHECKS[check]
    for what, query in queries:
        for (name,) in connection.execute(for_sqlite(query)):
            yield template.format(what=what, name=name)


_HEADER: Final = 32
_FRAME_HEADER: Final = 24
_SECTOR: Final = 512
"""Bytes that a disk writes as a whole."""
_SIZES: Final = tuple(1 << bits for bits in range(9, 17))
"""Page sizes that SQLite knows."""
_MOST_BYTES: Final = 256 << 20
"""Larger logs are not checked. A log is usually below 16 MB; this bounds the memory and the time of an opening."""
_PAUSE_SECONDS: Final = 0.05
"""A log in which damage was found is read again after this time: another process may be writing it."""


class _Frames(NamedTuple):
    """The frames of a log: which are whole and of this log, and which end a transaction."""

    good: NDArray[np.bool_]
    ends: NDArray[np.bool_]


def refuse_damaged_log(database: Path) -> None:
    """Raise StoreDamaged if the write-ahead log of a database has damage before its last transaction."""
    log = database.with_name(database.name + "-wal")
    if not _is_damaged(log):
        return
    before = _state(log)
    time.sleep(_PAUSE_SECONDS)
    if _is_damaged(log) and _state(log) == before:
        raise StoreDamaged(
            f"{log} is damaged before its last transaction: SQLite would silently leave out everything after the "
            "damage. Nothing was changed. To recover what is whole, run: aforesaid verify --repair"
        )


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _is_damaged(log: Path) -> bool:
    if not _HEADER < _state(log)[0] <= _MOST_BYTES:
        return False
    try:
        data = log.read_bytes()
    except FileNotFoundError:
        return False  # another process has just closed it
    if len(data) <= _HEADER:
        return False
    if _header_is_whole(data[:_HEADER]):
        size = int.from_bytes(data[8:12], "big")
        return _damaged_inside(_frames(data, size, data[16:24], _is_big(data)))
    return any(_log_of_damaged_header(data, size) for size in _SIZES)


def _log_of_damaged_header(data: bytes, size: int) -> bool:
    """Tell whether a header that is not whole belongs to the frames behind it.

    The header of a new log may be torn: then the frames behind it are of an older log, with other salts, and have been
    copied into the database before.
    """
    salts = data[_HEADER + 8 : _HEADER + 16]
    mended = data[:16] + salts + data[24:_HEADER]
    if data[16:24] != salts and not _header_is_whole(mended):
        return False
    for big in (False, True):
        frames = _frames(data, size, salts, big)
        # Not the first one: its checksum goes on from the header's.
        if (frames.good[1:] & frames.ends[1:])[:-1].any():
            return True
    return False


def _damaged_inside(frames: _Frames) -> bool:
    import numpy as np  # noqa: PLC0415 - loaded only where there is a log

    bad = np.flatnonzero(~frames.good)
    whole = np.flatnonzero(frames.good)
    if not len(bad) or not len(whole) or whole[-1] < bad[0]:
        return False
    return bool(frames.ends[bad[0] : whole[-1]].any())


def _frames(data: bytes, size: int, salts: bytes, big: bool) -> _Frames:  # noqa: FBT001
    """Check every frame against the checksum that the frame before it carries."""
    import numpy as np  # noqa: PLC0415

    step = _FRAME_HEADER + size
    count = (len(data) - _HEADER) // step
    table = np.frombuffer(data, np.uint8, count * step, _HEADER).reshape(count, step)
    heads = np.ascontiguousarray(table[:, :_FRAME_HEADER]).view(">u4").astype(np.uint32)
    ours = (table[:, 8:16] == np.frombuffer(salts, np.uint8)).all(axis=1)
    stored = heads[:, 4:6]
    first = np.frombuffer(data, ">u4", 2, 24).astype(np.uint32)
    before = np.vstack([first[None, :], stored[:-1]]) if count else stored
    summed = np.concatenate([table[:, :8], table[:, _FRAME_HEADER:]], axis=1)
    words = np.ascontiguousarray(summed).view(">u4" if big else "<u4").astype(np.uint32)
    good = ours & (_checksums(words, before) == stored).all(axis=1)
    starts = _HEADER + step * np.arange(count)
    in_one_sector = starts % _SECTOR <= _SECTOR - _FRAME_HEADER
    # A frame that is not whole is believed to end a transaction only where its head was written at once.
    ends = (heads[:, 1] != 0) & (good | (ours & in_one_sector))
    return _Frames(good, ends)


def _checksums(words: Any, before: Any) -> Any:  # noqa: ANN401 - arrays of unsigned 32-bit numbers
    """Return SQLite's checksums of rows of words, each going on from another checksum.

    A step adds two words: `a += x + b; b += y + a`. Steps are linear, so a row is one matrix product.
    """
    import numpy as np  # noqa: PLC0415

    steps = words.shape[1] // 2
    powers = [(1, 0, 0, 1)]
    for _ in range(steps):
        a, b, c, d = powers[-1]
        powers.append(((a + c) & 0xFFFFFFFF, (b + d) & 0xFFFFFFFF, (a + 2 * c) & 0xFFFFFFFF, (b + 2 * d) & 0xFFFFFFFF))
    table = np.array(powers, np.uint32)
    of_each = table[steps - 1 :: -1] if steps else table[:0]
    one, two = words[:, ::2], words[:, ::2] + words[:, 1::2]
    first = one @ of_each[:, 0] + two @ of_each[:, 1] + before @ table[steps, :2]
    second = one @ of_each[:, 2] + two @ of_each[:, 3] + before @ table[steps, 2:]
    return np.stack([first, second], axis=1)


def _is_big(data: bytes) -> bool:
    return bool(data[3] & 1)


def _header_is_whole(header: bytes) -> bool:
    import numpy as np  # noqa: PLC0415

    words = np.frombuffer(header, ">u4" if _is_big(header) else "<u4", 6).astype(np.uint32)
    sums = _checksums(words[None, :], np.zeros((1, 2), np.uint32))[0]
    known = int.from_bytes(header[8:12], "big") in _SIZES
    return known and sums.tolist() == np.frombuffer(header, ">u4", 2, 24).tolist()


Value: TypeAlias = int | float | str | bytes | None

_PAGE_HEADER: Final = 100
"""Bytes of the first page that belong to the file header."""
_TABLE_LEAF: Final = 0x0D
_INDEX_LEAF: Final = 0x0A
_USUAL_SIZE: Final = 4096
_WAL_HEADER: Final = 32
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
    newer = list(_page_frames(path.with_name(path.name + "-wal"), size))
    images = [*pages.items(), *newer]
    latest = pages | dict(newer)
    for number, page in images:
        yield from _leaf(page, _PAGE_HEADER if number == 1 else 0, latest, size)


def _page_frames(path: Path, size: int) -> Iterator[tuple[int, bytes]]:
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
