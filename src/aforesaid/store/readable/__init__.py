"""Stores in files that people can read: `json:` and `files:`.

An SQLite file beside them does the work. The readable files are written from it in pauses, at closing, and at once
after an erasure; they are read back when somebody edited them, copied them alone, or put those of another time in their
place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from aforesaid.background import to_the_end
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Component, Verification
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import Purged, UserRow
from aforesaid.errors import InvalidInput, StoreDamaged
from aforesaid.store import contract
from aforesaid.store.contract import Progress
from aforesaid.store.dumping import Restore
from aforesaid.store.operations import Change, Question
from aforesaid.store.people import Marks
from aforesaid.store.readable.disk import Disk, make_folders, replace_file
from aforesaid.store.readable.files import MARK, SEALS, Files
from aforesaid.store.readable.layouts import AccountFolders, JsonFile, Layout
from aforesaid.store.readable.restoring import database_files, journals_of, label, load
from aforesaid.store.searches import ChangeToken
from aforesaid.store.sqlite import Options, SqliteStore
from aforesaid.store.sqlite.connection import translated
from aforesaid.store.sqlite.engine import Engine, acquire, release
from aforesaid.store.unfinished import unfinished

__all__ = ["AccountFolders", "JsonFile", "Layout", "ReadableStore", "restore"]

T = TypeVar("T")


class ReadableStore(SqliteStore):
    """The store contract over readable files and a database beside them. One process at a time can have it open."""

    def __init__(self, engine: Engine, files: Files) -> None:
        super().__init__(engine)
        self._files = files
        self._folders: set[Path] = set()
        """Folders of accounts that are known to be there."""

    @classmethod
    async def open_files(cls, layout: Layout, disk: Disk | None = None, *, first: int = 0) -> Self:
        """Open the files, or make them. Where there are no messages yet, they are numbered from after `first`."""
        opening: asyncio.Future[Self] = asyncio.ensure_future(cls._open_files(layout, disk, first))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_give_back)
            raise

    @classmethod
    async def _open_files(cls, layout: Layout, disk: Disk | None, first: int) -> Self:
        files = await asyncio.to_thread(Files, layout, disk)
        engine: Engine | None = None
        try:
            found = await asyncio.to_thread(files.examine)
            if found is not None:
                await files.rebuild(found)
            engine = await asyncio.to_thread(acquire, layout.database, Options())
            await asyncio.to_thread(files.begin, first)
            return cls(engine, files)
        except BaseException:
            await asyncio.to_thread(_let_go, engine, files)
            raise

    @property
    def path(self) -> Path:
        return self._files.layout.path

    async def apply(self, changes: Sequence[Change], progress: Progress | None = None) -> Receipt:
        try:
            receipt = await super().apply(changes, progress)
            for folder in self._files.layout.folders_of(contract.owners(changes) | _restored(changes)) - self._folders:
                if not folder.exists():
                    self._files.is_new_account = True
                    with suppress(OSError):  # the files are written later, and then it is said why they cannot be
                        make_folders(self._files.disk, folder)
                self._folders.add(folder)
        finally:
            self._files.changed()
        return receipt

    async def purge(self, scope: Scope, actor: str = "aforesaid") -> Purged:
        return await self._erasing(super().purge(scope, actor))

    async def erase(self, scope: Scope, seqs: Sequence[int], actor: str = "aforesaid") -> Purged:
        return await self._erasing(super().erase(scope, seqs, actor))

    async def _erasing(self, erasure: Coroutine[Any, Any, Purged]) -> Purged:
        try:
            self._engine  # noqa: B018 - raises when the store is closed
            await asyncio.to_thread(self._files.mark_erasing)
            done = await erasure
        finally:
            erasure.close()
            self._files.changed()
        self._folders.clear()
        await to_the_end(partial(self._files.write, erased=True))
        return done

    async def read(self, question: Question[T]) -> T:
        if isinstance(question, ChangeToken):
            return cast("T", "")  # no other process can change this store
        found = await super().read(question)
        if isinstance(question, Marks):
            return cast("T", {name: value for name, value in found.items() if name not in (MARK, SEALS)})  # type: ignore[attr-defined]
        return found

    async def health(self) -> Component:
        found, files = await super().health(), self._files
        failing = () if files.last_error is None else (files.last_error,)
        facts = dict(found.facts) | {"backend": files.layout.kind, "location": str(self.path)}
        return replace(
            found,
            status="failing" if failing else found.status,
            issues=(*found.issues, *failing, *files.issues, *files.losses()),
            facts=tuple(facts.items()),
        )

    async def verify(self, progress: Progress | None = None) -> Verification:
        """Check everything in the database, and read all readable files again."""
        database = await super().verify(progress)
        files = await asyncio.to_thread(contract.run, "files", self._files.check)
        losses = contract.run("losses", self._files.losses)
        return Verification((*database.checks, files, losses))

    async def backup(self, target: Path, progress: Progress | None = None) -> None:
        """Write what there is now to a new place, in readable files alone."""
        self._engine  # noqa: B018 - raises when the store is closed
        await asyncio.to_thread(self._copy, target)
        if progress is not None:
            progress("records", 1, 1)

    def _copy(self, target: Path) -> None:
        target = target.expanduser().absolute()
        if target.exists():
            raise InvalidInput(f"{target} exists already; choose another name, nothing was overwritten")
        files = self._files
        with translated(target, "copying to"):
            make_folders(files.disk, target.parent)
            with unfinished(target, folder=files.layout.kind == "files") as arriving:
                files.write_copy(arriving)
                files.disk.replace(arriving, target)
            files.disk.sync_folder(target.parent)

    def _release(self) -> None:
        _let_go(self._shared, self._files)


def _let_go(engine: Engine | None, files: Files) -> None:
    try:
        files.close()
    finally:
        try:
            if engine is not None:
                release(engine)
        finally:
            files.let_go()


def _restored(changes: Sequence[Change]) -> frozenset[contract.Owner]:
    rows = [change.row for change in changes if isinstance(change, Restore)]
    return frozenset((row.space, row.user) for row in rows if isinstance(row, Message | UserRow))


def _give_back(opening: asyncio.Future[Any]) -> None:
    """Close a store that was opened for somebody who did not wait for it."""
    if not opening.cancelled() and opening.exception() is None:
        opening.get_loop().run_in_executor(None, opening.result()._release)  # noqa: SLF001


def restore(backup: Layout, target: Layout, *, replace: bool, disk: Disk | None = None) -> Path | None:
    """Replace a store with a backup. Return where the old store is set aside, or None where there was none.

    A database is made of the backup, and takes the place of the old one at one moment. Then the files are written.
    """
    if not backup.path.expanduser().exists():
        raise InvalidInput(f"there is no backup at {backup.path}; nothing was changed")
    with translated(backup.path, "reading"):
        found = load(backup)
    if found is None:
        raise InvalidInput(f"{backup.path} is not a backup of a store")
    for error in (*(each.error for each in found.damaged), *(f"{path} may be damaged" for path in found.doubtful)):
        raise StoreDamaged(f"{error}; nothing was changed")
    if not replace and (target.path.expanduser().exists() or journals_of(target.beside) or target.database.exists()):
        raise InvalidInput(f"{target.path} exists already; with --replace it is set aside under another name")
    files = Files(target, disk)
    stamp, lists = label("before-restore"), target.lists()
    old = [*journals_of(target.beside).values(), *database_files(target), *target.files(), *lists]
    asides = [target.aside(path, stamp) for path in old]
    try:
        with translated(target.path, "replacing"), ThreadPoolExecutor(1) as thread:  # the caller may run an event loop
            try:
                for path, aside in zip(old, asides, strict=True):
                    make_folders(files.disk, aside.parent)
                    replace_file(files.disk, aside, [path.read_bytes()])
                thread.submit(asyncio.run, files.rebuild(found)).result()
            except BaseException:
                for aside in asides:
                    with suppress(OSError):  # leftovers of the attempt; the store itself is as it was
                        aside.unlink(missing_ok=True)
                raise
        for path in lists:
            path.unlink()
        files.begin()
    finally:
        try:
            files.close()
        finally:
            files.let_go()
    return target.aside(target.main, stamp) if old else None
