"""Looks for damage inside a write-ahead log before SQLite opens it.

SQLite takes the first frame with a wrong checksum for the end of the log, as after a power cut, and drops all that
follows without a word. A power cut can only tear the last transaction: each one is synced before the next is written.
So a damaged frame with a whole later transaction behind it is damage to acknowledged data, and the file is refused.
Damage to the last transaction itself cannot be told from a power cut.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aforesaid.errors import StoreDamaged

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
