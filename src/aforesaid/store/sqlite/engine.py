"""One owner per file and process: a thread that writes, and a few that read.

The writer takes whatever change sets are waiting and stores all of them in one transaction (`aforesaid.store.groups`).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar, cast

import apsw

from aforesaid.domain.receipt import Receipt
from aforesaid.domain.transfer import Purged
from aforesaid.errors import StoreClosed, StoreDamaged, StoreError
from aforesaid.store.groups import GroupCommitQueue, Job, deliver
from aforesaid.store.rules.driving import Rule
from aforesaid.store.sqlite.caches import Caches
from aforesaid.store.sqlite.change_sets import ChangeSet
from aforesaid.store.sqlite.connection import Options, identity, index_is_damaged
from aforesaid.store.sqlite.indexing import IndexIncomplete, Place, answer_without_waiting
from aforesaid.store.sqlite.readers import Readers
from aforesaid.store.sqlite.writer import Writer

T = TypeVar("T")

_PAUSE_SECONDS: Final = 0.05
"""Seconds without other work before each step of indexing a batch, in which other processes can write too."""
_MOST_SECONDS_WITHOUT_INDEXING: Final = 1.0
"""Seconds after which a step is made although there is other work."""
_Work: TypeAlias = ChangeSet | Callable[[apsw.Connection], Any]
"""A change set, or something that needs the writing connection for itself."""


class Engine:
    """The one writer of a file in this process, and its readers."""

    def __init__(self, path: Path, options: Options) -> None:
        """Open the file, creating or migrating it as needed."""
        self.path = path
        self.options = options
        self.users = 1
        self.is_orphan = False
        """True in a forked child, where the threads of the engine do not exist."""
        self.writer = Writer(path, options)
        self.identity = identity(path)
        self.caches = Caches()
        self._groups: GroupCommitQueue[_Work] = GroupCommitQueue(path)
        self._readers = Readers(path, options)
        self._indexed_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="aforesaid-writer", daemon=True)
        self._thread.start()

    @property
    def holds_its_file(self) -> bool:
        """Whether the path still leads to the file that was opened."""
        return identity(self.path) == self.identity

    @property
    def waiting(self) -> int:
        """How many change sets wait for the writer."""
        return self._groups.waiting

    def write(self, change_set: ChangeSet) -> asyncio.Future[Receipt]:
        """Store a change set. The result arrives when it is on the disk."""
        return self._submit(change_set)

    async def alone(self, work: Callable[[apsw.Connection], T]) -> T:
        """Run something on the writing connection while nothing is being written."""
        result: T = await self._submit(work)
        return result

    async def erase(self, rule: Rule[Purged]) -> Purged:
        """Erase by a rule, also from what is kept in memory."""

        def work(_: apsw.Connection) -> Purged:
            try:
                return self.writer.erase(rule, self._readers.gate.closed)
            finally:
                self.caches.clear()

        return await self.alone(work)

    async def read(self, work: Callable[[apsw.Connection], T], *, short: bool = False) -> T:
        """Run a piece of reading on one of the readers.

        A short one runs together with others that are asked for in the same turn of the event loop; a long one in a
        transaction of its own.
        """
        self._check_open()
        rebuilt = False
        while True:
            try:
                return await self._read(work, short=short)
            except StoreDamaged as error:
                if rebuilt or not index_is_damaged(error):
                    raise
                await self.alone(partial(self._rebuild_index, error))
                rebuilt = True

    async def _read(self, work: Callable[[apsw.Connection], T], *, short: bool) -> T:
        """Read, after messages that are looked through have been indexed; without them where that is not possible."""
        search = object()
        try:
            while True:
                try:
                    found: T = await self._readers.read(work, short=short)
                except IndexIncomplete as error:
                    self.writer.waiting_searches.add(search)
                    try:
                        await self._complete_index(error.place)
                    except (StoreDamaged, StoreClosed):
                        raise
                    except StoreError as cause:
                        # Nothing is written for the caller: a full disk can still be read.
                        self.writer.indexing_error = str(cause)
                        work = partial(answer_without_waiting, work)
                else:
                    return found
        finally:
            self.writer.waiting_searches.discard(search)

    async def _complete_index(self, place: Place) -> None:
        """Index all messages of a place that are not indexed yet. Between two steps, others can write."""
        while await self.alone(lambda _: self.writer.index_step(place)):
            pass

    def _rebuild_index(self, error: StoreDamaged, _: apsw.Connection) -> None:
        self.writer.rebuild_index(error)

    def hand_over(self) -> None:
        """Give the threads what this loop's tasks have handed in so far, without waiting for the loop's next turn."""
        self._groups.hand_over(asyncio.get_running_loop())
        self._readers.hand_over()

    def stop(self) -> None:
        """Finish what was handed in and close every connection. Blocks."""
        self._groups.close()
        self._thread.join()
        self._readers.stop()
        self.writer.close()

    def _check_open(self) -> None:
        if self.is_orphan:
            raise StoreClosed(f"{self.path} was opened before this process was forked; open it again here")
        if self._groups.closing:
            raise StoreClosed(f"{self.path} has been closed")

    def _submit(self, work: _Work) -> asyncio.Future[Any]:
        self._check_open()
        return self._groups.submit(work)

    def _run(self) -> None:
        while jobs := self._next_jobs():
            # Whatever happens, the callers hear of it, and the thread goes on: without it they would wait forever.
            try:
                outcomes = self._carry_out(jobs)
            except Exception as error:
                self.writer.note(error)
                outcomes = [error] * len(jobs)
            deliver(jobs, outcomes)
            self._checkpoint()

    def _next_jobs(self) -> list[Job[_Work]]:
        """Wait for work, and index batches until it comes. Returns nothing only when the engine is closed."""
        while self.writer.index_is_incomplete and (self._index_is_due() or not self._groups.wait(_PAUSE_SECONDS)):
            self.writer.index_next()
            self._indexed_at = time.monotonic()
            self._checkpoint()
        return self._groups.take()

    def _index_is_due(self) -> bool:
        """Return whether batches have waited too long for a pause, on a server that always has something to write."""
        return not self._groups.closing and time.monotonic() - self._indexed_at > _MOST_SECONDS_WITHOUT_INDEXING

    def _checkpoint(self) -> None:
        try:
            self.writer.checkpoint_when_due(waiting=bool(self.waiting), quiet=self._readers.gate.closed)
        except Exception as error:
            self.writer.note(error)

    def _carry_out(self, jobs: list[Job[_Work]]) -> Sequence[Any]:
        if callable(jobs[0].work):
            return [self.writer.alone(jobs[0].work)]
        change_sets = [cast("ChangeSet", job.work) for job in jobs]
        outcomes: list[Receipt | Exception] = []
        for _, together in groupby(change_sets, attrgetter("is_batch")):
            outcomes += self._commit([*together])
        return outcomes

    def _commit(self, change_sets: Sequence[ChangeSet]) -> list[Receipt | Exception]:
        outcomes = self.writer.commit(change_sets)
        damage = next((each for each in outcomes if isinstance(each, StoreDamaged) and index_is_damaged(each)), None)
        if damage is not None:
            self.writer.rebuild_index(damage)
            outcomes = self.writer.commit(change_sets)
        return outcomes
