"""Random operations on the PostgreSQL store and on plain ones in memory: nobody can tell them apart.

PostgreSQL numbers each space for itself, so each space is compared with a plain store of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import fields, replace
from itertools import chain
from typing import Any, cast

from hypothesis import HealthCheck, settings
from hypothesis.stateful import initialize

from aforesaid.domain.receipt import Discarded, Receipt
from aforesaid.domain.report import Stats
from aforesaid.domain.scope import Ahead, Backlog, Entry, Scope
from aforesaid.domain.transfer import Purged, Row
from aforesaid.store import Progress, Store
from aforesaid.store.agenda import Advance, DueEntries, PolicyBacklog, Unprocessed
from aforesaid.store.memories import DueMemories, UnextractedUsers
from aforesaid.store.operations import Change, Question
from aforesaid.store.people import TokensSpent, Totals
from aforesaid.store.postgres import Options, PostgresStore
from aforesaid.store.postgres.writer import prepared, spaces_of
from aforesaid.store.retention import Discard, DiscardableCount
from aforesaid.store.sqlite import MemoryStore
from pg import clean_database
from store.test_machine import BothStores

MANY = 1_000


def in_one_space(changes: Sequence[Change]) -> tuple[str, list[Change]]:
    """Leave out all that is not of the first change's space."""
    chosen: str | None = None
    kept: list[Change] = []
    for change in changes:
        if isinstance(change, Advance):
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

    async def apply(self, changes: Sequence[Change], progress: Progress | None = None) -> Receipt:
        match changes:
            case [Discard()]:
                return await discarded(changes[0], self._store)
        return await self._store.apply(in_one_space(changes)[1], progress)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._store, name)


class PlainSpaces:
    """A plain store for each space, which together answer like one."""

    def __init__(self) -> None:
        self._stores = {space: MemoryStore() for space in ("home", "work")}

    async def apply(self, changes: Sequence[Change], progress: Progress | None = None) -> Receipt:
        match changes:
            case [Discard()]:
                return await discarded(changes[0], *self._stores.values())
        space, kept = in_one_space(changes)
        return await self._stores[space].apply(kept, progress)

    async def purge(self, scope: Scope) -> Purged:
        return await self._stores[scope.space].purge(scope)

    async def erase(self, scope: Scope, seqs: Sequence[int]) -> Purged:
        return await self._stores[scope.space].erase(scope, seqs)

    async def read(self, question: Question[Any]) -> Any:  # noqa: ANN401 - whatever the question asks for
        if question.within_space is not None:
            return await self._stores[question.within_space].read(question)
        match question:
            case TokensSpent(scope=Scope() as scope):
                return await self._stores[scope.space].read(question)
            case Unprocessed():
                found = await self._every(question)
                return next((each for each in found if each.passed), Ahead(0, ()))
            case DueEntries():
                return await self._agenda(question)
            case PolicyBacklog():
                return await self._backlog(question)
            case Totals():
                every = await self._every(question)
                return Stats(*(sum(getattr(stats, each.name) for stats in every) for each in fields(Stats)))
            case DiscardableCount():
                return sum(await self._every(question))
        limit = getattr(question, "limit", MANY)
        together = await self._together(replace(question, limit=MANY) if limit != MANY else question)  # type: ignore[type-var]
        match question:
            case UnextractedUsers():
                together.sort(key=lambda user: (user.scope.space, user.scope.user))
            case DueMemories():
                at = {"expiry": "expires_at", "reminder": "remind_at"}[question.what]
                together.sort(key=lambda memory: (getattr(memory, at), memory.id, memory.space))
        return together[:limit]

    async def _every(self, question: Question[Any]) -> list[Any]:
        return [await store.read(question) for store in self._stores.values()]

    async def _together(self, question: Question[Any]) -> list[Any]:
        return list(chain.from_iterable(await self._every(question)))

    async def _agenda(self, question: DueEntries) -> list[Entry]:
        wanted = replace(question, limit=MANY)
        due = await self._together(replace(wanted, failing=False))
        later = [entry for entry in await self._together(wanted) if entry not in due]
        return [*sorted(due, key=_place), *sorted(later, key=_place)][: question.limit]

    async def _backlog(self, question: PolicyBacklog) -> Backlog:
        wanted = DueEntries(question.policy, question.due_by, MANY)
        due = await self._agenda(wanted)
        failing = [entry for entry in await self._agenda(replace(wanted, failing=True)) if entry.failures]
        failing.sort(key=_place)
        return Backlog(
            len(due), sum(entry.waiting for entry in due), len(failing), failing[-1].error if failing else None
        )

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
