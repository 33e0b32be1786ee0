"""Repairing a store: what is whole goes into a new one, the damaged one is set aside, the rest is named."""

from __future__ import annotations

import glob
import os
import shutil
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from aforesaid.domain.report import Verification
from aforesaid.domain.transfer import Row
from aforesaid.errors import AforesaidError, InvalidInput, StoreBusy, StoreClosed, StoreDamaged, StoreError
from aforesaid.portability.row_importer import NAMES, RowImporter
from aforesaid.store import Progress, Store, hides_damage, locate, open_store, restore_store, salvage_store


@dataclass(frozen=True, slots=True)
class Repair:
    """What came of it."""

    needed: bool
    """False when nothing was wrong, and nothing was changed."""
    recovered: dict[str, int]
    """How many rows of each kind are in the new store."""
    lost: tuple[str, ...]
    """What could not be recovered, one line each."""
    set_aside: Path | None
    """Where the damaged one is now."""
    verification: Verification
    """What is there now, checked."""


async def repair(location: str | os.PathLike[str] | None, progress: Progress | None = None) -> Repair:
    """Check a store that nobody uses, and repair it if something is wrong. Nothing is overwritten."""
    kind, path = locate(location)
    if path is None:
        raise InvalidInput("a store in memory has no files that could be repaired")
    place = path.expanduser().absolute()
    # Files may have been lost but for their journals.
    if not place.parent.is_dir() or not any(place.parent.glob(f"{glob.escape(place.name)}*")):
        raise InvalidInput(f"there is no store at {path}")
    # Opening it would take away what its log still has.
    broken_log = hides_damage(location)
    kept = _copy_as_it_is(place)
    found = None if broken_log else await _check(location, progress)
    if found is not None and found.ok:
        for path in kept:
            _remove(path)
        return Repair(needed=False, recovered={}, lost=(), set_aside=None, verification=found)
    salvaged = salvage_store(location)
    folder = place.with_name(f"{place.name}.repair-{uuid4().hex[:8]}")
    folder.mkdir(mode=0o700)
    try:
        lost = [*salvaged.lost]
        made = await open_store(f"{kind}:{folder / 'new'}")
        try:
            recovered = await _fill(made, list(salvaged.rows), lost, progress)
            report = await made.verify(progress)
            if not report.ok:
                wrong = "; ".join(f"{check.name}: {check.detail}" for check in report.checks if not check.ok)
                raise StoreDamaged(f"what could be read of {path} does not fit together ({wrong}); nothing was changed")
            await made.backup(folder / "copy")
        finally:
            await made.close()
        aside = restore_store(folder / "copy", f"{kind}:{place}", replace=True)
    finally:
        shutil.rmtree(folder)
    if aside is not None:
        # The copies that were made before anything was opened are what it was, byte for byte.
        for path in aside.parent.glob(f"{glob.escape(aside.name)}*"):
            _remove(path)
    return Repair(needed=True, recovered=recovered, lost=tuple(lost), set_aside=kept[0], verification=report)


def _copy_as_it_is(place: Path) -> list[Path]:
    """Copy the files of a store to other names, and return those, the main one first."""
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


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


async def _check(location: str | os.PathLike[str] | None, progress: Progress | None) -> Verification | None:
    """Return what a store says of itself; None when it cannot even be opened."""
    try:
        store = await open_store(location)
    except (StoreBusy, StoreClosed):
        raise
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
