"""The bytes of images, sounds and files, in a folder beside the store, each named by its SHA-256.

The same bytes are stored once, however many messages name them. They are written before the message that names them,
and removed when the last message that names them is erased: by `erase`, by `purge`, or by age.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from aforesaid.domain.details import SHA256, Part
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Check, Verification
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import Purged
from aforesaid.errors import InvalidInput, NotFound, StoreDamaged, StoreRefused, quoted
from aforesaid.store.contract import Progress, Store, WrappedStore, run
from aforesaid.store.messages import AttachmentHashes
from aforesaid.store.operations import Change
from aforesaid.store.retention import Discard
from aforesaid.store.unfinished import sync_folder, write_new

T = TypeVar("T")

SUFFIX: Final = ".attachments"
"""Added to the name of a store's file or folder."""
_ABANDONED_SECONDS: Final = 3_600
"""A file that no message names is removed after this time: whoever wrote it died before the message was stored."""


def folder_of(store: Path) -> Path:
    store = store.expanduser().absolute()
    return store.with_name(store.name + SUFFIX)


class Attachments:
    """The attachments of one store: in a folder, in memory, or nowhere."""

    def __init__(self, folder: Path | None, *, refusal: str = "") -> None:
        """Without a folder they are in memory. With a `refusal`, none can be stored, for this reason."""
        self.folder = folder
        self._refusal = refusal
        self._memory: dict[str, bytes] = {}
        self._arriving: Counter[str] = Counter()
        """Hashes of parts whose messages are being stored."""
        self._unused: dict[str, float] = {}
        """New bytes that no stored message names yet, with the time at which they were written."""

    async def store_with(
        self, parts: Sequence[Part], store_message: Callable[[tuple[Part, ...]], Awaitable[Receipt]]
    ) -> Receipt:
        """Store the bytes of parts, then the message, by a call with the parts without bytes; return its receipt.

        If that fails, or the message is a duplicate that does not name them, new bytes are removed again, unless
        another message has come to name them in the meantime.
        """
        found = {part.hash: part.data for part in parts if part.data is not None and part.hash is not None}
        if found:
            self.refuse()
        self._arriving.update(found.keys())
        try:
            for name, data in found.items():
                if await asyncio.to_thread(self._put, name, data):
                    self._unused[name] = self._came_at(name)
            receipt = await store_message(tuple(replace(part, data=None) for part in parts))
            named = [part.hash for part in receipt.message.parts if part.hash is not None]
            for name in named if receipt.duplicate else found:
                self._unused.pop(name, None)
            return receipt
        finally:
            self._arriving.subtract(found.keys())
            self._remove_unused(name for name in found if not self._arriving[name])

    def refuse(self) -> None:
        """Raise StoreRefused if no attachments can be stored."""
        if self._refusal:
            raise StoreRefused(self._refusal)

    def has(self, name: str) -> bool:
        """Tell whether the bytes with a hash are stored."""
        path = self._path(name)
        return name in self._memory if path is None else path.is_file()

    async def put(self, name: str, data: bytes) -> bool:
        """Store bytes by their hash; return whether they are new."""
        self.refuse()
        return await asyncio.to_thread(self._put, name, data)

    async def read(self, name: str) -> bytes:
        """Return bytes by their hash. Raises NotFound, or StoreDamaged if they are not what was stored."""
        if not SHA256.fullmatch(name):
            raise InvalidInput(f"a hash must be 64 hexadecimal digits, not {quoted(name)}", "hash")
        data = await asyncio.to_thread(self._get, name)
        if data is None:
            raise NotFound(f"there is no attachment {name}")
        if sha256(data).hexdigest() != name:
            raise StoreDamaged(f"the attachment {name} is not what was stored; restore the file from a backup")
        return data

    def names(self) -> Iterator[str]:
        """Yield the hashes of all stored attachments."""
        yield from list(self._memory)
        if self.folder is not None and self.folder.is_dir():
            yield from (path.name for path in self.folder.glob("??/*") if SHA256.fullmatch(path.name))

    def remove_unnamed(self, named: frozenset[str], erased: frozenset[str], began: float) -> None:
        """Remove what messages do not name: what was just erased, and what was abandoned.

        Files that came after a moment (`time.time`) stay: another process may be about to store their message.
        """
        gone = [name for name in self.names() if name not in named and not self._arriving[name]]
        self._remove(
            name for name in gone if self._came_at(name) < (began if name in erased else began - _ABANDONED_SECONDS)
        )
        for path in self.folder.glob("??/*") if self.folder is not None else ():
            # Written by a process that was killed before it could give it its name.
            with suppress(OSError):
                if not SHA256.fullmatch(path.name) and path.stat().st_mtime < began - _ABANDONED_SECONDS:
                    path.unlink()

    def check(self) -> Iterator[str]:
        """Yield the attachments that are not what was stored."""
        for name in self.names():
            data = self._get(name)
            if data is not None and sha256(data).hexdigest() != name:
                yield f"the attachment {name} is not what was stored"

    def _path(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder / name[:2] / name

    def _put(self, name: str, data: bytes) -> bool:
        """Store bytes durably; return whether they are new."""
        path = self._path(name)
        if path is None:
            new = name not in self._memory
            self._memory[name] = data
            return new
        if path.exists() and path.stat().st_size == len(data):
            now = time.time_ns()  # the system's own time of a change is some milliseconds coarse
            os.utime(path, ns=(now, now))
            return False
        _make_private(path.parent)
        write_new(path, data)
        sync_folder(path.parent.parent)
        return True

    def _get(self, name: str) -> bytes | None:
        path = self._path(name)
        if path is None:
            return self._memory.get(name)
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return None

    def _came_at(self, name: str) -> float:
        path = self._path(name)
        try:
            return 0.0 if path is None else path.stat().st_mtime
        except FileNotFoundError:
            return 0.0

    def _remove_unused(self, names: Iterable[str]) -> None:
        """Remove bytes that no message came to name, unless another process has stored the same bytes since."""
        unused = {name: self._unused.pop(name) for name in names if name in self._unused}
        self._remove(name for name, came_at in unused.items() if self._came_at(name) == came_at)

    def _remove(self, names: Iterable[str]) -> None:
        for name in list(names):
            path = self._path(name)
            if path is None:
                self._memory.pop(name, None)
                continue
            path.unlink(missing_ok=True)
            sync_folder(path.parent)
            with suppress(OSError):  # other attachments are in it
                path.parent.rmdir()


def copy_attachments(source: Path, target: Path) -> None:
    """Copy the attachments in a folder that another folder does not have."""
    for path in source.glob("??/*"):
        copied = target / path.parent.name / path.name
        if SHA256.fullmatch(path.name) and not copied.exists():
            _make_private(copied.parent)
            write_new(copied, path.read_bytes())
            sync_folder(target)
            shutil.copystat(path, copied)


def _make_private(folder: Path) -> None:
    """Make the folder of some attachments, in that of all, which only their owner can enter.

    With `parents=True`, Python gives its mode to the last folder alone.
    """
    for each in (folder.parent, folder):
        each.mkdir(parents=True, exist_ok=True, mode=0o700)


class _AttachingStore(WrappedStore):
    """Keeps the attachments in step with the messages of a store."""

    def __init__(self, store: Store, attachments: Attachments) -> None:
        super().__init__(store)
        self._attachments = attachments

    def apply(self, changes: Sequence[Change], progress: Progress | None = None) -> Coroutine[Any, Any, Receipt]:
        # No coroutine of its own: storing a message is the hottest path.
        stored = self._inner.apply(changes, progress)
        return self._erasing(stored) if changes and type(changes[0]) is Discard else stored

    async def purge(self, scope: Scope, actor: str = "aforesaid") -> Purged:
        return await self._erasing(self._inner.purge(scope, actor))

    async def erase(self, scope: Scope, seqs: Sequence[int], actor: str = "aforesaid") -> Purged:
        return await self._erasing(self._inner.erase(scope, seqs, actor))

    async def verify(self, progress: Progress | None = None) -> Verification:
        found = await self._inner.verify(progress)
        if not any(self._attachments.names()):
            return found
        check: Check = await asyncio.to_thread(run, "attachments", self._attachments.check)
        return Verification((*found.checks, check))

    async def backup(self, target: Path, progress: Progress | None = None) -> None:
        # Before, so that a backup that got its name has its attachments, and after, for those that came meanwhile.
        folder = folder_of(target)
        is_new = not folder.exists()
        try:
            await self._copy_attachments(folder)
            await self._inner.backup(target, progress)
        except BaseException:
            if is_new:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
            raise
        await self._copy_attachments(folder)

    async def _copy_attachments(self, target: Path) -> None:
        if self._attachments.folder is not None and self._attachments.folder.is_dir():
            await asyncio.to_thread(copy_attachments, self._attachments.folder, target)

    async def _erasing(self, work: Coroutine[Any, Any, T]) -> T:
        """Do work that erases messages, and remove the attachments that none names any more."""
        if not any(self._attachments.names()):
            return await work
        began = time.time()
        try:
            before = await self._inner.read(AttachmentHashes())
        except BaseException:
            work.close()
            raise
        done = await work
        after = await self._inner.read(AttachmentHashes())
        await asyncio.to_thread(self._attachments.remove_unnamed, after, before - after, began)
        return done


def attaching(store: Store, attachments: Attachments) -> Store:
    return cast("Store", _AttachingStore(store, attachments))
