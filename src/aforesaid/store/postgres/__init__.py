"""The store for many machines: a PostgreSQL database with pgvector."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from aforesaid.domain.agenda import Ahead, Backlog, Entry, Subject
from aforesaid.domain.change import Change
from aforesaid.domain.checks import microseconds, moment
from aforesaid.domain.hit import Hit
from aforesaid.domain.literals import Timely, Within
from aforesaid.domain.memory import Derived, Facts, MemoryRecord, MemoryVersion, Tombstone, Unextracted
from aforesaid.domain.message import Message, Position
from aforesaid.domain.note import NoteMatch, UnembeddedNote
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Activity, AuditEntry, Component, Ledger, Setting, Stats, User, Verification
from aforesaid.domain.retention import Discardable
from aforesaid.domain.scope import Scope
from aforesaid.domain.session import Session
from aforesaid.domain.summary import Summary
from aforesaid.domain.transfer import Purged
from aforesaid.domain.transfer import Row as MovingRow
from aforesaid.domain.vector import Similar, Unembedded
from aforesaid.errors import InvalidInput, StoreClosed
from aforesaid.store.contract import Progress
from aforesaid.store.postgres import (
    agenda,
    dumping,
    known,
    memories,
    note_search,
    purging,
    reads,
    retention,
    vectors,
    verify,
    views,
)
from aforesaid.store.postgres.connection import Options, shown, translated
from aforesaid.store.postgres.database import Database
from aforesaid.store.postgres.migrate import migrate
from aforesaid.store.postgres.queries import Queries
from aforesaid.store.postgres.search import Search
from aforesaid.store.postgres.transaction import prepared
from aforesaid.store.postgres.writer import Writer
from aforesaid.store.ranking import TextMatches

if TYPE_CHECKING:
    from aforesaid.store.contract import Vector

__all__ = ["Options", "PostgresStore"]

T = TypeVar("T")


class PostgresStore:
    """The store contract over a PostgreSQL database. See `aforesaid.store.contract` for what it promises."""

    def __init__(self, dsn: str, options: Options) -> None:
        """Use `PostgresStore.open`."""
        self.dsn = dsn
        self._database = Database(dsn, options)
        self._writer = Writer(self._database, options.transactions)
        self._search = Search()
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

    async def apply(self, changes: Sequence[Change]) -> Receipt:
        """Store all changes, or none and raise."""
        self._check_open()
        steps = prepared(changes)
        for place, step in enumerate(steps):
            if isinstance(step, retention.Discarding):
                steps[place] = await self._read(None, lambda queries, step=step: retention.locate(queries, step.step))  # type: ignore[misc]
        return await self._writer.submit(steps)

    async def messages(
        self,
        scope: Scope,
        *,
        within: Within = "user",
        limit: int = 50,
        before: int | Position | None = None,
        archived: bool = True,
        versions: bool = False,
    ) -> list[Message]:
        """Return the newest messages by when they were said, oldest first."""
        return await self._read(
            scope.space,
            lambda queries: reads.messages(queries, scope, within, limit, before, archived=archived, versions=versions),
        )

    async def message(self, scope: Scope, message_id: str, *, within: Within = "user") -> Message:
        """Return one message by its id."""
        return await self._read(scope.space, lambda queries: reads.message(queries, scope, message_id, within))

    async def covered(self, scope: Scope, summary: int) -> list[Message]:
        """Return the messages below a summary."""
        return await self._read(scope.space, lambda queries: reads.covered(queries, scope, summary))

    async def above(self, scope: Scope, seq: int) -> list[Summary]:
        """Return the summaries that a message lies below."""
        return await self._read(scope.space, lambda queries: views.above(queries, scope, seq))

    async def summary(self, scope: Scope, summary: int) -> Summary:
        """Return one of the user's summaries."""
        return await self._read(scope.space, lambda queries: reads.summary(queries, scope, summary))

    async def summaries(
        self,
        scope: Scope,
        *,
        active: bool | None = True,
        kind: str | None = None,
        day: date | None = None,
        here: bool = False,
    ) -> list[Summary]:
        """Return the user's summaries."""
        return await self._read(
            scope.space, lambda queries: reads.summaries(queries, scope, active=active, kind=kind, day=day, here=here)
        )

    async def without_model(self, kind: str, prompt: str, after: int, limit: int) -> list[Summary]:
        """Return active summaries that no model and no person wrote."""
        return await self._read(None, lambda queries: reads.without_model(queries, kind, prompt, after, limit))

    async def said_between(self, space: str, since: int, until: int) -> list[Message]:
        """Return what was said in a space."""
        return await self._read(space, lambda queries: reads.said_between(queries, space, since, until))

    async def said_per_day(self, space: str, since: int, until: int, user: str | None = None) -> list[Activity]:
        """Return how much was said on each day."""
        return await self._read(space, lambda queries: reads.said_per_day(queries, space, since, until, user))

    async def vectors(self, scope: Scope, embedder: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Return the vectors of messages."""
        return await self._read(scope.space, lambda queries: vectors.of_messages(queries, scope, embedder, seqs))

    async def ahead(self, policy: str, limit: int) -> Ahead:
        """Return the oldest messages that a policy has not walked past."""
        return await self._read(None, lambda queries: agenda.ahead(queries, policy, limit))

    async def agenda(self, policy: str, due_by: int, limit: int, *, failing: bool = False) -> list[Entry]:
        """Return what is due, longest waiting first."""
        return await self._read(None, lambda queries: agenda.entries(queries, policy, due_by, limit, failing=failing))

    async def planned(self, subject: Subject) -> Entry | None:
        """Return what is planned for a subject."""
        return await self._read(subject.space, lambda queries: agenda.entry(queries, subject))

    async def backlog(self, policy: str, due_by: int) -> Backlog:
        """Return how much is due."""
        return await self._read(None, lambda queries: agenda.backlog(queries, policy, due_by))

    async def memories(self, scope: Scope, *, active: bool | None = True) -> list[MemoryRecord]:
        """Return the user's memories."""
        return await self._read(scope.space, lambda queries: memories.read(queries, scope, active=active))

    async def memory(self, scope: Scope, memory: int) -> MemoryRecord:
        """Return one of the user's memories."""
        return await self._read(scope.space, lambda queries: memories.find(queries, scope, memory))

    async def memories_in(
        self,
        space: str,
        *,
        user: str | None = None,
        active: bool | None = None,
        category: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[MemoryRecord]:
        """Return the newest memories of a space, newest first."""
        wanted = (space, user, active, category, before, limit)
        return await self._read(space, lambda queries: memories.listed(queries, *wanted))

    async def memory_versions(self, scope: Scope, memory: int) -> list[MemoryVersion]:
        """Return what a memory was before each of its changes, oldest first."""
        return await self._read(scope.space, lambda queries: memories.versions(queries, scope, memory))

    async def memories_due(self, what: Timely, before: datetime, limit: int) -> list[MemoryRecord]:
        """Return active memories, of all spaces, whose time has come, oldest first."""
        until = microseconds(before, "the moment")
        return await self._read(None, lambda queries: memories.timely(queries, what, until, limit))

    async def facts_versions(self, scope: Scope) -> list[Facts]:
        """Return all versions of the user's facts, oldest first."""
        return await self._read(scope.space, lambda queries: known.facts(queries, scope))

    async def forgotten(self, scope: Scope) -> list[Tombstone]:
        """Return what the user asked to forget."""
        return await self._read(scope.space, lambda queries: known.forgotten(queries, scope))

    async def derived(self, scope: Scope, kind: str) -> Derived | None:
        """Return what was worked out for the user."""
        return await self._read(scope.space, lambda queries: known.derived(queries, scope, kind))

    async def unextracted(self, limit: int, after: Scope | None = None) -> list[Unextracted]:
        """Return users of whom something was stored that nobody has looked through."""
        return await self._read(None, lambda queries: known.unextracted(queries, limit, after))

    async def following(
        self, scope: Scope, after: int, limit: int, *, here: bool = False, archived: bool = True
    ) -> list[Message]:
        """Return the user's messages after a sequence number, oldest first."""
        return await self._read(
            scope.space, lambda queries: reads.following(queries, scope, after, limit, here=here, archived=archived)
        )

    async def facts(self, scope: Scope) -> Facts | None:
        """Return the newest version of the user's facts."""
        found = await self._read(scope.space, lambda queries: known.facts(queries, scope, newest=True))
        return found[0] if found else None

    async def sessions(self, scope: Scope, *, within: Within = "user", limit: int = 50) -> list[Session]:
        """Return the newest sessions of the scope."""
        return await self._read(scope.space, lambda queries: reads.sessions(queries, scope, within, limit))

    async def settings(self, scope: Scope) -> list[Setting]:
        """Return the user's settings."""
        return await self._read(scope.space, lambda queries: reads.settings(queries, scope))

    async def ledger(self, scope: Scope, *, here: bool = False) -> Ledger:
        """Return the user's counts."""
        read = reads.ledger_of_thread if here else reads.ledger
        return await self._read(scope.space, lambda queries: read(queries, scope))

    async def search_text(self, scope: Scope, words: str, *, within: Within = "user", limit: int = 10) -> list[Hit]:
        """Return the messages that best match any of the words."""
        return await self._read(scope.space, lambda queries: self._search.search(queries, scope, words, within, limit))

    async def match_text(
        self,
        scope: Scope,
        words: str,
        *,
        within: Within = "user",
        embedder: str | None = None,  # noqa: ARG002
    ) -> TextMatches:
        """Return which messages of the scope have which words. The vectors stay in the database."""
        return await self._read(scope.space, lambda queries: self._search.match(queries, scope, words, within))

    async def unembedded(self, embedder: str, limit: int) -> list[Unembedded]:
        """Return the oldest messages that an embedder has not seen."""
        return await self._read(None, lambda queries: vectors.unembedded(queries, embedder, limit))

    async def search_vector(
        self,
        scope: Scope,
        embedder: str,
        vector: Vector,
        *,
        within: Within = "user",
        limit: int = 10,
        also: Sequence[int] = (),
    ) -> Similar | None:
        """Return the messages most similar to a vector."""
        return await self._read(
            scope.space, lambda queries: vectors.similar(queries, scope, embedder, vector, within, limit, also)
        )

    async def unembedded_notes(self, embedder: str, limit: int) -> list[UnembeddedNote]:
        """Return the oldest notes that an embedder has not seen."""
        return await self._read(None, lambda queries: note_search.unembedded(queries, embedder, limit))

    async def search_notes(
        self, scope: Scope, words: str, embedder: str, vector: Vector | None, *, limit: int = 10
    ) -> list[NoteMatch]:
        """Return the user's active notes that fit best."""
        return await self._read(
            scope.space, lambda queries: note_search.search(queries, scope, words, embedder, vector, limit)
        )

    async def pick(self, scope: Scope, seqs: Sequence[int], *, within: Within = "user") -> list[Message]:
        """Return messages of the scope by sequence number, in order."""
        return await self._read(scope.space, lambda queries: reads.pick(queries, scope, seqs, within))

    async def spent(self, day: date, scope: Scope | None) -> int:
        """Return the tokens that were spent on a day."""
        return await self._read(None, lambda queries: reads.spent(queries, day, scope))

    async def users(self, space: str | None = None) -> list[User]:
        """Return the users who own something."""
        return await self._read(None, lambda queries: reads.users(queries, space))

    async def irregular_ids(self) -> frozenset[str]:
        """Return the ids that are not spelled regularly."""
        return await self._read(None, reads.irregular_ids)

    async def names(self, space: str, users: Collection[str] | None = None) -> dict[str, str]:
        """Return the display names of a space by user id."""
        return await self._read(space, lambda queries: reads.names(queries, space, users))

    async def audit(self, scope: Scope, *, limit: int = 100) -> list[AuditEntry]:
        """Return the newest audit rows about the user."""
        return await self._read(scope.space, lambda queries: reads.audit(queries, scope, limit))

    async def stats(self) -> Stats:
        """Return totals."""
        return await self._read(None, reads.stats)

    async def health(self) -> Component:
        """Say how the store is doing."""
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
            ),
        )

    async def verify(self, progress: Progress | None = None) -> Verification:
        """Check everything, as it is at one moment. Other calls are not blocked."""
        messages = (await self.stats()).messages
        found = await self._read(None, lambda queries: verify.checks(queries, messages, progress))
        return Verification(tuple(found))

    async def backup(self, target: Path, progress: Progress | None = None) -> None:  # noqa: ARG002 - as every store
        """Refuse: a database that others use too is backed up with its own tools."""
        raise InvalidInput(f"{target} was not written: back {shown(self.dsn)} up with pg_dump, or export it")

    async def dump(self, *, vectors: bool = False) -> AsyncIterator[Sequence[MovingRow]]:
        """Give out everything as it is at one moment, page by page."""
        self._check_open()
        with translated(shown(self.dsn), "reading"):
            async with self._database.snapshot() as queries:
                async for page in dumping.everything(queries, vectors=vectors):
                    if page:
                        yield page

    async def purge(self, scope: Scope, actor: str = "aforesaid") -> Purged:
        """Erase a user from every table. What lies in freed pages and old logs is up to the database's own services."""
        self._check_open()
        async with self._purging:
            return await self._database.write([scope.space], "eraser", lambda unit: purging.erase(unit, scope, actor))

    async def discardable(self, what: Discardable, before: int) -> int:
        """Return how much could be removed."""
        return await self._read(None, lambda queries: retention.discardable(queries, what, before))

    async def change_token(self) -> str:
        """Return a text that is another one once any process has committed."""
        return await self._read(None, reads.change_token)

    async def marks(self) -> dict[str, str]:
        """Return what is kept in mind about the store itself."""
        return await self._read(None, retention.marks)

    async def close(self) -> None:
        """Finish what was handed in, then let go of everything."""
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
