"""The embedded store: one SQLite file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import closing
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

import apsw

from aforesaid.domain.agenda import Ahead, Backlog, Entry, Subject
from aforesaid.domain.change import Change
from aforesaid.domain.checks import microseconds, moment
from aforesaid.domain.hit import Hit
from aforesaid.domain.literals import Timely, Within
from aforesaid.domain.memory import Derived, Facts, MemoryRecord, MemoryVersion, Tombstone, Unextracted
from aforesaid.domain.message import Message, Position
from aforesaid.domain.note import NoteMatch, UnembeddedNote
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Activity, AuditEntry, Check, Component, Ledger, Setting, Stats, User, Verification
from aforesaid.domain.retention import Discardable
from aforesaid.domain.scope import Scope
from aforesaid.domain.session import Session
from aforesaid.domain.summary import Summary
from aforesaid.domain.transfer import Purged
from aforesaid.domain.transfer import Row as MovingRow
from aforesaid.domain.vector import Similar, Unembedded
from aforesaid.errors import StoreClosed
from aforesaid.store import findings
from aforesaid.store.contract import Progress
from aforesaid.store.ranking import TextMatches
from aforesaid.store.records import Row
from aforesaid.store.sqlite import (
    agenda,
    backup,
    dumping,
    known,
    memories,
    note_search,
    reads,
    retention,
    search,
    vectors,
    verify,
    views,
)
from aforesaid.store.sqlite.change_token import change_token
from aforesaid.store.sqlite.connection import Options, connect_reader, translated
from aforesaid.store.sqlite.engine import Engine
from aforesaid.store.sqlite.sharing import acquire, release
from aforesaid.store.sqlite.transaction import prepare

if TYPE_CHECKING:
    from aforesaid.store.contract import Vector

__all__ = ["Options", "SqliteStore"]

_FEW: Final = 500
"""Up to this many messages count as a short read."""


class SqliteStore:
    """The store contract over one SQLite file. See `aforesaid.store.contract` for what it promises."""

    def __init__(self, engine: Engine) -> None:
        """Use `SqliteStore.open`."""
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
        """Where the file is."""
        return self._shared.path

    @property
    def _engine(self) -> Engine:
        if self._closed:
            raise StoreClosed(f"{self.path} has been closed")
        return self._shared

    async def apply(self, changes: Sequence[Change]) -> Receipt:
        """Store all changes, or none and raise."""
        return await self._engine.write(prepare(changes))

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
        read = self._engine.glance if limit <= _FEW else self._engine.read
        return await read(
            lambda connection: reads.messages(
                connection, scope, within, limit, before, archived=archived, versions=versions
            )
        )

    async def message(self, scope: Scope, message_id: str, *, within: Within = "user") -> Message:
        """Return one message by its id."""
        return await self._engine.glance(lambda connection: reads.message(connection, scope, message_id, within))

    async def covered(self, scope: Scope, summary: int) -> list[Message]:
        """Return the messages below a summary."""
        return await self._engine.read(lambda connection: reads.covered(connection, scope, summary))

    async def above(self, scope: Scope, seq: int) -> list[Summary]:
        """Return the summaries that a message lies below."""
        return await self._engine.read(lambda connection: views.above(connection, scope, seq))

    async def summary(self, scope: Scope, summary: int) -> Summary:
        """Return one of the user's summaries."""
        return await self._engine.glance(lambda connection: reads.summary(connection, scope, summary))

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
        return await self._engine.glance(
            lambda connection: reads.summaries(connection, scope, active=active, kind=kind, day=day, here=here)
        )

    async def without_model(self, kind: str, prompt: str, after: int, limit: int) -> list[Summary]:
        """Return active summaries that no model and no person wrote."""
        return await self._engine.read(lambda connection: views.without_model(connection, kind, prompt, after, limit))

    async def said_between(self, space: str, since: int, until: int) -> list[Message]:
        """Return what was said in a space."""
        return await self._engine.read(lambda connection: views.said_between(connection, space, since, until))

    async def said_per_day(self, space: str, since: int, until: int, user: str | None = None) -> list[Activity]:
        """Return how much was said on each day."""
        return await self._engine.read(lambda connection: views.said_per_day(connection, space, since, until, user))

    async def vectors(self, scope: Scope, embedder: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Return the vectors of messages."""
        return await self._engine.read(lambda connection: views.vectors(connection, scope, embedder, seqs))

    async def ahead(self, policy: str, limit: int) -> Ahead:
        """Return the oldest messages that a policy has not walked past."""
        return await self._engine.read(lambda connection: agenda.ahead(connection, policy, limit))

    async def agenda(self, policy: str, due_by: int, limit: int, *, failing: bool = False) -> list[Entry]:
        """Return what is due, longest waiting first."""
        return await self._engine.read(
            lambda connection: agenda.entries(connection, policy, due_by, limit, failing=failing)
        )

    async def planned(self, subject: Subject) -> Entry | None:
        """Return what is planned for a subject."""
        return await self._engine.glance(lambda connection: agenda.entry(connection, subject))

    async def backlog(self, policy: str, due_by: int) -> Backlog:
        """Return how much is due."""
        return await self._engine.read(lambda connection: agenda.backlog(connection, policy, due_by))

    async def memories(self, scope: Scope, *, active: bool | None = True) -> list[MemoryRecord]:
        """Return the user's memories."""
        return await self._engine.glance(lambda connection: memories.read(connection, scope, active=active))

    async def memory(self, scope: Scope, memory: int) -> MemoryRecord:
        """Return one of the user's memories."""
        return await self._engine.glance(lambda connection: memories.find(connection, scope, memory))

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
        return await self._engine.read(lambda connection: memories.listed(connection, *wanted))

    async def memory_versions(self, scope: Scope, memory: int) -> list[MemoryVersion]:
        """Return what a memory was before each of its changes, oldest first."""
        return await self._engine.read(lambda connection: memories.versions(connection, scope, memory))

    async def memories_due(self, what: Timely, before: datetime, limit: int) -> list[MemoryRecord]:
        """Return active memories, of all spaces, whose time has come, oldest first."""
        until = microseconds(before, "the moment")
        return await self._engine.read(lambda connection: memories.timely(connection, what, until, limit))

    async def facts_versions(self, scope: Scope) -> list[Facts]:
        """Return all versions of the user's facts, oldest first."""
        return await self._engine.glance(lambda connection: known.facts(connection, scope))

    async def forgotten(self, scope: Scope) -> list[Tombstone]:
        """Return what the user asked to forget."""
        return await self._engine.glance(lambda connection: known.forgotten(connection, scope))

    async def derived(self, scope: Scope, kind: str) -> Derived | None:
        """Return what was worked out for the user."""
        return await self._engine.glance(lambda connection: known.derived(connection, scope, kind))

    async def unextracted(self, limit: int, after: Scope | None = None) -> list[Unextracted]:
        """Return users of whom something was stored that nobody has looked through."""
        return await self._engine.read(lambda connection: known.unextracted(connection, limit, after))

    async def following(
        self, scope: Scope, after: int, limit: int, *, here: bool = False, archived: bool = True
    ) -> list[Message]:
        """Return the user's messages after a sequence number, oldest first."""
        return await self._engine.read(
            lambda connection: views.following(connection, scope, after, limit, here=here, archived=archived)
        )

    async def facts(self, scope: Scope) -> Facts | None:
        """Return the newest version of the user's facts."""
        return await self._engine.glance(lambda connection: known.newest_facts(connection, scope))

    async def sessions(self, scope: Scope, *, within: Within = "user", limit: int = 50) -> list[Session]:
        """Return the newest sessions of the scope."""
        return await self._engine.read(lambda connection: reads.sessions(connection, scope, within, limit))

    async def settings(self, scope: Scope) -> list[Setting]:
        """Return the user's settings."""
        return await self._engine.glance(lambda connection: reads.settings(connection, scope))

    async def ledger(self, scope: Scope, *, here: bool = False) -> Ledger:
        """Return the user's counts."""
        if here:
            return await self._engine.read(lambda connection: reads.ledger_of_thread(connection, scope))
        return await self._engine.glance(lambda connection: reads.ledger(connection, scope))

    async def search_text(self, scope: Scope, words: str, *, within: Within = "user", limit: int = 10) -> list[Hit]:
        """Return the messages that best match any of the words."""
        caches = self._engine.caches
        return await self._engine.read(
            lambda connection: search.search(connection, caches, scope, words, within, limit)
        )

    async def match_text(
        self, scope: Scope, words: str, *, within: Within = "user", embedder: str | None = None
    ) -> TextMatches:
        """Return which messages of the scope have which words."""
        caches = self._engine.caches
        # What was searched lately is at hand: that is no long read, and others need not be kept from it.
        read = self._engine.glance if caches.lately(scope, within) else self._engine.read
        return await read(lambda connection: search.match(connection, caches, scope, words, within, embedder))

    async def unembedded(self, embedder: str, limit: int) -> list[Unembedded]:
        """Return the oldest messages that an embedder has not seen."""
        return await self._engine.read(lambda connection: vectors.unembedded(connection, embedder, limit))

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
        caches = self._engine.caches
        return await self._engine.read(
            lambda connection: caches.similar(connection, scope, embedder, vector, within, limit, also)
        )

    async def unembedded_notes(self, embedder: str, limit: int) -> list[UnembeddedNote]:
        """Return the oldest notes that an embedder has not seen."""
        return await self._engine.read(lambda connection: note_search.unembedded(connection, embedder, limit))

    async def search_notes(
        self, scope: Scope, words: str, embedder: str, vector: Vector | None, *, limit: int = 10
    ) -> list[NoteMatch]:
        """Return the user's active notes that fit best."""
        return await self._engine.read(
            lambda connection: note_search.search(connection, scope, words, embedder, vector, limit)
        )

    async def pick(self, scope: Scope, seqs: Sequence[int], *, within: Within = "user") -> list[Message]:
        """Return messages of the scope by sequence number, in order."""
        return await self._engine.glance(lambda connection: reads.pick(connection, scope, seqs, within))

    async def spent(self, day: date, scope: Scope | None) -> int:
        """Return the tokens that were spent on a day."""
        return await self._engine.glance(lambda connection: reads.spent(connection, day, scope))

    async def users(self, space: str | None = None) -> list[User]:
        """Return the users who own something."""
        return await self._engine.read(lambda connection: reads.users(connection, space))

    async def irregular_ids(self) -> frozenset[str]:
        """Return the ids that are not spelled regularly."""
        return await self._engine.read(reads.irregular_ids)

    async def names(self, space: str, users: Collection[str] | None = None) -> dict[str, str]:
        """Return the display names of a space by user id."""
        return await self._engine.read(lambda connection: reads.names(connection, space, users))

    async def audit(self, scope: Scope, *, limit: int = 100) -> list[AuditEntry]:
        """Return the newest audit rows about the user."""
        return await self._engine.read(lambda connection: reads.audit(connection, scope, limit))

    async def stats(self) -> Stats:
        """Return totals."""
        return await self._engine.read(reads.stats)

    async def health(self) -> Component:
        """Say how the store is doing."""
        writer = self._shared.writer
        issues = tuple(issue for issue in (writer.last_error, "closed" if self._closed else None) if issue)
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

    async def verify(self, progress: Progress | None = None) -> Verification:
        """Check everything. Other calls are not blocked; writes wait while the keyword index is compared."""
        stats = await self.stats()
        index = await self._engine.alone(
            lambda connection: findings.run("index", lambda: verify.check_index(connection))
        )
        rest = await asyncio.to_thread(self._verify_by_reading, stats.messages, progress)
        return Verification((*rest, index))

    async def backup(self, target: Path, progress: Progress | None = None) -> None:
        """Copy the store as it is now to a new file."""
        await asyncio.to_thread(backup.copy, self.path, target, self._engine.options, progress)

    async def dump(self, *, vectors: bool = False) -> AsyncIterator[Sequence[MovingRow]]:
        """Give out everything as it is at one moment, page by page."""
        with translated(self.path, "reading"):
            reader = await asyncio.to_thread(connect_reader, self.path, self._engine.options)
        try:
            found = dumping.everything(reader, vectors=vectors)
            while page := await asyncio.to_thread(self._page, found):
                yield page
        finally:
            await asyncio.to_thread(reader.close)

    def _page(self, found: Iterator[MovingRow]) -> list[MovingRow]:
        with translated(self.path, "reading"):
            return list(islice(found, dumping.PAGE))

    async def purge(self, scope: Scope, actor: str = "aforesaid") -> Purged:
        """Erase a user for good, from every byte of the file."""
        return await self._engine.purge(scope, actor)

    async def discardable(self, what: Discardable, before: int) -> int:
        """Return how much is older than a moment."""
        return await self._engine.read(lambda connection: retention.discardable(connection, what, before))

    async def change_token(self) -> str:
        """Return a text that is another one once any process has committed."""
        return change_token(self.path)

    async def marks(self) -> dict[str, str]:
        """Return what is kept in mind about the store."""
        return await self._engine.read(retention.marks)

    async def close(self) -> None:
        """Finish what was handed in, then close the file. When a call is cancelled, the next one waits for the rest."""
        if self._releasing is None:
            self._closed = True
            self._shared.hand_over()
            self._releasing = asyncio.ensure_future(asyncio.to_thread(release, self._shared))
        await asyncio.shield(self._releasing)

    def _verify_by_reading(self, messages: int, progress: Progress | None) -> list[Check]:
        with (
            translated(self.path, "verifying"),
            closing(connect_reader(self.path, self._engine.options)) as connection,
        ):

            def page(query: str, bindings: tuple[int, int]) -> list[Row]:
                return connection.execute(query, bindings).fetchall()

            def hashes() -> Iterator[str]:
                return verify.hash_pages(page, messages, progress)

            return [
                findings.run("database", lambda: verify.check_database(connection)),
                findings.run("references", lambda: verify.check_references(connection)),
                findings.run("hashes", hashes),
                findings.run("counts", lambda: verify.check_counts(connection)),
                findings.run("archives", lambda: verify.check_archives(connection)),
                findings.run("memories", lambda: verify.check_known(connection)),
            ]


def _give_back(opening: asyncio.Future[Engine]) -> None:
    """Let go of a file that was opened for somebody who did not wait for it."""
    if not opening.cancelled() and opening.exception() is None:
        opening.get_loop().run_in_executor(None, release, opening.result())
