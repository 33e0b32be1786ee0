"""Reading a database past SQLite: what is read is what SQLite itself would have read, and damage is seen."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from aforesaid.store.sqlite.salvaging import raw_rows
from aforesaid.store.sqlite.verify import log_is_broken

SIZES = (512, 1024, 4096, 65536)
EDGES = (0, 1, 127, 128, 2**15, 2**23, 2**31, 2**47, 2**63)
"""Whole numbers are kept in 0, 1, 2, 3, 4, 6 or 8 bytes: these lie on the borders."""
NUMBERS = sorted({sign * edge - less for edge in EDGES for sign in (1, -1) for less in (0, 1)})


def lengths(size: int) -> Iterator[int]:
    """Lengths of texts, around every border at which SQLite keeps a row of a page differently."""
    borders = (size - 35, (size - 12) * 32 // 255 - 23, (size - 12) * 64 // 255 - 23, size, 2 * size - 4, 3 * size)
    yield from sorted({max(border + more, 0) for border in borders for more in range(-12, 13)})
    yield from (0, 1, 57, 58, 64, 65, 127, 128, 16_384)


def made(path: Path, size: int, rows: list[tuple[Any, ...]]) -> dict[int, tuple[Any, ...]]:
    """Make a database with one table. Return its rows, as SQLite reads them."""
    with closing(apsw.Connection(str(path))) as database:
        database.pragma("page_size", size)
        database.execute("CREATE TABLE kept (a, b, c)")
        database.executemany("INSERT INTO kept VALUES (?, ?, ?)", rows)
        return {number: tuple(values) for number, *values in database.execute("SELECT rowid, * FROM kept")}


def table_rows(path: Path) -> dict[int, tuple[Any, ...]]:
    """Return what is read past SQLite, without the table's own description."""
    found: dict[int, tuple[Any, ...]] = {}
    for number, values in raw_rows(path):
        if values[0] != "table":
            assert found.setdefault(number, values) == values
    return found


@pytest.mark.parametrize("size", SIZES)
def test_rows_of_any_length_are_read_as_sqlite_reads_them(tmp_path: Path, size: int) -> None:
    path = tmp_path / "memory.db"
    rows: list[tuple[Any, ...]] = [(None, "é" * (length // 2) + "x" * (length % 2), b"") for length in lengths(size)]
    rows += [(None, "", bytes(range(256)) * (length // 256 + 1)) for length in lengths(size)]
    expected = made(path, size, rows)
    assert table_rows(path) == expected


def test_numbers_of_any_size_are_read_as_sqlite_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    numbers = [number for number in NUMBERS if -(2**63) <= number < 2**63]
    expected = made(path, 4096, [(number, None, str(number)) for number in numbers])
    assert table_rows(path) == expected
    assert {row[0] for row in expected.values()} == set(numbers)


def test_rows_with_the_largest_and_the_smallest_numbers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    numbers = sorted({edge - less for edge in (1 << 7, 1 << 14, 1 << 21, 1 << 28, 1 << 56, 1 << 63) for less in (1, 2)})
    made(path, 4096, [])
    with closing(apsw.Connection(str(path))) as database:
        database.executemany("INSERT INTO kept (rowid, a) VALUES (?, ?)", [(number, str(number)) for number in numbers])
    assert {number: row[0] for number, row in table_rows(path).items()} == {number: str(number) for number in numbers}


def test_a_row_with_what_is_never_stored_here_is_passed_over_and_the_others_are_read(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    made(path, 4096, [("before", 1, None), ("a fraction", 0.5, None), ("after", 2, None)])
    assert [row[0] for row in table_rows(path).values()] == ["before", "after"]


@pytest.mark.parametrize("size", SIZES)
def test_entries_of_an_index_are_read_too(tmp_path: Path, size: int) -> None:
    for length in lengths(size):
        path = tmp_path / f"{length}.db"
        with closing(apsw.Connection(str(path))) as database:
            database.pragma("page_size", size)
            database.execute("CREATE TABLE kept (a PRIMARY KEY, b) WITHOUT ROWID")
            database.execute("INSERT INTO kept VALUES (?, ?)", ("x" * length, length))
        assert (0, ("x" * length, length)) in list(raw_rows(path))


def test_a_database_without_its_head_is_read_as_one_with_pages_of_the_usual_size(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    expected = made(path, 4096, [(number, "x" * 50, None) for number in range(500)])
    whole = path.read_bytes()
    for size in (0, 256, 511, 513, 4095, 12288):
        path.write_bytes(whole[:16] + struct.pack(">H", size) + whole[18:])
        assert table_rows(path) == expected


def test_a_file_that_ends_early_gives_what_is_left_of_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    expected = made(path, 512, [(number, "x" * 50, None) for number in range(100)])
    whole = path.read_bytes()
    for kept in (0, 50, 100, 107, 600, 5_000, len(whole) - 1):
        path.write_bytes(whole[:kept])
        found = table_rows(path)
        assert found.items() <= expected.items()
        assert len(found) < len(expected)


def logged(folder: Path, *, changes: int = 5, size: int = 512) -> Path:
    """Make a database whose rows are in its log alone, each written by a change of its own. Return its path."""
    live = folder / "live"
    live.mkdir()
    with closing(apsw.Connection(str(live / "memory.db"))) as database:
        database.pragma("page_size", size)
        database.pragma("journal_mode", "wal")
        database.pragma("wal_autocheckpoint", 0)
        database.execute("CREATE TABLE kept (a, b, c)")
        for number in range(changes):
            database.execute("INSERT INTO kept VALUES (?, ?, ?)", (number, "x" * 300, None))
        shutil.copytree(live, folder / "killed")
    return folder / "killed" / "memory.db"


def test_rows_that_are_in_the_log_alone_are_read_and_a_row_goes_on_in_a_page_of_the_log(tmp_path: Path) -> None:
    path = logged(tmp_path)
    long = "y" * 5_000
    with closing(apsw.Connection(str(path))) as database:
        database.pragma("wal_autocheckpoint", 0)
        database.execute("INSERT INTO kept VALUES (9, ?, 'long')", (long,))
        shutil.copytree(path.parent, tmp_path / "later")
    found = table_rows(tmp_path / "later" / "memory.db")
    assert [row[0] for row in found.values()] == [0, 1, 2, 3, 4, 9]
    assert found[6] == (9, long, "long")


def rows_in(path: Path) -> int:
    """How many rows SQLite finds. It works on a copy: reading changes the log."""
    copy = path.parent.with_name("read")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path.parent, copy)
    with closing(apsw.Connection(str(copy / path.name))) as database:
        try:
            return int(database.execute("SELECT count(*) FROM kept").get)
        except apsw.SQLError:
            return -1  # not even the table is there


def test_a_log_is_broken_when_sqlite_would_silently_leave_out_what_follows(tmp_path: Path) -> None:
    path = logged(tmp_path)
    log = path.with_name("memory.db-wal")
    whole = log.read_bytes()
    step = 24 + 512
    frames = (len(whole) - 32) // step
    assert (rows_in(path), log_is_broken(log)) == (5, False)
    # One changed bit anywhere in the head of the log, or in the heads and the pages of its frames.
    places = [
        *range(32),
        *(32 + frame * step + place for frame in range(frames) for place in (0, 3, 4, 16, 23, 24, 535)),
    ]
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1
        log.write_bytes(changed)
        assert (log_is_broken(log), rows_in(path) < 5) == (True, True), place


def test_a_frame_that_seems_to_be_of_an_older_log_is_damage_only_if_others_follow(tmp_path: Path) -> None:
    log = logged(tmp_path).with_name("memory.db-wal")
    whole = log.read_bytes()
    step = 24 + 512
    last = len(whole) - step
    for salt in range(8, 16):
        for start, broken in ((last, False), (last - step, True), (32, True)):
            changed = bytearray(whole)
            changed[start + salt] ^= 1
            log.write_bytes(changed)
            assert log_is_broken(log) is broken


def test_a_log_that_ends_in_the_middle_of_a_frame_is_what_a_power_cut_leaves(tmp_path: Path) -> None:
    log = logged(tmp_path).with_name("memory.db-wal")
    whole = log.read_bytes()
    for kept in (0, 31, 32, 33, 32 + 23, 32 + 24 + 511, 32 + 24 + 512, len(whole) - 1):
        log.write_bytes(whole[:kept])
        assert not log_is_broken(log), kept
    log.write_bytes(whole[:31] + bytes([whole[31] ^ 1]))
    assert not log_is_broken(log), "there is nothing in it that could be left out"
    log.unlink()
    assert not log_is_broken(log)


def test_what_an_older_log_left_behind_the_newer_one_is_no_damage(tmp_path: Path) -> None:
    path = logged(tmp_path, changes=20)
    log = path.with_name("memory.db-wal")
    with closing(apsw.Connection(str(path))) as database:
        database.pragma("wal_autocheckpoint", 0)
        assert database.execute("SELECT count(*) FROM kept").get == 20
        database.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        database.execute("INSERT INTO kept VALUES ('newer', 1, 2)")
        shutil.copytree(path.parent, tmp_path / "later")
        left = log.read_bytes()
    later = tmp_path / "later" / "memory.db"
    assert left[16:24] != left[-512 - 24 + 8 : -512 - 24 + 16], "two logs in one file"
    assert not log_is_broken(later.with_name("memory.db-wal"))
    assert rows_in(later) == 21


def big_endian(log: bytes, size: int) -> bytes:
    """Return a log as a machine would have written it that puts the largest byte of a number first."""
    done = bytearray(log)
    sums = (0, 0)

    def add(part: bytes) -> None:
        nonlocal sums
        for one, two in struct.iter_unpack(">II", part):
            first = (sums[0] + one + sums[1]) % 2**32
            sums = first, (sums[1] + two + first) % 2**32

    done[3] |= 1
    add(bytes(done[:24]))
    done[24:32] = struct.pack(">II", *sums)
    for start in range(32, len(done), 24 + size):
        add(bytes(done[start : start + 8]))
        add(bytes(done[start + 24 : start + 24 + size]))
        done[start + 16 : start + 24] = struct.pack(">II", *sums)
    return bytes(done)


def test_a_log_from_a_machine_with_the_other_order_of_bytes_is_whole(tmp_path: Path) -> None:
    path = logged(tmp_path)
    log = path.with_name("memory.db-wal")
    log.write_bytes(big_endian(log.read_bytes(), 512))
    assert (rows_in(path), log_is_broken(log)) == (5, False)
