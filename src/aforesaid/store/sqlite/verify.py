"""Checks a file, and whether its write-ahead log is whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import apsw

from aforesaid.domain.message import message_hash
from aforesaid.domain.report import Check
from aforesaid.errors import StoreDamaged
from aforesaid.extras import np
from aforesaid.store import checksums, contract
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.contract import Progress
from aforesaid.store.sql import Row, for_sqlite
from aforesaid.store.sqlite.connection import every

if TYPE_CHECKING:
    from numpy.typing import NDArray


_PAGE: Final = 2_000

_FOR_HASHES: Final = """
SELECT l.seq, CAST(o.space AS BLOB), CAST(o.name AS BLOB), CAST(t.name AS BLOB), CAST(l.given_id AS BLOB), CAST(l.role AS BLOB),
       CAST(a.name AS BLOB), CAST(l.name AS BLOB), CAST(l.text AS BLOB), l.at, l.stored_at, l.hash, CAST(l.details AS BLOB)
  FROM log l JOIN person o ON o.id = l.owner JOIN person a ON a.id = l.author JOIN thread t ON t.id = l.thread
 WHERE l.seq > ? ORDER BY l.seq LIMIT ?
"""


def check(connection: apsw.Connection, messages: int, progress: Progress | None) -> list[Check]:
    """Run all checks but `check_index`, and close the connection."""
    checks: dict[str, Callable[[], Iterable[str]]] = {
        "database": lambda: [found for (found,) in connection.execute("PRAGMA integrity_check(20)") if found != "ok"],
        "references": lambda: _check_references(connection),
        "hashes": lambda: _check_hashes(connection, messages, progress),
        "checksums": lambda: check_checksums(connection),
        "counts": lambda: _check_by_queries(connection, "counts"),
        "archives": lambda: _check_by_queries(connection, "archives"),
        "memories": lambda: _check_by_queries(connection, "memories"),
    }
    with closing(connection):
        return [contract.run(name, findings) for name, findings in checks.items()]


def check_index(connection: apsw.Connection) -> Iterator[str]:
    """Compare the keyword index with the messages. Needs the writing connection."""
    for table, what in (("log_index", "the messages"), ("note_index", "the summaries and memories")):
        try:
            # With rank 1 the content is compared too; without it, drift goes unnoticed.
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        except apsw.CorruptError:
            yield f"the keyword index does not match {what}"


def _check_references(connection: apsw.Connection) -> Iterator[str]:
    for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
        yield f"row {row} of {table} refers to a missing row of {parent}"
    yield from _check_by_queries(connection, "references")


def _check_hashes(connection: apsw.Connection, total: int, progress: Progress | None) -> Iterator[str]:
    """Recompute the hash of every message, a page at a time."""
    done, last = 0, 0
    while page := every(connection.execute(_FOR_HASHES, (last, _PAGE))):
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


def _check_by_queries(connection: apsw.Connection, name: str) -> Iterator[str]:
    queries, template = checksums.CHECKS[name]
    for what, query in queries:
        for (found,) in connection.execute(for_sqlite(query)):
            yield template.format(what=what, name=found)


LOG_HEADER: Final = 32
FRAME_HEADER: Final = 24
_SECTOR: Final = 512
"""Bytes that a disk writes as a whole."""
_SIZES: Final = tuple(1 << bits for bits in range(9, 17))
"""Page sizes that SQLite knows."""
_MOST_BYTES: Final = 256 << 20
"""Larger logs are not checked. A log is usually below 16 MB; this bounds the memory and the time of an opening."""
_PAUSE_SECONDS: Final = 0.05
"""A log in which damage was found is read again after this time: another process may be writing it."""


class _Frames(NamedTuple):
    """The frames of a log: which are of this log, which of these are whole, and which end a transaction."""

    ours: NDArray[np.bool_]
    good: NDArray[np.bool_]
    ends: NDArray[np.bool_]


def refuse_damaged_log(database: Path) -> None:
    """Raise StoreDamaged if the write-ahead log of a database has damage before its last transaction."""
    log = database.with_name(database.name + "-wal")
    if not _is_damaged(log):
        return
    before = state_of(log)
    time.sleep(_PAUSE_SECONDS)
    if _is_damaged(log) and state_of(log) == before:
        raise StoreDamaged(
            f"{log} is damaged before its last transaction: SQLite would silently leave out everything after the "
            "damage. Nothing was changed. To recover what is whole, run: aforesaid verify --repair"
        )


def state_of(path: Path) -> tuple[int, int]:
    """Return the size and the time (nanoseconds) of a file; zeros if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def _is_damaged(log: Path) -> bool:
    if not LOG_HEADER < state_of(log)[0] <= _MOST_BYTES:
        return False
    try:
        data = log.read_bytes()
    except FileNotFoundError:
        return False  # another process has just closed it
    if len(data) <= LOG_HEADER:
        return False
    if not _header_is_whole(data[:LOG_HEADER]):
        return any(_log_of_damaged_header(data, size) for size in _SIZES)
    frames = _frames_of(data)
    bad, whole = np.flatnonzero(~frames.good), np.flatnonzero(frames.good)
    return bool(len(bad) and len(whole) and frames.ends[bad[0] : whole[-1]].any())


def _log_of_damaged_header(data: bytes, size: int) -> bool:
    """Tell whether a header that is not whole belongs to the frames behind it.

    The header of a new log may be torn: then the frames behind it are of an older log, with other salts, and have been
    copied into the database before.
    """
    salts = data[LOG_HEADER + 8 : LOG_HEADER + 16]
    mended = data[:16] + salts + data[24:LOG_HEADER]
    if data[16:24] != salts and not _header_is_whole(mended):
        return False
    for big in (False, True):
        frames = _frames(data, size, salts, big)
        # Not the first one: its checksum goes on from the header's.
        if (frames.good[1:] & frames.ends[1:])[:-1].any():
            return True
    return False


def _frames_of(data: bytes) -> _Frames:
    """Check the frames of a log whose header is whole."""
    return _frames(data, int.from_bytes(data[8:12], "big"), data[16:24], _is_big(data))


def _frames(data: bytes, size: int, salts: bytes, big: bool) -> _Frames:  # noqa: FBT001
    """Check every frame against the checksum that the frame before it carries."""
    step = FRAME_HEADER + size
    count = (len(data) - LOG_HEADER) // step
    table = np.frombuffer(data, np.uint8, count * step, LOG_HEADER).reshape(count, step)
    heads = np.ascontiguousarray(table[:, :FRAME_HEADER]).view(">u4").astype(np.uint32)
    ours = (table[:, 8:16] == np.frombuffer(salts, np.uint8)).all(axis=1)
    stored = heads[:, 4:6]
    first = np.frombuffer(data, ">u4", 2, 24).astype(np.uint32)
    before = np.vstack([first[None, :], stored[:-1]]) if count else stored
    summed = np.concatenate([table[:, :8], table[:, FRAME_HEADER:]], axis=1)
    words = np.ascontiguousarray(summed).view(">u4" if big else "<u4").astype(np.uint32)
    good = ours & (_checksums(words, before) == stored).all(axis=1)
    starts = LOG_HEADER + step * np.arange(count)
    in_one_sector = starts % _SECTOR <= _SECTOR - FRAME_HEADER
    # A frame that is not whole is believed to end a transaction only where its head was written at once.
    ends = (heads[:, 1] != 0) & (good | (ours & in_one_sector))
    return _Frames(ours, good, ends)


def _checksums(words: Any, before: Any) -> Any:  # noqa: ANN401 - arrays of unsigned 32-bit numbers
    """Return SQLite's checksums of rows of words, each going on from another checksum.

    A step adds two words: `a += x + b; b += y + a`. Steps are linear, so a row is one matrix product.
    """
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
    words = np.frombuffer(header, ">u4" if _is_big(header) else "<u4", 6).astype(np.uint32)
    sums = _checksums(words[None, :], np.zeros((1, 2), np.uint32))[0]
    known = int.from_bytes(header[8:12], "big") in _SIZES
    return known and sums.tolist() == np.frombuffer(header, ">u4", 2, 24).tolist()


def log_is_broken(log: Path) -> bool:
    """Tell whether a write-ahead log has pages that SQLite will not read, because something before them is damaged.

    SQLite takes the first damaged page for the end of the log, as after a power cut, and says nothing.
    """
    data = log.read_bytes() if log.exists() else b""
    if len(data) <= LOG_HEADER:
        return False
    if not _header_is_whole(data[:LOG_HEADER]):
        return True
    frames = _frames_of(data)
    bad = np.flatnonzero(~frames.good)
    return bool(len(bad) and frames.ours[bad[0] :].any())
