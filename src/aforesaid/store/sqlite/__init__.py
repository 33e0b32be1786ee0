"""The embedded store: one SQLite file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self, TypeVar, cast
from uuid import uuid4

import apsw

from aforesaid.background import to_the_end
from aforesaid.domain.checks import moment
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Component, Verification
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import Purged
from aforesaid.domain.transfer import Row as MovingRow
from aforesaid.errors import StoreClosed
from aforesaid.store import contract, dumping
from aforesaid.store.contract import MANY, Progress
from aforesaid.store.erasing import erase, purge
from aforesaid.store.operations import Change, Question
from aforesaid.store.people import Totals
from aforesaid.store.searches import ChangeToken, MatchText
from aforesaid.store.sqlite import backup, search, verify
from aforesaid.store.sqlite.connection import MEMORY, Options, answered, connect, connect_reader, translated
from aforesaid.store.sqlite.engine import Engine, acquire, change_token, release
from aforesaid.store.sqlite.writer import prepare

__all__ = ["MemoryStore", "Options", "SqliteStore"]

T = TypeVar("T")


class SqliteStore:
    """The store contract over one SQLite file. See `aforesaid.store.contract` for what it promises."""

    def __init__(self, engine: Engine) -> None:
        self._shared = engine
        self._closed = False
        self._releasing: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, path: Path, options: Options | None = None) -> Self:
        """Open the file, creating or migrating it as needed."""
        opening = asyncio.ensure_future(asyncio.to_thread(acquire, path, options or Options()))
        try:
            return cls(await asyncio.shield(opening))
        except asyncio.CancelledError:
            opening.add_done_callback(_give_back)
            raise

    @property
    def path(self) -> Path:
        return self._shared.path

    @property
    def _engine(self) -> Engine:
        if self._closed:
            raise StoreClosed(f"{self.path} has been closed")
        return self._shared

    async def apply(self, changes: Sequence[Change], progress: Progress | None = None) -> Receipt:
        many = len(changes) >= MANY
        return await self._engine.write(
            await asyncio.to_thread(prepare, changes, progress) if many else prepare(changes, progress)
        )

    async def read(self, question: Question[T]) -> T:
        """Answer a question on one of the readers."""
        engine, kind = self._engine, type(question)
        if isinstance(question, ChangeToken):
            return cast("T", change_token(self.path))
        if (cached := search.CACHED.get(kind)) is not None:
            caches = engine.caches
            # Columns that are in memory make this a short read, which others need not wait for.
            short = isinstance(question, MatchText) and caches.lately(question.scope, question.within)
            return await engine.read(lambda connection: cached(connection, caches, question), short=short)
        if (own := search.OWN.get(kind)) is not None:
            return await engine.read(lambda connection: own(connection, question), short=question.short)
        return await engine.read(lambda connection: answered(connection, question.answer()), short=question.short)

    async def health(self) -> Component:
        writer = self._shared.writer
        unindexed = None
        if writer.indexing_error is not None:
            unindexed = f"searches miss messages of a batch, which could not be indexed: {writer.indexing_error}"
        issues = tuple(issue for issue in (writer.last_error, unindexed, "closed" if self._closed else None) if issue)
        return Component(
            name="store",
            status="failing" if issues else "active",
            last_update=None if writer.last_commit is None else moment(writer.last_commit),
            issues=issues,
            facts=(
                ("backend", f"sqlite {apsw.sqlite_lib_version()}"),
                ("location", str(self.path)),
                ("waiting writes", str(self._shared.waiting)),
                ("write-ahead log pages", str(writer.wal_pages)),
                *(() if writer.rebuilt_at is None else (("index rebuilt", moment(writer.rebuilt_at).isoformat()),)),
            ),
        )

    async def _snapshot(self) -> apsw.Connection:
        """Return a connection that reads everything as it is now, while others write."""
        return await asyncio.to_thread(connect_reader, self._engine.path, self._engine.options)

    async def verify(self, progress: Progress | None = None) -> Verification:
        """Check everything. Other calls are not blocked; writes wait while the keyword index is compared."""
        stats = await self.read(Totals())
        index = await self._engine.alone(
            lambda connection: contract.run("index", lambda: verify.check_index(connection))
        )
        with translated(self.path, "verifying"):
            rest = await asyncio.to_thread(verify.check, await self._snapshot(), stats.messages, progress)
        return Verification((*rest, index))

    async def backup(self, target: Path, progress: Progress | None = None) -> None:
        with translated(self.path, "copying"):
            await asyncio.to_thread(backup.copy, await self._snapshot(), target, progress)

    async def dump(self, *, vectors: bool = False) -> AsyncIterator[Sequence[MovingRow]]:
        with translated(self.path, "reading"):
            reader = await self._snapshot()
        try:
            reader.execute("BEGIN")
            for section in dumping.sections(bytes if vectors else None):
                after: dumping.Key | None = section.start
                while after is not None:
                    page, after = await to_the_end(self._page, reader, section, after)
                    if page:
                        yield page
        finally:
            await asyncio.to_thread(reader.close)

    def _page(
        self, reader: apsw.Connection, section: dumping.Section, after: dumping.Key
    ) -> tuple[list[MovingRow], dumping.Key | None]:
        with translated(self.path, "reading"):
            return answered(reader, dumping.page(section, after))

    async def purge(self, scope: Scope, actor: str = "aforesaid") -> Purged:
        """Erase a user for good, from every byte of the file."""
        return await self._engine.erase(lambda within: purge(within, scope, actor))

    async def erase(self, scope: Scope, seqs: Sequence[int], actor: str = "aforesaid") -> Purged:
        """Erase messages, from the tables and from every page of the file."""
        return await self._engine.erase(lambda within: erase(within, scope, actor, seqs))

    async def close(self) -> None:
        """Finish what was handed in, then close the file. When a call is cancelled, the next one waits for the rest."""
        if self._releasing is None:
            self._closed = True
            self._shared.hand_over()
            self._releasing = asyncio.ensure_future(asyncio.to_thread(self._release))
        await asyncio.shield(self._releasing)

    def _release(self) -> None:
        release(self._shared)


class MemoryStore(SqliteStore):
    """A store in the memory of the process: for tests, for trying things out, and as the last resort of failover.

    Nothing is written to a disk, nothing survives, and receipts say so. A writer and readers would wait for one another
    in such a database, so one thread does both.
    """

    def __init__(self, first: int = 0) -> None:
        """Start with nothing. Messages are numbered from after `first`."""
        super().__init__(acquire(Path(f"/:memory:{uuid4().hex}"), Options(vfs=MEMORY)))
        if first:
            self._shared.writer.alone(
                lambda connection: connection.execute("INSERT INTO sqlite_sequence VALUES ('log', ?)", (first,))
            )

    async def read(self, question: Question[T]) -> T:
        if isinstance(question, ChangeToken):
            return cast("T", "")  # no other process can change this store
        return await super().read(question)

    async def health(self) -> Component:
        found = await super().health()
        note = "nothing kept here survives the process"
        return replace(found, facts=(("backend", "memory"), ("note", note)))

    async def _snapshot(self) -> apsw.Connection:
        def copied(connection: apsw.Connection) -> apsw.Connection:
            # In the thread that writes, so that nothing changes during the copy.
            made = connect(Path(":memory:"), self._shared.options, create=True)
            with made.backup("main", connection, "main") as pages:
                pages.step(-1)
            return made

        return await self._engine.alone(copied)


def _give_back(opening: asyncio.Future[Engine]) -> None:
    """Let go of a file that was opened for somebody who did not wait for it."""
    if not opening.cancelled() and opening.exception() is None:
        opening.get_loop().run_in_executor(None, release, opening.result())
