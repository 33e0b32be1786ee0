"""One write or one sync fails: the caller hears of it, tries again, and everything is there exactly once."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Literal, TypeVar

import apsw
import pytest

from aforesaid.domain.message import draft
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import SummaryDraft
from aforesaid.errors import StoreError
from aforesaid.store import open_store
from aforesaid.store.messages import AddMessage, Messages
from aforesaid.store.people import Totals
from aforesaid.store.readable import ReadableStore
from aforesaid.store.sqlite import Options, SqliteStore, writer
from aforesaid.store.summaries import Archive, RollBack
from torture.disk import FailingDisk
from torture.support import KINDS, Figures, Size, opened
from torture.witness import Archived, RollBackAsked, RolledBack, Witness
from torture.workload import say, text

Kind = Literal["write", "sync"]
T = TypeVar("T")

WRITERS = 4
MESSAGES = 8
MOST_ATTEMPTS = 20
_CODES = {"write": apsw.SQLITE_IOERR_WRITE, "sync": apsw.SQLITE_IOERR_FSYNC}


@pytest.fixture(autouse=True)
def _checkpoint_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that the database file is written and synced too, in the middle of the workload.
    monkeypatch.setattr(writer, "CHECKPOINT_PAGES", 20)
    monkeypatch.setattr(writer, "OVERDUE_PAGES", 60)


@pytest.mark.parametrize("ids", [True, False], ids=["with ids", "without ids"])
@pytest.mark.parametrize(("kind", "in_a_row"), [("sync", 1), ("sync", 4), ("write", 1), ("write", 4)])
@pytest.mark.parametrize("store", KINDS)
def test_every_failure_is_heard_and_retrying_loses_and_doubles_nothing(
    store: str, kind: Kind, in_a_row: int, arena: Path, size: Size, *, ids: bool
) -> None:
    if store != "sqlite" and ids and not size.full:
        pytest.skip("the database is the same; messages without ids are the harder case")
    scenario = f"EIO ({kind}, {in_a_row} in a row, {'with' if ids else 'without'} ids)"
    scenario += "" if store == "sqlite" else f" under {store}"
    figures = Figures(
        scenario, "rounds", "errors of the disk", "errors heard by callers", "acknowledged messages", "losses"
    )
    often = 1 if store == "sqlite" else 3
    for first in itertools.count(1, often * size.step(small=11 if kind == "sync" else 61)):
        faults = Faults(kind, first, in_a_row)
        one_life(arena / f"{first}.db", store, faults, figures, ids=ids)
        if faults.raised == 0:
            break
        figures.add("rounds")
        figures.add("errors of the disk", faults.raised)
    figures.show()
    assert figures["errors heard by callers"] > 0


class Faults:
    """Lets a disk fail at the n-th write or sync, and perhaps at the next few."""

    def __init__(self, kind: Kind, first: int, in_a_row: int) -> None:
        """Count from one."""
        self._kind = kind
        self._wanted = range(first, first + in_a_row)
        self._count = itertools.count(1)
        self.raised = 0

    def verdict(self, kind: str, _path: Path) -> Exception | None:
        """Say whether the disk should fail now."""
        if kind != self._kind or next(self._count) not in self._wanted:
            return None
        self.raised += 1
        return apsw.exception_for(_CODES[kind])


async def open_on(path: Path, kind: str, disk: FailingDisk) -> SqliteStore:
    """Open a store whose database is on a disk that fails."""
    if kind == "sqlite":
        return await SqliteStore.open(path, Options(vfs=disk.vfs))
    apsw.set_default_vfs(disk.vfs)
    try:
        store = await open_store(f"{kind}:{path}")
    finally:
        apsw.set_default_vfs("unix")
    assert isinstance(store, ReadableStore)
    return store


def one_life(path: Path, kind: str, faults: Faults, figures: Figures, *, ids: bool) -> None:
    """Open a store on a failing disk, write, archive, close, open again; check everything twice."""
    disk, witness = FailingDisk(f"failing-{path.stem}", faults.verdict), Witness()
    caller = Caller(witness, figures)

    async def run() -> None:
        store = await caller.insist(partial(open_on, path, kind, disk))
        try:
            await work(store, caller, ids=ids)
            assert await caller.insist(partial(store._engine.read, witness.findings)) == []
            assert (await caller.insist(partial(store.read, Totals()))).messages == WRITERS * MESSAGES
        finally:
            await close(store)
        for file in path.rglob("*.json"):
            json.loads(file.read_bytes())
        async with opened(path, kind=kind) as reopened:
            assert await reopened._engine.read(witness.findings) == []
            verification = await reopened.verify()
            assert verification.ok, verification
            assert (await reopened.read(Totals())).messages == WRITERS * MESSAGES

    with disk.registered():
        asyncio.run(run())
    figures.add("acknowledged messages", len(witness.said))
    shutil.rmtree(path) if path.is_dir() else path.unlink()


class Caller:
    """Somebody who tries again whenever the store says that it failed."""

    def __init__(self, witness: Witness, figures: Figures) -> None:
        """Note what is acknowledged, and count what is not."""
        self.witness = witness
        self._figures = figures

    async def insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call until it works. Any other error than StoreError is a failure of the test."""
        for _ in range(MOST_ATTEMPTS):
            try:
                return await call()
            except StoreError:
                self._figures.add("errors heard by callers")
        raise AssertionError("the store did not recover")


async def work(store: SqliteStore, caller: Caller, *, ids: bool) -> None:
    """Let a few write at once, then archive, fold and roll back."""
    hear = caller.witness.hear

    async def writer(name: str) -> None:
        chance, scope = Random(name), Scope.of(name)
        for turn in range(MESSAGES):
            id_ = f"id-{name}-{turn}" if ids else None
            message = AddMessage(draft(scope, "user", text(chance, f"{name}.{turn}"), id=id_))
            await caller.insist(partial(say, store, hear, name, [message]))

    async with asyncio.TaskGroup() as tasks:
        for number in range(WRITERS):
            tasks.create_task(writer(f"w{number}"))
    for number in range(WRITERS):
        scope = Scope.of(f"w{number}")
        messages = await caller.insist(partial(store.read, Messages(scope)))
        sources = tuple(message.seq for message in messages[:5])
        change = Archive(SummaryDraft(scope, "In short.", messages=sources))
        summary = (await caller.insist(partial(store.apply, [change]))).summary
        hear(Archived(summary.id, scope.user, sources, ()))
        if number % 2:
            hear(RollBackAsked(summary.id))
            await caller.insist(partial(store.apply, [RollBack(scope, summary.id)]))
            hear(RolledBack(summary.id))


async def close(store: SqliteStore) -> None:
    """Close a store whose disk may fail just then."""
    try:
        await store.close()
    except apsw.IOError:
        # SQLite keeps quiet about a checkpoint that fails while closing; a disk made with apsw cannot.
        return
