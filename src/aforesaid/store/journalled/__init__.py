"""A store in memory that writes everything down: a journal for each change set, files for people.

What is in the files is in memory too, so a read never waits for a disk. A write costs what it changes, however much
there is; the files are written anew in the background, when the journal has grown to a part of their size.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Self, TypeAlias, TypeVar, cast

from aforesaid.domain.change import Change
from aforesaid.domain.checks import moment, now
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Check, Component, Stats, Verification
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import Purged
from aforesaid.errors import StoreClosed
from aforesaid.store.contract import Progress
from aforesaid.store.ephemeral import EphemeralStore
from aforesaid.store.ephemeral.changes import Changes, carry_out
from aforesaid.store.ephemeral.state import State
from aforesaid.store.group_commit import GroupCommitQueue, Job, deliver
from aforesaid.store.journalled import files as checking
from aforesaid.store.journalled import restoring
from aforesaid.store.journalled.disk import Disk
from aforesaid.store.journalled.files import ERASED, Files
from aforesaid.store.journalled.journal import change_record
from aforesaid.store.journalled.layout import Layout, Record, Touched
from aforesaid.store.questions import Question
from aforesaid.store.rules.purging import erase, purge
from aforesaid.store.rules.writes import Rule

T = TypeVar("T")
_ChangeSet: TypeAlias = tuple[Sequence[Change], Progress | None]
_Work: TypeAlias = _ChangeSet | Callable[[], Any]
"""A change set, or something that is to be done while nothing is written."""

_PAUSE: Final = 1.0
"""Seconds without a change after which the files may be rewritten."""


class JournalledStore(EphemeralStore):
    """The store contract over files. One process at a time can have it open."""

    def __init__(self, files: Files, first: int = 0) -> None:
        """Use `JournalledStore.open`."""
        super().__init__()
        self._files = files
        self._state = files.state
        if first and not self._state.log:
            self._state.given["log"] = max(first, self._state.last_number("log"))
        self._process = os.getpid()
        self._groups: GroupCommitQueue[_Work] = GroupCommitQueue(files.layout.path)
        self._thread = threading.Thread(target=self._run, name="aforesaid-journal", daemon=True)
        self._thread.start()

    @classmethod
    async def open(cls, layout: Layout, disk: Disk | None = None, *, first: int = 0) -> Self:
        """Open the files, or make them. Where there are no messages yet, they are numbered from after `first`."""
        opening = asyncio.ensure_future(asyncio.to_thread(Files, layout, disk))
        try:
            return cls(await asyncio.shield(opening), first)
        except asyncio.CancelledError:
            opening.add_done_callback(_give_back)
            raise

    @property
    def path(self) -> Path:
        """What the location names."""
        return self._files.layout.path

    @property
    def _open(self) -> State:
        if self._closed:
            raise StoreClosed(f"{self.path} has been closed")
        return self._state

    async def apply(self, changes: Sequence[Change], progress: Progress | None = None) -> Receipt:
        """Store all changes, or none and raise."""
        receipt: Receipt = await self._submit((tuple(changes), progress))
        return receipt

    async def purge(self, scope: Scope, actor: str = "aforesaid") -> Purged:
        """Erase a user for good: from memory, and from all files by writing them anew."""
        return await self._alone(lambda: self._erase(purge(scope, actor)))

    async def erase(self, scope: Scope, seqs: Sequence[int], actor: str = "aforesaid") -> Purged:
        """Erase messages for good: from memory, and from all files by writing them anew."""
        return await self._alone(lambda: self._erase(erase(scope, actor, seqs)))

    async def read(self, question: Question[T]) -> T:
        """Answer a question from memory."""
        answer = await super().read(question)
        if isinstance(answer, Stats):
            return cast("T", replace(answer, bytes=self._files.written + self._files.journalled))
        return answer

    async def health(self) -> Component:
        """Say how the store is doing."""
        issues = tuple(issue for issue in (self._files.last_error, "closed" if self._closed else None) if issue)
        return Component(
            name="store",
            status="failing" if issues else "active",
            last_update=self._last_update,
            issues=(*issues, *self._files.set_aside, *self._files.losses()),
            facts=(
                ("backend", self._files.layout.kind),
                ("location", str(self.path)),
                ("waiting writes", str(self._groups.waiting)),
                ("bytes in files", str(self._files.written)),
                ("bytes in the journal", str(self._files.journalled)),
            ),
        )

    async def verify(self, progress: Progress | None = None) -> Verification:
        """Read all files again, and compare them with one another and with memory. Writes wait until it is done."""
        checks: tuple[Check, ...] = await self._alone(lambda: checking.verify(self._files, self._state, progress))
        return Verification(checks)

    async def backup(self, target: Path, progress: Progress | None = None) -> None:
        """Write what there is now to a new place, in the same form."""
        await self._alone(lambda: checking.copy(self._files, self._state, target))
        if progress is not None:
            progress("records", 1, 1)

    async def close(self) -> None:
        """Finish what was handed in, write the files, and release the lock.

        When a call is cancelled, the thread goes on closing; the next call waits for it.
        """
        if not self._closed:
            self._closed = True
            self._groups.hand_over(asyncio.get_running_loop())
            self._groups.close()
        await asyncio.to_thread(self._thread.join)
        self._state = self._reader.state = State()

    def _submit(self, work: _Work) -> asyncio.Future[Any]:
        if self._closed:
            raise StoreClosed(f"{self.path} has been closed")
        if os.getpid() != self._process:
            raise StoreClosed(f"{self.path} was opened before this process was forked; open it again here")
        return self._groups.submit(work)

    async def _alone(self, work: Callable[[], T]) -> T:
        result: T = await self._submit(work)
        return result

    def _run(self) -> None:
        while True:
            if not self._groups.wait(_PAUSE):
                self._files.write_when_due(self._state, pause=True)
                # Nothing more can become due before somebody writes.
                self._groups.wait(None if not self._files.busy else _PAUSE)
                continue
            jobs = self._groups.take()
            if not jobs:
                break
            deliver(jobs, self._outcomes(jobs))
            self._files.write_when_due(self._state, pause=False)
        self._files.close(self._state)

    def _outcomes(self, jobs: list[Job[_Work]]) -> Sequence[Any]:
        # Whatever happens, the callers hear of it, and the thread goes on: without it they would wait forever.
        try:
            if callable(jobs[0].work):
                return [jobs[0].work()]
            return self._commit([cast("_ChangeSet", job.work) for job in jobs])
        except Exception as error:
            if not callable(jobs[0].work):
                self._files.note(error)
            return [error] * len(jobs)

    def _erase(self, rule: Rule[Purged]) -> Purged:
        changed = self._state.layered()
        done = Changes(changed).run(rule)
        change = change_record(changed)
        if change is not None:
            self._files.append([{**change[0], ERASED: True}], change[1])
            self._take_over(changed)
        # What was erased is still in the files and in the journals before this one.
        self._files.write_now(self._state, everything=True)
        return done

    def _take_over(self, changed: State) -> None:
        with self._lock:
            self._state.take_over(changed)
            self._last_update = moment(now())

    def _commit(self, change_sets: Sequence[_ChangeSet]) -> list[Receipt | Exception]:
        """Write change sets down together. Nobody sees any of them before all of them are on the disk."""
        together = self._state.layered()
        outcomes: list[Receipt | Exception] = []
        records: list[Record] = []
        touched: set[Touched] = set()
        for changes, progress in change_sets:
            changed = together.layered()
            try:
                results = carry_out(changed, changes, progress)
                change = change_record(changed)
                if change is not None:
                    restoring.check_readable(change[0])
            except Exception as error:
                # The other change sets of the group are stored all the same.
                outcomes.append(error)
                continue
            outcomes.append(Receipt(durable=True, results=results))
            if change is not None:
                records.append(change[0])
                touched |= change[1]
            together.take_over(changed)
        if records:
            self._files.append(records, touched)
            self._take_over(together)
            self._files.last_error = None
        return outcomes


def _give_back(opening: asyncio.Future[Files]) -> None:
    """Let go of files that were opened for somebody who did not wait for them."""
    if not opening.cancelled() and opening.exception() is None:
        opening.get_loop().run_in_executor(None, opening.result().let_go)
