"""Random operations on the PostgreSQL store and on plain ones in memory: nobody can tell them apart.

PostgreSQL numbers each space for itself, so each space is compared with a plain store of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, cast

from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize

from aforesaid.domain.agenda import Ahead, Backlog, Entry
from aforesaid.domain.change import Change
from aforesaid.domain.literals import Timely
from aforesaid.domain.memory import MemoryRecord, Unextracted
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Stats, User
from aforesaid.domain.retention import Discard, Discardable, Discarded
from aforesaid.domain.summary_change import Walk
from aforesaid.domain.transfer import Row
from aforesaid.store import Store
from aforesaid.store.ephemeral import EphemeralStore
from aforesaid.store.postgres import Options, PostgresStore
from aforesaid.store.postgres.transaction import prepared, spaces_of
from pg import clean_database
from store.test_machine import BothStores

MANY = 1_000


def in_one_space(changes: Sequence[Change]) -> tuple[str, list[Change]]:
    """Leave out all that is not of the first change's space."""
    chosen: str | None = None
    kept: list[Change] = []
    for change in changes:
        if isinstance(change, Walk):
            here = chosen if chosen is not None else next((touch.subject.space for touch in change.touched), "home")
            touched = tuple(touch for touch in change.touched if touch.subject.space == here)
            kept.append(replace(change, touched=touched, space=here))
        else:
            (here,) = spaces_of(prepared([change]))
            if chosen in (None, here):
                kept.append(change)
        chosen = here if chosen is None else chosen
    return chosen or "home", kept


async def discarded(change: Discard, *stores: Store) -> Receipt:
    """Remove all that is old enough: one change removes some of it, in one of the spaces."""
    count = 0
    for store in stores:
        while (removed := cast("Discarded", (await store.apply([change])).results[0])).count:
            count += removed.count
    return Receipt(True, (Discarded(count),))


class OneSpaceAtATime:
    """The PostgreSQL store, given changes of one space at a time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def apply(self, changes: Sequence[Change]) -> Receipt:
        match changes:
            case [Discard()]:
                return await discarded(changes[0], self._store)
        return await self._store.apply(in_one_space(changes)[1])

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._store, name)


class PlainSpaces:
    """A plain store for each space, which together answer like one."""

    def __init__(self) -> None:
        self._stores = {space: EphemeralStore() for space in ("home", "work")}

    async def apply(self, changes: Sequence[Change]) -> Receipt:
        match changes:
            case [Discard()]:
                return await discarded(changes[0], *self._stores.values())
        space, kept = in_one_space(changes)
        return await self._stores[space].apply(kept)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        def routed(where: Any, *others: Any, **options: Any) -> Any:  # noqa: ANN401
            space = where if isinstance(where, str) else where.space
            return getattr(self._stores[space], name)(where, *others, **options)

        return routed

    async def discardable(self, what: Discardable, before: int) -> int:
        return sum([await store.discardable(what, before) for store in self._stores.values()])

    async def users(self) -> list[User]:
        return [user for store in self._stores.values() for user in await store.users()]

    async def stats(self) -> Stats:
        every = [await store.stats() for store in self._stores.values()]
        return Stats(*(sum(getattr(stats, each.name) for stats in every) for each in fields(Stats)))

    async def unextracted(self, limit: int) -> list[Unextracted]:
        every = [user for store in self._stores.values() for user in await store.unextracted(MANY)]
        return sorted(every, key=lambda user: (user.scope.space, user.scope.user))[:limit]

    async def ahead(self, policy: str, limit: int) -> Ahead:
        for store in self._stores.values():
            found = await store.ahead(policy, limit)
            if found.passed:
                return found
        return Ahead(0, ())

    async def agenda(self, policy: str, due_by: int, limit: int, *, failing: bool = False) -> list[Entry]:
        due = [entry for store in self._stores.values() for entry in await store.agenda(policy, due_by, MANY)]
        every = [
            entry
            for store in self._stores.values()
            for entry in await store.agenda(policy, due_by, MANY, failing=failing)
        ]
        later = [entry for entry in every if entry not in due]
        return [*sorted(due, key=_place), *sorted(later, key=_place)][:limit]

    async def backlog(self, policy: str, due_by: int) -> Backlog:
        due = await self.agenda(policy, due_by, MANY)
        every = await self.agenda(policy, due_by, MANY, failing=True)
        failing = sorted((entry for entry in every if entry.failures), key=_place)
        return Backlog(
            len(due), sum(entry.waiting for entry in due), len(failing), failing[-1].error if failing else None
        )

    async def memories_due(self, what: Timely, before: datetime, limit: int) -> list[MemoryRecord]:
        every = [each for store in self._stores.values() for each in await store.memories_due(what, before, MANY)]
        at = {"expiry": "expires_at", "reminder": "remind_at"}[what]
        return sorted(every, key=lambda memory: (getattr(memory, at), memory.id, memory.space))[:limit]

    async def dump(self, *, vectors: bool = False) -> AsyncIterator[Sequence[Row]]:
        for store in self._stores.values():
            async for page in store.dump(vectors=vectors):
                yield page


def _place(entry: Entry) -> Any:  # noqa: ANN401
    return entry.due_at, entry.subject


class BothKinds(BothStores):
    """Every operation goes to both, and both must answer alike."""

    def __init__(self) -> None:
        super().__init__()
        self.plain = cast("Store", PlainSpaces())
        self.dsn = clean_database()

    @initialize()
    def open(self) -> None:
        # One transaction at a time, so that callers who come at once are served in the order in which they came.
        opened = self.loop.run_until_complete(PostgresStore.open(self.dsn, Options(transactions=1)))
        self.tested = cast("Store", OneSpaceAtATime(opened))


BothKinds.TestCase.settings = settings(
    max_examples=3 if settings().max_examples < 100 else settings().max_examples // 8,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
TestBothKinds = BothKinds.TestCase
