"""A write-ahead log with damage in its middle is refused at opening; one that a power cut tore is not."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from random import Random

import apsw
import pytest

import aforesaid
from aforesaid.errors import StoreDamaged, StoreError
from aforesaid.portability.migrating import repair
from aforesaid.store.sqlite.verify import refuse_damaged_log

STEP = 24 + 4096


async def crashed(folder: Path) -> Path:
    """Return a database as a killed process left it: with nine transactions in its log."""
    live = folder / "live"
    async with aforesaid.connect(live / "m.db", embedder="none", settings={"background": False}) as memory:
        await memory.user("ann").add("user", "Number 0.")
    async with aforesaid.connect(live / "m.db", embedder="none", settings={"background": False}) as memory:
        for number in range(1, 10):
            await memory.user("ann").add("user", f"Number {number}.")
        shutil.copytree(live, folder / "crashed")
    return folder / "crashed" / "m.db"


def transactions(log: bytes) -> list[int]:
    """Return the offsets of the frames that end a transaction."""
    return [start for start in range(32, len(log), STEP) if any(log[start + 4 : start + 8])]


async def read_back(path: Path) -> list[str]:
    async with aforesaid.connect(path, embedder="none", settings={"background": False}) as memory:
        return [message.text for message in await memory.user("ann").history()]


@pytest.mark.defect("D4")
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.8])
async def test_a_log_with_damage_in_its_middle_is_refused_with_what_to_do_and_can_be_repaired(
    tmp_path: Path, share: float
) -> None:
    path = await crashed(tmp_path)
    log = path.with_name("m.db-wal")
    data = bytearray(log.read_bytes())
    data[32 + int((len(data) - 32) * share) + 2_000] ^= 1
    log.write_bytes(data)
    with pytest.raises(StoreDamaged, match="aforesaid verify --repair"):
        await read_back(path)
    assert log.read_bytes() == bytes(data), "nothing was changed"
    assert (await repair(path)).needed
    assert len(await read_back(path)) >= 9


@pytest.mark.defect("D4")
async def test_every_flipped_byte_before_the_last_transaction_is_seen(tmp_path: Path) -> None:
    path = await crashed(tmp_path)
    log = path.with_name("m.db-wal")
    whole = log.read_bytes()
    refuse_damaged_log(path)
    last = transactions(whole)[-2] + STEP
    chance = Random(7)
    # Without its salts, the end of the last transaction but one looks like a part of the last that was not written.
    heads = [start + byte for start in transactions(whole)[:-2] for byte in (8, 15, 16, 23)]
    for place in [*range(8, 32, 3), *heads[::3], *(chance.randrange(32, last) for _ in range(30))]:
        data = bytearray(whole)
        data[place] ^= 1 << chance.randrange(8)
        log.write_bytes(data)
        with pytest.raises(StoreDamaged):
            refuse_damaged_log(path)


async def test_a_log_that_was_torn_in_its_last_transaction_opens_with_all_that_comes_before(tmp_path: Path) -> None:
    path = await crashed(tmp_path)
    log = path.with_name("m.db-wal")
    whole, chance = log.read_bytes(), Random(7)
    last = transactions(whole)[-2] + STEP
    for _ in range(50):
        data = bytearray(whole)
        # The disk wrote some sectors of the last transaction, in any order, and not the others.
        for sector in range(-(-last // 512), len(data) // 512 + 1):
            if chance.random() < 0.5:
                data[sector * 512 : sector * 512 + 512] = bytes(len(data[sector * 512 : sector * 512 + 512]))
        log.write_bytes(bytes(data))
        refuse_damaged_log(path)
    for kept in (0, 31, 32, 33, last - 1, last, last + 1, len(whole) - 1):
        log.write_bytes(whole[:kept])
        refuse_damaged_log(path)
    assert (await read_back(path))[:9] == [f"Number {number}." for number in range(9)]


def test_a_torn_header_of_a_new_log_before_the_frames_of_an_older_one_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with closing(apsw.Connection(str(path))) as database:
        database.pragma("journal_mode", "wal")
        database.pragma("wal_autocheckpoint", 0)
        database.execute("CREATE TABLE kept (a)")
        for number in range(10):
            database.execute("INSERT INTO kept VALUES (?)", (number,))
        database.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        database.execute("INSERT INTO kept VALUES (99)")
        log = path.with_name("m.db-wal")
        data = log.read_bytes()
    log.write_bytes(data)
    refuse_damaged_log(path)
    for torn in (bytes(32), data[:20] + bytes(12), bytes(16) + data[16:32]):
        # The first frame of the new log was not written either.
        log.write_bytes(torn + bytes(STEP) + data[32 + STEP :])
        refuse_damaged_log(path)


async def test_a_log_that_another_process_is_writing_is_not_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    async with aforesaid.connect(path, embedder="none", settings={"background": False}) as memory:
        for number in range(50):
            await memory.user("ann").add("user", f"Number {number}.")
            refuse_damaged_log(path)


@pytest.mark.defect("W5")
async def test_the_log_of_a_database_that_cannot_be_read_stays(tmp_path: Path) -> None:
    path = await crashed(tmp_path)
    log = path.with_name("m.db-wal")
    before = log.read_bytes()
    path.write_bytes(bytes(100) + path.read_bytes()[100:])
    with pytest.raises(StoreError):
        await read_back(path)
    assert log.read_bytes() == before
