"""A base for stores of your own: all data is in memory, and each change set is one line that a subclass writes.

See docs/how-to/add-a-store.md.
"""

from __future__ import annotations

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

from aforesaid.domain.change import Change
from aforesaid.domain.checks import ComponentStatus, moment, now
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Component
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import Purged
from aforesaid.errors import InvalidInput, StoreClosed, StoreDamaged
from aforesaid.store.contract import FILE_RULES, Progress, rule_for
from aforesaid.store.ephemeral import EphemeralStore
from aforesaid.store.ephemeral.changes import Changes, carry_out
from aforesaid.store.ephemeral.state import State
from aforesaid.store.journalled.journal import change_record
from aforesaid.store.journalled.layout import DamagedRecord, read_line, sealed
from aforesaid.store.journalled.restoring import UnknownRecord, check_readable, finish, replay, still
from aforesaid.store.journalled.tables import TABLES
from aforesaid.store.rules.purging import erase, purge
from aforesaid.store.rules.writes import Rule

T = TypeVar("T")

_ROWS: Final = 1_000
"""Maximum rows per line when everything is written anew."""


class RecordedStore(EphemeralStore, ABC):
    """The store contract in memory, written down by a subclass. One process at a time may use what is written.

    A subclass implements `append` and `rewrite`, and passes to `__init__` the lines that were written before. A line is
    JSON in UTF-8 with a checksum, and has no line end; what is in it may change with the version, but lines of an older
    version can be read. Both methods are called in one thread of the store, one call at a time, and may block. They
    raise StoreError; an OSError is translated to one.
    """

    kind = "recorded"
    """The name of this kind of store, as health shows it."""

    def __init_subclass__(cls) -> None:
        """Refuse coroutines, which nobody would wait for."""
        for name in ("append", "rewrite"):
            if inspect.iscoroutinefunction(getattr(cls, name)):
                raise InvalidInput(
                    f"{cls.__name__}.{name} must not be a coroutine; it is called in a thread and may block"
                )

    def __init__(self, lines: Iterable[bytes] = ()) -> None:
        """Read what was written before. Raises StoreDamaged if a line is not as it was written."""
        super().__init__()
        self._last_error: str | None = None
        state = State()
        with self._translated("read"):
            for number, line in enumerate(lines, 1):
                try:
                    replay(state, read_line(line))
                except (DamagedRecord, UnknownRecord, KeyError, TypeError, AttributeError) as error:
                    raise StoreDamaged(f"line {number} of the {self.kind} store cannot be read: {error}") from error
        self._state = finish(state)
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"aforesaid-{self.kind}")

    @abstractmethod
    def append(self, line: bytes) -> None:
        """Write a line after the others. When this returns, it survives a power cut.

        When this raises, the line must not be among those that are read later: its change set is not stored.
        """

    @abstractmethod
    def rewrite(self, lines: Iterable[bytes]) -> None:
        """Replace all lines, at once: whoever reads later finds either the old or the new ones.

        This is called when somebody's data was erased. When it returns, nothing of the old lines is left.
        """

    async def apply(self, changes: Sequence[Change], progress: Progress | None = None) -> Receipt:
        """Store all changes, or none and raise."""
        return await self._in_turn(lambda: self._apply(changes, progress))

    async def purge(self, scope: Scope, actor: str = "aforesaid") -> Purged:
        """Erase a user for good, by writing everything else anew."""
        return await self._in_turn(lambda: self._erase(purge(scope, actor)))

    async def erase(self, scope: Scope, seqs: Sequence[int], actor: str = "aforesaid") -> Purged:
        """Erase messages for good, by writing everything else anew."""
        return await self._in_turn(lambda: self._erase(erase(scope, actor, seqs)))

    async def health(self) -> Component:
        """Say how the store is doing."""
        issues = tuple(issue for issue in (self._last_error, "closed" if self._closed else None) if issue)
        status: ComponentStatus = "failing" if issues else "active"
        return Component("store", status, self._last_update, issues, (("backend", self.kind),))

    async def backup(self, target: Path, progress: Progress | None = None) -> None:  # noqa: ARG002 - the contract's
        """Refuse: only the subclass knows how to copy what it wrote."""
        raise InvalidInput(f"a {self.kind} store cannot be backed up; export it instead")

    async def close(self) -> None:
        """Finish what was handed in. A subclass then lets go of what it writes to."""
        self._closed = True
        await asyncio.to_thread(self._writer.shutdown)
        self._state = self._reader.state = State()

    async def _in_turn(self, work: Callable[[], T]) -> T:
        """Do something in the thread that writes. Cancelling the caller does not stop it."""
        if self._closed:
            raise StoreClosed(f"this {self.kind} store has been closed")
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._writer, work))

    def _apply(self, changes: Sequence[Change], progress: Progress | None) -> Receipt:
        changed = self._state.layered()
        results = carry_out(changed, changes, progress)
        change = change_record(changed)
        if change is not None:
            check_readable(change[0])
            with self._translated("written"):
                self.append(sealed(change[0]))
            self._take_over(changed)
        return Receipt(durable=True, results=results)

    def _erase(self, rule: Rule[Purged]) -> Purged:
        changed = self._state.layered()
        done = Changes(changed).run(rule)
        with self._translated("written"):
            self.rewrite(_lines(still(changed)))
        self._take_over(changed)
        return done

    def _take_over(self, changed: State) -> None:
        with self._lock:
            self._state.take_over(changed)
            self._last_update = moment(now())

    @contextmanager
    def _translated(self, done: str) -> Iterator[None]:
        """Translate errors of the operating system, and keep the last error for health."""
        try:
            yield
        except OSError as error:
            rule = rule_for(error, FILE_RULES)
            self._last_error = f"the {self.kind} store cannot be {done}: {error.strerror or error}; {rule.advice}"
            raise rule.becomes(self._last_error) from error
        except Exception as error:
            self._last_error = str(error)
            raise
        self._last_error = None


def _lines(state: State) -> Iterator[bytes]:
    """Write everything in a state as lines."""
    for table in TABLES:
        rows = iter(getattr(state, table.state).items())
        while page := list(islice(rows, _ROWS)):
            yield sealed({"put": {table.name: [table.pack(key, value) for key, value in page]}})
