"""A store with another behind it."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Final, TypeVar, cast

from aforesaid.background import close_all
from aforesaid.domain.checks import LARGEST, moment, now
from aforesaid.domain.message import Message, in_time_order, sequence_number
from aforesaid.domain.receipt import Receipt, Result
from aforesaid.domain.report import Component, Setting, Verification
from aforesaid.domain.scope import SESSION_SILENCE, Scope
from aforesaid.domain.thread import Thread, joined, newest_first, threads_after, threads_of
from aforesaid.domain.transfer import Purged, Row
from aforesaid.errors import InvalidInput, NotFound, StoreClosed, StoreError, StoreUnavailable, quoted
from aforesaid.store.contract import Progress, Store
from aforesaid.store.failover.fallback import FIRST, Fallback
from aforesaid.store.locations import Location, data_folder, file_name, locate, open_layout, open_store, postgres_dsn
from aforesaid.store.messages import AddMessage, MessageById, MessageCount, Messages, MessagesByNumber, Threads
from aforesaid.store.operations import Change, Question
from aforesaid.store.people import AuditAccess, PutMark, PutSetting, Settings, Spend, Totals, Users

_log: Final = logging.getLogger("aforesaid.store")

T = TypeVar("T")

ON_DISK: Final = "The memory cannot be written right now; what you say is kept in files and stored once it works again."
IN_MEMORY: Final = (
    "The memory cannot be written right now; what you say is kept until I am restarted, and stored once it works again."
)


class Failover:
    """The store contract over a store that may fail. Use `open_with_failover`.

    While it fails, messages wait in another one, and every operation first tries whether it works again. Then all that
    waited is stored, in order and once. Until then, change sets that build on stored data (summaries, memories) raise:
    they are made again from the log.
    """

    def __init__(
        self,
        store: Store | None,
        reopen: Callable[[], Awaitable[Store]],
        fallback: Fallback,
        quick: float = 0.5,
    ) -> None:
        """Use `quick` for how many seconds a failing attempt may take before the next one is put off."""
        self._store = store
        self._quick = quick
        self._reopen = reopen
        self._fallback = fallback
        self._failure: StoreError | None = None
        self._since = 0
        self._not_before = 0.0
        self._turn = asyncio.Lock()
        self._held: list[Change] = []
        self._marks: dict[str, PutMark] = {}
        self._numbers: dict[int, int] = {}
        self._silence = SESSION_SILENCE
        self._closed = False

    async def start(self, failure: StoreError | None) -> None:
        """Begin, with the failure that opening the store ended in, or by storing what waits since an earlier run."""
        if failure is not None:
            self._fails(failure)
            return
        async with self._turn:
            await self._fallback.open()
            if await self._fallback.count():
                self._fails(StoreUnavailable("messages wait since it failed before"))
                await self._recover()

    async def apply(self, changes: Sequence[Change], progress: Progress | None = None) -> Receipt:
        """Store all changes; where only messages or settings are to be stored, keep them until they can be."""
        last = changes[-1] if changes else None
        if isinstance(last, AddMessage):
            self._silence = last.silence
        if self._failure is None:
            try:
                return await self._opened.apply(changes, progress)
            except StoreError as error:
                if error.consequence != "fail over" or not _can_wait(changes):
                    raise
        return await self._apply_in_turn([_recognisable(change) for change in changes], progress)

    async def _apply_in_turn(self, changes: Sequence[Change], progress: Progress | None) -> Receipt:
        """Try once more, after whoever tried before; keep what cannot be stored."""
        async with self._turn:
            await self._recover()
            if self._failure is None:
                try:
                    return await self._opened.apply(changes, progress)
                except StoreError as error:
                    if error.consequence != "fail over" or not _can_wait(changes):
                        raise
                    self._fails(error)
            if not _can_wait(changes):
                raise cast("StoreError", self._failure)
            return await self._keep(changes)

    async def read(self, question: Question[T]) -> T:
        """Answer a question; while the store cannot be reached, from what waits where that makes sense."""
        match question:
            case Messages():
                answer: object = await self._messages(question)
            case MessageCount():
                answer = await self._message_count(question)
            case Threads():
                answer = await self._threads(question)
            case MessageById():
                answer = await self._message(question)
            case MessagesByNumber():
                answer = await self._messages_by_number(question)
            case Settings():
                answer = await self._settings(question)
            case _:
                answer = await self._any(question)
        return cast("T", answer)

    async def _messages(self, question: Messages) -> list[Message]:
        """Return the newest messages by when they were said, those that wait included."""
        before = question.before
        if isinstance(before, int):
            # A number of one store means nothing to another; a position does.
            before = self._numbers.get(before, before)
            named = []
            if self._failure is not None:
                named = await self.read(MessagesByNumber(question.scope, [before], question.within))
            question = replace(question, before=named[0].position if named else before)
        found = await self._try_store(question)
        if self._failure is None:
            return found or []
        waiting = await self._fallback.messages(question)
        joined_up = in_time_order([*(found or []), *waiting])
        return joined_up[-question.limit :] if question.after is None else joined_up[: question.limit]

    async def _message_count(self, question: MessageCount) -> int:
        """Return the number of messages, those that wait included."""
        found = await self._try_store(question) or 0
        if self._failure is None:
            return found
        wanted = Messages(question.scope, question.within, LARGEST, archived=question.archived, where=question.where)
        return found + len(await self._fallback.messages(wanted))

    async def _threads(self, question: Threads) -> list[Thread]:
        """Return the user's threads, with the messages that wait."""
        every = question if self._failure is None else replace(question, limit=LARGEST, before=None)
        found = await self._try_store(every) or []
        if self._failure is None and every is question:
            return found
        threads = {thread.id: thread for thread in found}
        waiting = await self._fallback.messages(Messages(question.scope, limit=LARGEST))
        for thread in threads_of(waiting).values():
            threads[thread.id] = joined(threads[thread.id], thread) if thread.id in threads else thread
        return list(threads_after(newest_first(threads.values()), question.before, question.scope.user))[
            : question.limit
        ]

    async def _message(self, question: MessageById) -> Message:
        """Return one message by its id, also by one that it had while it waited."""
        seq = sequence_number(question.message_id)
        if seq is not None and seq in self._numbers:
            question = replace(question, message_id=f"#{self._numbers[seq]}")
        try:
            found = await self._try_store(question)
        except NotFound:
            if self._failure is None:
                raise
            found = None
        return await self._from_those_that_wait(question) if found is None else found

    async def _messages_by_number(self, question: MessagesByNumber) -> list[Message]:
        """Return messages by sequence number, those that wait included."""
        question = replace(question, seqs=[self._numbers.get(seq, seq) for seq in question.seqs])
        found = await self._try_store(question) or []
        if self._failure is not None:
            for each in self._fallback.stores:
                found = [*found, *(await each.store.read(question))]
        return found

    async def _settings(self, question: Settings) -> list[Setting]:
        """Return the user's settings, those that wait included."""
        found = await self._try_store(question) or []
        known = {setting.key: setting for setting in found}
        for change in self._held:
            if isinstance(change, PutSetting) and change.scope[:2] == question.scope[:2]:
                known.pop(change.key, None)
                if change.value is not None:
                    known[change.key] = Setting(change.key, change.value, moment(now()))
        return sorted(known.values(), key=lambda setting: setting.key)

    async def _any(self, question: Question[T]) -> T:
        """Return what the store answers or, where others may answer while it cannot be reached, what they do."""
        answered: list[T] = []
        await self._try_store(question, answered)
        if answered:
            return answered[0]
        if question.needs_store and self._failure is not None:
            raise self._failure
        return await self._from_those_that_wait(question)

    async def health(self) -> Component:
        """Say how the store is doing, and what took over."""
        async with self._turn:
            await self._recover()
        known = None if self._store is None else await self._store.health()
        if self._failure is None:
            return cast("Component", known)
        waiting = await self._fallback.count()
        facts = (("waiting to be stored", str(waiting)), ("failing since", moment(self._since).isoformat()))
        issue = f"it fails, and another takes over: {self._failure}"
        if known is None:
            return Component("store", "failing", None, (issue,), facts)
        return replace(known, status="failing", issues=(issue, *known.issues), facts=(*known.facts, *facts))

    async def verify(self, progress: Progress | None = None) -> Verification:
        """Check what is stored, and what waits."""
        report = await self._opened.verify(progress)
        for each in self._fallback.stores if self._failure is not None else ():
            checks = (await each.store.verify(progress)).checks
            named = [replace(check, name=f"waiting {check.name}") for check in checks]
            report = Verification((*report.checks, *named))
        return report

    async def backup(self, target: Path, progress: Progress | None = None) -> None:
        """Copy the store. What waits is stored first, or this raises."""
        await self._opened_and_well()
        await self._opened.backup(target, progress)

    async def dump(self, *, vectors: bool = False) -> AsyncIterator[Sequence[Row]]:
        """Give out everything. What waits is stored first, or this raises."""
        await self._opened_and_well()
        async for page in self._opened.dump(vectors=vectors):
            yield page

    async def purge(self, scope: Scope, actor: str = "aforesaid") -> Purged:
        """Erase a user, here and where messages waited. What waits is stored first, or this raises."""
        await self._opened_and_well()
        done = await self._opened.purge(scope, actor)
        await self._purge_waiting(scope, actor)
        return done

    async def erase(self, scope: Scope, seqs: Sequence[int], actor: str = "aforesaid") -> Purged:
        """Erase messages. What waits is stored first, or this raises; where it waited, all of the user is erased."""
        await self._opened_and_well()
        done = await self._opened.erase(scope, [self._numbers.get(seq, seq) for seq in seqs], actor)
        await self._purge_waiting(scope, actor)
        return done

    async def _purge_waiting(self, scope: Scope, actor: str) -> None:
        """Erase a user where messages waited. They are in the store by now."""
        for each in self._fallback.stores:
            if any((user.space, user.id) == scope[:2] for user in await each.store.read(Users())):
                await each.store.purge(scope, actor)

    async def close(self) -> None:
        """Try once more to store what waits, and let go of everything."""
        async with self._turn:
            if not self._closed:
                self._closed = True
                self._not_before = 0.0
                await self._recover()
                if self._failure is not None and (count := await self._fallback.count()):
                    _log.error("messages that wait to be stored: %d (%s)", count, self._failure)
            stores = [] if self._store is None else [self._store.close]
            await close_all(self._fallback.close, *stores)

    @property
    def _opened(self) -> Store:
        if self._store is None:
            raise self._failure or StoreClosed("the store has been closed")
        return self._store

    async def _opened_and_well(self) -> None:
        async with self._turn:
            self._not_before = 0.0
            await self._recover()
            if self._failure is not None:
                raise self._failure

    async def _try_store(self, question: Question[T], answered: list[T] | None = None) -> T | None:
        """Ask the store, and note its answer. Returns None when it cannot be reached; every other error is raised."""
        if self._closed:
            raise StoreClosed("the store has been closed")
        if self._failure is not None:
            async with self._turn:
                await self._recover()
        if self._store is None:
            return None
        try:
            answer = await self._store.read(question)
        except StoreError as error:
            if error.consequence != "fail over":
                raise
            if self._failure is None:
                self._fails(error)
            return None
        if answered is not None:
            answered.append(answer)
        return answer

    async def _from_those_that_wait(self, question: Question[T]) -> T:
        """Ask where messages wait, the safer place first; what one does not know the other may."""
        first, *others = self._fallback.stores or [self._fallback.memory]
        for each in reversed(others):
            try:
                if await each.count():
                    return await each.store.read(question)
            except NotFound:
                continue
        return await first.store.read(question)

    async def _keep(self, changes: Sequence[Change]) -> Receipt:
        messages = [change for change in changes if isinstance(change, AddMessage)]
        durable = len(messages) == len(changes)
        stored: Iterator[Result] = iter(())
        if messages:
            receipt = await self._fallback.add(messages, self._silence)
            durable = durable and receipt.durable
            stored = iter(receipt.results)
        for change in changes:
            if isinstance(change, PutMark):
                # The newest of a name counts, however long the failure lasts.
                self._marks[change.name] = change
            elif not isinstance(change, AddMessage):
                self._held.append(change)
        results = [next(stored) if isinstance(change, AddMessage) else None for change in changes]
        return Receipt(durable, tuple(results), (ON_DISK if durable else IN_MEMORY,))

    async def _recover(self) -> None:
        """Try whether the store works again, and store all that waits.

        Where an attempt takes long, as with a server that does not answer, the next one is put off for as long.
        """
        started = time.monotonic()
        if self._failure is None or started < self._not_before:
            return
        try:
            if self._store is None:
                self._store = await self._reopen()
            merged = 0
            for each in self._fallback.stores:
                merged += await each.merge_into(self._store, self._silence, self._numbers.__setitem__)
            while self._held:
                await self._store.apply([self._held[0]])
                del self._held[0]
            while self._marks:
                marks, self._marks = self._marks, {}
                try:
                    await self._store.apply(list(marks.values()))
                except StoreError:
                    self._marks = {**marks, **self._marks}
                    raise
            await self._store.read(Totals())
        except StoreError as error:
            self._failure = error
            ended = time.monotonic()
            self._not_before = ended + (ended - started) if ended - started > self._quick else 0.0
            return
        self._failure = None
        _log.warning("the store works again; %d messages that had waited are stored", merged)
        await self._fallback.tidy()

    def _fails(self, error: StoreError) -> None:
        self._failure = error
        self._since = now()
        self._not_before = 0.0
        _log.error("the store fails, and another takes over: %s", error)


def _can_wait(changes: Sequence[Change]) -> bool:
    """Tell whether a change set says something new, and builds on nothing that is stored."""
    conditional = any(isinstance(change, PutMark) and change.only_if is not ... for change in changes)
    independent = all(isinstance(change, AddMessage | PutSetting | PutMark | Spend | AuditAccess) for change in changes)
    return independent and not conditional


def _recognisable(change: Change) -> Change:
    """Give a message its time. A store that fails may have stored it all the same, and then knows it again."""
    if not isinstance(change, AddMessage) or change.draft.replaces is not None:
        return change  # a new version without a time has the time of the message that it replaces
    return replace(change, draft=change.draft._replace(at_given=True))


AUTO: Final = "auto"
NONE: Final = "none"
MEMORY: Final = "memory"


async def open_with_failover(location: str | os.PathLike[str] | None, fallback: str) -> Store:
    """Open a store. What takes over when it fails: `none`, `memory`, `files:PATH`, `json:PATH`, or `auto`.

    `auto` is a folder beside the file of the store (for a database: where memory is kept by default), then memory; a
    store that is in memory itself needs none. With anything but `auto` also a store that cannot be opened is taken over
    from, until it can be.
    """
    dsn = postgres_dsn(location)
    place = _place_of_database(dsn) if dsn is not None else locate(location).path
    if fallback == NONE or place is None:
        return await open_store(location)
    behind = _behind(place, fallback)
    opening = None if behind is None else partial(open_layout, behind, first=FIRST)
    behind_it = Fallback(opening, behind.path if behind is not None and fallback == AUTO else None)
    failure: StoreError | None = None
    store: Store | None = None
    try:
        store = await open_store(location)
    except StoreError as error:
        # With `auto`, a store that cannot be reached is most likely a mistaken location.
        if error.consequence != "fail over" or (fallback == AUTO and isinstance(error, StoreUnavailable)):
            raise
        failure = error
    failover = Failover(store, partial(open_store, location), behind_it)
    if failure is not None or (behind is not None and behind.path is not None and behind.path.expanduser().exists()):
        await failover.start(failure)
    return cast("Store", failover)


def _place_of_database(dsn: str) -> Path:
    """Return a path that stands for a database, whatever the password: what waits must be found after it changed.

    Earlier versions made the name from the whole address. Where messages wait under that name, it stays in use.
    """
    earlier = data_folder() / f"database-{blake2b(dsn.encode(), digest_size=6).hexdigest()}"
    return earlier if _waiting(earlier).exists() else data_folder() / file_name(dsn)


def _waiting(place: Path) -> Path:
    return place.with_name(f"{place.name}.waiting")


def _behind(place: Path, fallback: str) -> Location | None:
    """Return where messages wait on a disk; None for memory alone."""
    if fallback == MEMORY:
        return None
    if fallback == AUTO:
        return Location("files", _waiting(place))
    found = locate(fallback)
    if found.path is None or found.kind not in ("files", "json"):
        raise InvalidInput(
            f"the fallback {quoted(fallback)} cannot take over; use {AUTO}, {MEMORY}, {NONE}, files:PATH or json:PATH"
        )
    if found.path.expanduser().absolute() == place.expanduser().absolute():
        raise InvalidInput(f"the fallback {quoted(fallback)} is the store itself")
    return found
