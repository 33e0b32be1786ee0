"""The store for many machines: a PostgreSQL database with pgvector."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Self, TypeVar, cast

from aforesaid.domain.checks import moment
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Component, Stats, Verification
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import Purged
from aforesaid.domain.transfer import Row as MovingRow
from aforesaid.errors import InvalidInput, StoreClosed
from aforesaid.store import dumping
from aforesaid.store.contract import MANY, Progress
from aforesaid.store.erasing import erase, purge
from aforesaid.store.operations import Change, Question
from aforesaid.store.people import Settings, Totals
from aforesaid.store.postgres import search, verify
from aforesaid.store.postgres.connection import Options, shown, translated
from aforesaid.store.postgres.database import Database, migrate
from aforesaid.store.postgres.queries import GatheredSettings, Queries, answered
from aforesaid.store.postgres.search import stored
from aforesaid.store.postgres.transaction import WriteTransaction
from aforesaid.store.postgres.writer import Writer, prepared
from aforesaid.store.retention import Discard
from aforesaid.store.searches import ChangeToken
from aforesaid.store.sql import Answer

__all__ = ["Options", "PostgresStore"]

T = TypeVar("T")


_SIZES_OF_WORKERS: Final = """
SELECT sum(result::bigint)::bigint FROM run_command_on_workers('SELECT pg_database_size(current_database())')
 WHERE success
"""
_NEXT_TRANSACTION: Final = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
_NEXT_OF_WORKERS: Final = f"""
SELECT string_agg(result, ' ' ORDER BY nodename, nodeport) FROM run_command_on_workers('{_NEXT_TRANSACTION}')
"""


async def _totals(queries: Queries, question: Totals) -> Stats:
    """Return totals, with the sizes of Citus workers."""
    found: Stats = await answered(queries, question.answer())
    if not queries.distributed:
        return found
    return replace(found, bytes=found.bytes + (await queries.value(_SIZES_OF_WORKERS) or 0))


async def _change_token(queries: Queries, _: ChangeToken) -> str:
    """Return a text that is another one once a transaction has written something."""
    token = str(await queries.value(_NEXT_TRANSACTION))
    # What is written to a worker alone leaves no trace on the coordinator.
    return f"{token} {await queries.value(_NEXT_OF_WORKERS)}" if queries.distributed else token


class PostgresStore:
    """The store contract over a PostgreSQL database. See `aforesaid.store.contract` for what it promises."""

    def __init__(self, dsn: str, options: Options) -> None:
        self.dsn = dsn
        self._database = Database(dsn, options)
        self._writer = Writer(self._database, options.transactions)
        self._own: search.Answers = {**search.answers(), Totals: _totals, ChangeToken: _change_token}
        """Questions that are answered in another way than by `answer`."""
        self._settings = GatheredSettings(lambda work: self._read(None, work))
        self._purging = asyncio.Lock()
        self._closed = False

    @classmethod
    async def open(cls, dsn: str, options: Options | None = None) -> Self:
        """Reach the database, and create or migrate the tables as needed."""
        store = cls(dsn, options or Options())
        try:
            with translated(shown(dsn), "opening"):
                async with store._database.pool.connection(vectors=False) as connection:
                    await migrate(connection, shown(dsn))
                    # It was opened before the type of vectors was there.
                    await connection.close()
        except BaseException:
            await store._database.close()
            raise
        return store

    async def apply(self, changes: Sequence[Change], progress: Progress | None = None) -> Receipt:
        self._check_open()
        many = len(changes) >= MANY
        steps = await asyncio.to_thread(prepared, changes, progress) if many else prepared(changes, progress)
        for place, step in enumerate(steps):
            if isinstance(step, Discard):
                space = await self._read(None, lambda queries, step=step: answered(queries, step.space_to_start_in()))  # type: ignore[misc]
                steps[place] = replace(step, space=space)
        return await self._writer.submit(steps, progress)

    async def read(self, question: Question[T]) -> T:
        """Answer a question, on a connection that sees its space alone if it names one."""
        if isinstance(question, Settings):
            return cast("T", await self._settings.read(question))
        own = self._own.get(type(question))
        if own is not None:
            return cast("T", await self._read(question.within_space, lambda queries: own(queries, question)))
        return await self._read(question.within_space, lambda queries: answered(queries, question.answer()))

    async def health(self) -> Component:
        writer, breaker = self._writer, self._database.breaker
        issues = tuple(
            issue for issue in (breaker.error or writer.last_error, "closed" if self._closed else None) if issue
        )
        return Component(
            name="store",
            status="failing" if issues else "active",
            last_update=None if writer.last_commit is None else moment(writer.last_commit),
            issues=issues,
            facts=(
                ("backend", "postgresql"),
                ("location", shown(self.dsn)),
                ("breaker", breaker.state),
                ("connections", str(self._database.pool.open)),
                ("waiting writes", str(writer.waiting)),
                *([("distributed by", "Citus")] if self._database.pool.distributed else []),
                *([("prepared statements", "none, behind a pooler")] if self._database.pool.pooled else []),
            ),
        )

    async def verify(self, progress: Progress | None = None) -> Verification:
        messages = (await self.read(Totals())).messages
        found = await self._read(None, lambda queries: verify.checks(queries, messages, progress))
        return Verification(tuple(found))

    async def backup(self, target: Path, progress: Progress | None = None) -> None:  # noqa: ARG002 - as every store
        """Refuse: a database that others use too is backed up with its own tools."""
        raise InvalidInput(f"{target} was not written: back {shown(self.dsn)} up with pg_dump, or export it")

    async def dump(self, *, vectors: bool = False) -> AsyncIterator[Sequence[MovingRow]]:
        self._check_open()
        with translated(shown(self.dsn), "reading"):
            async with self._database.snapshot() as queries:
                for section in dumping.sections(stored if vectors else None):
                    after: dumping.Key | None = section.start
                    while after is not None:
                        page, after = await answered(queries, dumping.page(section, after))
                        if page:
                            yield page

    async def purge(self, scope: Scope, actor: str = "aforesaid") -> Purged:
        """Erase a user from every table. What lies in freed pages and old logs is up to the database's own services."""
        self._check_open()
        async with self._purging:
            return await self._erase(scope, lambda within: purge(within, scope, actor))

    async def erase(self, scope: Scope, seqs: Sequence[int], actor: str = "aforesaid") -> Purged:
        """Erase messages from every table. What lies in freed pages and old logs is up to the database's services."""
        self._check_open()
        async with self._purging:
            return await self._erase(scope, lambda within: erase(within, scope, actor, seqs))

    async def _erase(self, scope: Scope, rule: Callable[[WriteTransaction], Answer[Purged]]) -> Purged:
        async def alone(transaction: WriteTransaction) -> Purged:
            await transaction.begin()
            return await answered(transaction.queries, rule(transaction))

        return await self._database.write([scope.space], "eraser", alone)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self._writer.close()
            await self._database.close()

    async def _read(self, space: str | None, work: Callable[[Queries], Awaitable[T]]) -> T:
        self._check_open()
        return await self._database.read(space, work)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"{shown(self.dsn)} has been closed")
