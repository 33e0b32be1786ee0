"""Repair a store: copy intact data to a new store, rename the damaged one, and list what was lost."""

from __future__ import annotations

import glob
import os
import shutil
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from aforesaid.background import to_the_end
from aforesaid.domain.report import Verification
from aforesaid.domain.transfer import Row
from aforesaid.errors import (
    AforesaidError,
    InvalidInput,
    StoreBusy,
    StoreClosed,
    StoreDamaged,
    StoreError,
    StoreRefused,
    StoreTooNew,
)
from aforesaid.portability.row_importer import NAMES, RowImporter
from aforesaid.store import Progress, Store, hides_damage, locate, open_store, restore_store, salvage_store
from aforesaid.store.locations import NO_FILES
from aforesaid.store.sqlite.encryption import configured_key


@dataclass(frozen=True, slots=True)
class Repair:
    """The result of a repair."""

    needed: bool
    """False if nothing was damaged, and nothing was changed."""
    recovered: dict[str, int]
    """Number of recovered rows by kind."""
    lost: tuple[str, ...]
    """What could not be recovered, one line per problem."""
    set_aside: Path | None
    """The new path of the damaged store; None if nothing was changed."""
    verification: Verification
    """The verification of the store after the repair."""


async def repair(location: str | os.PathLike[str] | None, progress: Progress | None = None) -> Repair:
    """Verify a store that no other process uses, and repair it if it is damaged. Nothing is overwritten."""
    kind, path = locate(location)
    if path is None:
        raise InvalidInput(NO_FILES)
    place = path.expanduser().absolute()
    # The main files may be lost while their journals still exist.
    if not place.parent.is_dir() or not any(place.parent.glob(f"{glob.escape(place.name)}*")):
        raise InvalidInput(f"there is no store at {path}")
    # Opening the store would remove data that its write-ahead log still has.
    broken_log = await to_the_end(hides_damage, location)
    kept = await to_the_end(_copy_as_it_is, place)
    try:
        found = None if broken_log else await _check(location, progress)
        if found is not None and found.ok:
            await to_the_end(_remove, kept)
            return Repair(needed=False, recovered={}, lost=(), set_aside=None, verification=found)
        salvaged = await to_the_end(salvage_store, location)
    except (StoreRefused, StoreTooNew):
        await to_the_end(_remove, kept)
        raise
    lost = [*salvaged.lost]
    folder = place.with_name(f"{place.name}.repair-{uuid4().hex[:8]}")
    folder.mkdir(mode=0o700)
    try:
        made = await open_store(f"{kind}:{folder / 'new'}")
        try:
            recovered = await _fill(made, list(salvaged.rows), lost, progress)
            report = await made.verify(progress)
            if not report.ok:
                wrong = "; ".join(f"{check.name}: {check.detail}" for check in report.checks if not check.ok)
                raise StoreDamaged(f"the data recovered from {path} is inconsistent ({wrong}); nothing was changed")
            await made.backup(folder / "copy")
        finally:
            await made.close()
        aside = await to_the_end(restore_store, folder / "copy", f"{kind}:{place}", replace=True)
    finally:
        await to_the_end(shutil.rmtree, folder)
    if aside is not None:
        # The copies were made before the store was opened, so they equal it byte for byte.
        await to_the_end(_remove, list(aside.parent.glob(f"{glob.escape(aside.name)}*")))
    return Repair(needed=True, recovered=recovered, lost=tuple(lost), set_aside=kept[0], verification=report)


def _copy_as_it_is(place: Path) -> list[Path]:
    """Copy the files of a store to new names; return the new paths, the main file first."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    beside = [path for suffix in ("-wal", ".journal-*") for path in place.parent.glob(glob.escape(place.name) + suffix)]
    copies: list[Path] = []
    for path in (place, *sorted(beside)):
        target = place.with_name(f"{place.name}.damaged-{stamp}{path.name.removeprefix(place.name)}")
        if path.is_dir():
            shutil.copytree(path, target)
        elif path.exists():
            shutil.copy2(path, target)
        else:
            continue
        copies.append(target)
    return copies


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


async def _check(location: str | os.PathLike[str] | None, progress: Progress | None) -> Verification | None:
    """Return the verification of a store; None if it cannot be opened."""
    try:
        store = await open_store(location)
    except (StoreBusy, StoreClosed, StoreTooNew):
        raise
    except StoreRefused:
        if configured_key() is not None:
            raise  # most likely another key: what is encrypted looks like damage
        return None
    except StoreError:
        return None
    try:
        return await store.verify(progress)
    except StoreError:
        return None
    finally:
        await store.close()


async def _fill(store: Store, rows: list[Row], lost: list[str], progress: Progress | None) -> dict[str, int]:
    refused: Counter[str] = Counter()

    def damaged(row: Row, where: str, error: AforesaidError) -> None:
        del where
        refused[type(row).__name__] += 1
        lost.append(f"a row of the kind {NAMES.get(type(row), type(row).__name__)}: {error}")

    intake = RowImporter(store, damaged)
    for start in range(0, len(rows), 1_000):
        await intake.take(rows[start : start + 1_000])
        if progress is not None:
            progress("recovering", min(start + 1_000, len(rows)), len(rows))
    await intake.finish()
    return dict(intake.fresh)
