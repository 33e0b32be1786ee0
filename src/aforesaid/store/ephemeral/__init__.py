"""A store in the memory of the process: for tests, for trying things out, and as the last resort of a broken disk.

It behaves exactly like the others except that nothing survives, and its receipts say so. It is written as plainly as
possible, because the other stores are compared with it.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar, cast

from aforesaid.domain.change import Change
from aforesaid.domain.checks import moment, now
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Check, Component, Verification
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import Purged, Row
from aforesaid.errors import InvalidInput, StoreClosed
from aforesaid.store.contract import Progress
from aforesaid.store.ephemeral.answers import ANSWERS
from aforesaid.store.ephemeral.changes import Changes, carry_out
from aforesaid.store.ephemeral.dumping import rows
from aforesaid.store.ephemeral.reader import Reader
from aforesaid.store.ephemeral.state import State
from aforesaid.store.questions import Question
from aforesaid.store.rules.purging import erase, purge
from aforesaid.store.rules.writes import Rule

__all__ = ["EphemeralStore"]

T = TypeVar("T")

_PAGE: Final = 1_000
"""Rows of a page of a dump."""


class EphemeralStore:
    """The store contract in memory."""

    def __init__(self, first: int = 0) -> None:
        """Start with nothing. Messages are numbered from after `first`."""
        self._state = State()
        self._lock = threading.RLock()
        """Held by whoever reads or changes the state, never while waiting for anything."""
        self._closed = False
        if first:
            self._state.given["log"] = first
        self._last_update: datetime | None = None
        self._reader = Reader(self._state)

    @property
    def _open(self) -> State:
        if self._closed:
            raise StoreClosed("this store in memory has been closed")
        return self._state

    async def apply(self, changes: Sequence[Change], progress: Progress | None = None) -> Receipt:
        """Keep all changes, or none and raise."""
        with self._lock:
            changed = self._open.layered()
            results = carry_out(changed, changes, progress)
            self._state.take_over(changed)
            self._last_update = moment(now())
            return Receipt(durable=False, results=results)

    async def read(self, question: Question[T]) -> T:
        """Answer a question."""
        with self._lock:
            self._reader.state = self._open
            return cast("T", ANSWERS[type(question)](self._reader, question))

    async def health(self) -> Component:
        """Say how the store is doing."""
        note = "nothing kept here survives the process"
        return Component("store", "active", self._last_update, (), (("backend", "memory"), ("note", note)))

    async def dump(self, *, vectors: bool = False) -> AsyncIterator[Sequence[Row]]:
        """Give out everything as it is at one moment, page by page."""
        with self._lock:
            found = rows(self._open.copy(), vectors=vectors)
        while page := list(islice(found, _PAGE)):
            yield page

    async def purge(self, scope: Scope, actor: str = "aforesaid") -> Purged:
        """Erase a user for good."""
        return self._erase(purge(scope, actor))

    async def erase(self, scope: Scope, seqs: Sequence[int], actor: str = "aforesaid") -> Purged:
        """Erase messages for good."""
        return self._erase(erase(scope, actor, seqs))

    def _erase(self, rule: Rule[Purged]) -> Purged:
        with self._lock:
            changed = self._open.layered()
            done = Changes(changed).run(rule)
            self._state.take_over(changed)
            return done

    async def verify(self, progress: Progress | None = None) -> Verification:
        """Check what is in memory."""
        with self._lock:
            changed = [entry.message.id for entry in self._open.log.values() if not entry.intact]
            if progress is not None:
                progress("hashes", len(self._open.log), len(self._open.log))
            return Verification((Check("hashes", not changed, "; ".join(changed) or "ok", 0.0),))

    async def backup(self, target: Path, progress: Progress | None = None) -> None:  # noqa: ARG002 - the contract's
        """Refuse: there is no file to copy."""
        raise InvalidInput("a store in memory cannot be backed up; open a file instead of ':memory:'")

    async def close(self) -> None:
        """Forget everything."""
        self._closed = True
        self._state = self._reader.state = State()
