"""Moves a memory to another store, and repairs a damaged one."""

from __future__ import annotations

import asyncio
import glob
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from uuid import uuid4

from aforesaid.background import to_the_end
from aforesaid.domain.message import Message
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
    quoted,
)
from aforesaid.portability.exporting import AttachmentCopy, attachments_named_by
from aforesaid.store import Progress, Store, hides_damage, locate, open_store, restore_store, salvage_store
from aforesaid.store.dumping import NAMES, RowImporter
from aforesaid.store.locations import NO_FILES
from aforesaid.store.messages import AttachmentHashes
from aforesaid.store.people import Totals
from aforesaid.store.sqlite.connection import configured_key


@dataclass(frozen=True, slots=True)
class Migrated:
    """The result of a migration."""

    rows: dict[str, int]
    """Number of rows by kind."""
    new: dict[str, int]
    """Number of rows that were not in the target before, by kind."""
    attachments: int
    """Number of attachments that were copied."""
    lost: tuple[str, ...]
    """Hashes that messages name, but whose bytes the source does not have, or has damaged."""
    compared: bool
    """Whether the hashes of all messages, in order, were compared afterwards: only if the target was empty."""


class _Tally:
    """Counts the rows of a dump, and computes a checksum over the message hashes of each space in order."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self.hashes: set[str] = set()
        """Hashes of the attachments that messages name."""
        self._sums: dict[str, blake2b] = {}

    def count(self, page: Sequence[Row]) -> None:
        self.hashes.update(attachments_named_by(page))
        for row in page:
            self.rows[NAMES[type(row)]] += 1
            if isinstance(row, Message):
                self._sums.setdefault(row.space, blake2b(digest_size=16)).update(row.hash)

    @property
    def sums(self) -> dict[str, str]:
        return {space: running.hexdigest() for space, running in self._sums.items()}


async def migrate(
    source: Store,
    target: Store,
    attachments: AttachmentCopy,
    *,
    vectors: bool = True,
    progress: Progress | None = None,
) -> Migrated:
    """Copy everything from one store to another, with the bytes of attachments. Raises if the copy differs."""
    await asyncio.to_thread(attachments.check, await source.read(AttachmentHashes()))
    was_empty = (await target.read(Totals())).messages == 0
    total = (await source.read(Totals())).messages
    refused: list[str] = []

    def refuse(row: Row, _: str, error: AforesaidError) -> None:
        refused.append(f"{NAMES[type(row)]}: {error}")

    intake, sent = RowImporter(target, refuse), _Tally()
    async for page in source.dump(vectors=vectors):
        sent.count(page)
        await intake.take(page)
        if progress is not None:
            progress("moving", sent.rows["message"], max(total, sent.rows["message"]))
    await intake.finish()
    if refused:
        raise StoreDamaged(f"{len(refused)} rows could not be copied; the first: {refused[0]}")
    if intake.seen != sent.rows:
        raise StoreDamaged(f"{dict(sent.rows)} rows were sent, but {dict(intake.seen)} arrived")
    if was_empty:
        arrived = _Tally()
        async for page in target.dump():
            arrived.count(page)
            if progress is not None:
                progress("comparing", arrived.rows["message"], sent.rows["message"])
        for kind, count in sent.rows.items():
            if kind != "vector" and arrived.rows[kind] != count:
                raise StoreDamaged(f"{count:,} rows of the kind {kind} were sent, but {arrived.rows[kind]:,} arrived")
        if arrived.sums != sent.sums:
            wrong = [space for space, total in sent.sums.items() if arrived.sums.get(space) != total]
            raise StoreDamaged(f"the messages of the space {quoted(wrong[0])} did not arrive as they were sent")
    copied, lost = await attachments.copy(sent.hashes)
    return Migrated(dict(sent.rows), dict(+intake.fresh), copied, lost, was_empty)


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
    kind, path, _ = locate(location)
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
        name = glob.escape(aside.name)
        await to_the_end(_remove, [*aside.parent.glob(f"{name}*"), *aside.parent.glob(f".{name}*")])
    return Repair(needed=True, recovered=recovered, lost=tuple(lost), set_aside=kept[0], verification=report)


def _copy_as_it_is(place: Path) -> list[Path]:
    """Copy the files of a store to new names; return the new paths, the main file first."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    beside = [path for suffix in ("-wal", ".journal-*") for path in place.parent.glob(glob.escape(place.name) + suffix)]
    copies: list[Path] = []
    beside += place.parent.glob(f".{glob.escape(place.name)}.db*")  # the database of a store in one readable file
    for path in (place, *sorted(beside)):
        hidden = "." if path.name.startswith(f".{place.name}") else ""
        rest = path.name.removeprefix(f"{hidden}{place.name}")
        target = place.with_name(f"{hidden}{place.name}.damaged-{stamp}{rest}")
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
