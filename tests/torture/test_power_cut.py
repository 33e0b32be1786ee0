"""The power goes at any moment: whatever the disk holds then is whole, and nothing acknowledged is gone."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

import apsw
import pytest

from aforesaid.errors import AforesaidError
from aforesaid.store.readable import ReadableStore
from aforesaid.store.sqlite import Options, writer
from aforesaid.store.sqlite.connection import connect, migrate
from torture.disk import Create, Operation, RecordingDisk, RecordingFiles, Sync, Write
from torture.files_victim import layout_at
from torture.power import Replay, write_image
from torture.support import Figures, Size, opened
from torture.witness import Event, Witness, damage, losses
from torture.workload import bustle

IMAGES_PER_WORKLOAD = 1_000
IMAGES_PER_READABLE_WORKLOAD = 100
STORE_OPENS_EVERY = 50
"""Most images are opened with the store's connection alone; every so many with the whole store, which verifies them."""
NAME = "memory.db"
COUNTED = (
    "images",
    "operations",
    "acknowledged messages checked",
    "images verified by the store",
    "damaged images",
    "losses",
)

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was written to a disk, and when in between something was acknowledged."""

    record: Sequence[Operation]
    heard: Sequence[tuple[int, Event]]


@pytest.fixture(autouse=True)
def _checkpoint_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Small enough that even a short workload copies its log back, and starts it anew, dozens of times.
    monkeypatch.setattr(writer, "CHECKPOINT_PAGES", 40)
    monkeypatch.setattr(writer, "OVERDUE_PAGES", 80)


def test_what_was_acknowledged_survives_a_power_cut(arena: Path, tmp_path: Path, size: Size) -> None:
    figures = Figures("power cut", *COUNTED)
    images = size.of(small=60, full=20_000)
    for seed in range(-(-images // IMAGES_PER_WORKLOAD)):
        recorded = record_workload(arena, seed)
        wanted = min(IMAGES_PER_WORKLOAD, images - seed * IMAGES_PER_WORKLOAD)
        for number, findings in enumerate(found_after_power_cuts(recorded, seed, wanted, arena, figures)):
            if findings:
                kept = shutil.copytree(arena / "image-as-found", tmp_path / f"seed-{seed}-image-{number}")
                pytest.fail(f"after a power cut ({kept}): {findings}")
    figures.show()
    assert figures["images"] == images


@pytest.mark.req("A5")
@pytest.mark.parametrize("kind", ["json", "files"])
def test_readable_files_are_whole_after_a_power_cut_and_nothing_acknowledged_is_lost(
    kind: str, arena: Path, tmp_path: Path, size: Size
) -> None:
    figures = Figures(f"power cut under {kind}", *COUNTED)
    images = size.of(small=12, full=600)
    for seed in range(-(-images // IMAGES_PER_READABLE_WORKLOAD)):
        recorded = record_readable_workload(arena, kind, seed)
        wanted = min(IMAGES_PER_READABLE_WORKLOAD, images - seed * IMAGES_PER_READABLE_WORKLOAD)
        for number, findings in enumerate(found_after_power_cuts(recorded, seed, wanted, arena, figures, kind)):
            if findings:
                kept = shutil.copytree(arena / "image-as-found", tmp_path / f"seed-{seed}-image-{number}")
                pytest.fail(f"after a power cut ({kept}): {findings}")
    figures.show()
    assert figures["images"] == images


@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL"])
def test_the_images_show_what_an_unsafe_disk_setting_loses(
    synchronous: str, arena: Path, size: Size, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this finds nothing, the test above proves nothing."""

    def connect_unsafely(path: Path, options: Options, *, create: bool) -> apsw.Connection:
        connection = connect(path, options, create=create)
        connection.pragma("synchronous", synchronous)
        return connection

    monkeypatch.setattr(writer, "connect", connect_unsafely)
    figures = Figures(f"power cut with synchronous={synchronous}", *COUNTED)
    recorded = record_workload(arena, seed=synchronous)
    found = found_after_power_cuts(recorded, 0, size.of(small=30, full=1_000), arena, figures)
    hurt = [findings for findings in found if findings]
    figures.add("damaged images", len(hurt))
    figures.add("losses", sum(map(losses, hurt)))
    figures.show()
    assert figures["losses"] > 0


def test_the_images_show_what_a_disk_loses_that_lies_about_syncing_the_database(arena: Path, size: Size) -> None:
    """The log is synced, but what is copied from it into the database is not: checkpoints must become dangerous."""
    figures = Figures("power cut with a lying disk", *COUNTED)
    recorded = record_workload(arena, seed="lies")
    database = next(made.file for made in recorded.record if isinstance(made, Create) and made.name == NAME)
    nothing = Write(database, 0, b"")
    lied_to = [nothing if operation == Sync(database) else operation for operation in recorded.record]
    found = found_after_power_cuts(Recorded(lied_to, recorded.heard), 0, size.of(small=30, full=1_000), arena, figures)
    hurt = [findings for findings in found if findings]
    figures.add("damaged images", len(hurt))
    figures.add("losses", sum(map(losses, hurt)))
    figures.show()
    assert figures["damaged images"] > 0


def record_workload(arena: Path, seed: object) -> Recorded:
    """Let many write and archive on a disk that writes everything down, closing and opening the file in between."""
    disk = RecordingDisk(f"recording-{next(_numbers)}")
    heard: list[tuple[int, Event]] = []

    def note(event: Event) -> None:
        heard.append((len(disk.record), event))

    async def work() -> None:
        disk.tell_callers()
        for stint in range(3):
            async with opened(folder / NAME, Options(vfs=disk.vfs)) as store:
                await bustle(store, note, seed=seed, tag=f"s{stint}", writers=6, messages=10, archives=12)

    folder = arena / "recorded"
    folder.mkdir()
    with disk.registered():
        asyncio.run(work())
    shutil.rmtree(folder)
    return Recorded(disk.record, heard)


def record_readable_workload(arena: Path, kind: str, seed: object) -> Recorded:
    """The same in readable files, which are written all the time."""
    folder = arena / "recorded"
    folder.mkdir()
    disk = RecordingDisk(f"recording-{next(_numbers)}", folder)
    heard: list[tuple[int, Event]] = []

    def note(event: Event) -> None:
        heard.append((len(disk.record), event))

    async def work() -> None:
        disk.tell_callers()
        for stint in range(2):
            store = await ReadableStore.open_files(layout_at(f"{kind}:{folder / NAME}"), RecordingFiles(disk))
            busy = asyncio.create_task(
                bustle(store, note, seed=seed, tag=f"s{stint}", writers=4, messages=6, archives=6)
            )
            while not busy.done():
                await asyncio.to_thread(store._files.write)
            await busy
            await store.close()

    with disk.registered():
        apsw.set_default_vfs(disk.vfs)
        try:
            asyncio.run(work())
        finally:
            apsw.set_default_vfs("unix")
    shutil.rmtree(folder)
    return Recorded(disk.record, heard)


def found_after_power_cuts(
    recorded: Recorded, seed: int, images: int, arena: Path, figures: Figures, kind: str = "sqlite"
) -> Iterator[list[str]]:
    """Cut the power so many times and yield what is wrong with each image."""
    figures.add("operations", len(recorded.record))
    chance = Random(seed)
    replay, witness, heard = Replay(recorded.record), Witness(), 0
    moments = [moment for moment, _ in recorded.heard]
    for number, crash in enumerate(sorted(crash_points(recorded, images, chance))):
        replay.advance(crash)
        known = bisect_right(moments, crash)
        for _, event in recorded.heard[heard:known]:
            witness.hear(event)
        heard = known
        image = replay.image(chance)
        as_found = arena / "image-as-found"
        shutil.rmtree(as_found, ignore_errors=True)
        write_image(as_found, image)
        opened = arena / "image"
        write_image(opened, image)
        findings = look_into(opened / NAME, witness) if kind == "sqlite" else half_written(opened)
        if (kind != "sqlite" or number % STORE_OPENS_EVERY == 0) and not findings:
            findings = asyncio.run(open_and_verify(opened / NAME, witness, kind))
            figures.add("images verified by the store")
        figures.add("images")
        figures.add("acknowledged messages checked", len(witness.said))
        shutil.rmtree(opened)
        yield findings


def crash_points(recorded: Recorded, images: int, chance: Random) -> Iterator[int]:
    """Pick moments: half of them anywhere, half of them right after an acknowledgement, when most can be lost."""
    for _ in range(images):
        if chance.random() < 0.5:
            yield chance.randint(0, len(recorded.record))
        else:
            moment, _ = chance.choice(recorded.heard)
            yield min(moment + chance.randrange(4), len(recorded.record))


def look_into(path: Path, witness: Witness) -> list[str]:
    """Open an image as the store does, and check everything."""
    try:
        with closing(connect(path, Options(), create=True)) as connection:
            migrate(connection, path)
            return [*damage(connection), *witness.findings(connection)]
    except (apsw.Error, AforesaidError) as error:
        return [f"it does not open: {error!r}"]


def half_written(folder: Path) -> list[str]:
    """Return the readable files that are not whole."""
    found = []
    for path in [*folder.rglob("*.json"), folder / NAME]:
        try:
            json.loads(path.read_bytes() if path.is_file() else b"0")
        except ValueError as error:
            found.append(f"{path.name}: {error}")
    return found


async def open_and_verify(path: Path, witness: Witness, kind: str) -> list[str]:
    """Open an image with the whole store and let it verify itself."""
    async with opened(path, kind=kind) as store:
        verification = await store.verify()
        return [
            *(f"{check.name}: {check.detail}" for check in verification.checks if not check.ok),
            *await store._engine.read(witness.findings),
        ]
