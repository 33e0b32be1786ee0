"""A store with another behind it, where messages wait while it fails: files first, memory when no disk works."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Final, TypeVar, cast

from aforesaid.background import close_all
from aforesaid.domain.checks import LARGEST, moment, now
from aforesaid.domain.message import Draft, Message, in_time_order, sequence_number
from aforesaid.domain.receipt import Receipt, Repeated, Result, Stored
from aforesaid.domain.report import Component, Setting, Verification
from aforesaid.domain.scope import SESSION_SILENCE, Scope, opening_message
from aforesaid.domain.thread import Thread, joined, newest_first, threads_after, threads_of
from aforesaid.domain.transfer import Purged, Row, draft_of
from aforesaid.errors import (
    AforesaidError,
    InvalidInput,
    NotFound,
    SourcesChanged,
    StoreClosed,
    StoreError,
    StoreUnavailable,
    quoted,
)
from aforesaid.store.agenda import Advance, Unprocessed
from aforesaid.store.contract import Progress, Store
from aforesaid.store.locations import Location, data_folder, file_name, locate, open_layout, open_store
from aforesaid.store.messages import AddMessage, MessageById, MessageCount, Messages, MessagesByNumber, Threads
from aforesaid.store.operations import Change, Question
from aforesaid.store.people import AuditAccess, PutMark, PutSetting, Settings, Spend, Totals, Users

_log: Final = logging.getLogger("aforesaid.store")

T = TypeVar("T")

FIRST: Final = 1 << 48
"""Numbers of messages that wait come after this one, so that nobody takes them for numbers of the store itself."""
_POLICY: Final = "failover"
_TOGETHER: Final = 100
"""Messages merged per change set."""


class PendingMessages:
    """Messages that wait in one store. How far they were merged is a mark in that store, so that it survives too."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._replaces: dict[int, int | str] = {}
        """Which messages are new versions of which. What they replace may be in the store that fails."""
        self._merged: dict[int, int] = {}
        """The numbers that such messages got in the other store."""

    async def add(self, changes: Sequence[AddMessage]) -> Receipt:
        """Keep messages that can be told from others by their times: all of them, or none."""
        receipt = await self.store.apply([_independent(change) for change in changes])
        for change, result in zip(changes, receipt.results, strict=True):
            if change.draft.replaces is not None and isinstance(result, Stored | Repeated):
                self._replaces[result.message.seq] = change.draft.replaces
        return receipt

    async def count(self) -> int:
        return len((await self.store.read(Unprocessed(_POLICY, _TOGETHER * 100))).passed)

    async def messages(self, question: Messages) -> list[Message]:
        merged_up_to = max(FIRST, (await self.store.read(Unprocessed(_POLICY, 1))).after)
        return [message for message in await self.store.read(question) if message.seq > merged_up_to]

    async def merge_into(self, target: Store, silence: int, told: Callable[[int, int], None]) -> int:
        """Store all that waits in another store, in order; return how many. Raises as soon as that one fails."""
        merged = 0
        while True:
            after, passed = await self.store.read(Unprocessed(_POLICY, _TOGETHER))
            if not passed:
                return merged
            messages = [
                (await self.store.read(MessagesByNumber(Scope(each.space, each.user, each.thread), [each.seq])))[0]
                for each in passed
            ]
            for message, seq in zip(messages, await self._store(target, messages, silence), strict=True):
                told(message.seq, seq)
            merged += len(messages)
            try:
                await self.store.apply([Advance(_POLICY, after, passed[-1].seq, ())])
            except StoreError as error:
                # They are recognised when they are merged again.
                _log.warning("what was merged could not be marked: %s", error)
                raise

    async def _store(self, target: Store, messages: Sequence[Message], silence: int) -> list[int]:
        """Store messages, and return their numbers; zero for one that the store refuses for good."""
        if not self._replaces:
            return await _store(target, [AddMessage(_draft(message), silence) for message in messages])
        numbers = []
        for message in messages:
            replaces = self._replaces.get(message.seq)
            if isinstance(replaces, int):
                replaces = self._merged.get(replaces, replaces)
            draft = _draft(message)
            try:
                receipt = await target.apply([AddMessage(draft._replace(replaces=replaces), silence)])
                seq = receipt.message.seq
            except (NotFound, InvalidInput):
                seq = await _one(target, AddMessage(draft, silence))  # what it replaces is gone
            self._merged[message.seq] = seq
            numbers.append(seq)
        return numbers


def _independent(change: AddMessage) -> AddMessage:
    """Return a message without what only the store that fails knows: its sessions, and what it replaces."""
    scope = change.draft.scope
    if scope.session is not None and opening_message(scope.session) is not None:
        scope = scope._replace(session=None)
    return replace(change, draft=change.draft._replace(scope=scope, replaces=None))


async def _store(target: Store, changes: Sequence[AddMessage]) -> list[int]:
    """Store messages together, or one by one where one is refused, and return their numbers."""
    try:
        receipt = await target.apply(changes)
    except StoreError:
        raise
    except AforesaidError:
        return [await _one(target, change) for change in changes]
    return [result.message.seq for result in receipt.results]  # type: ignore[union-attr]


async def _one(target: Store, change: AddMessage) -> int:
    try:
        return (await target.apply([change])).message.seq
    except StoreError:
        raise
    except AforesaidError as error:
        _log.error("a message of %r cannot be merged: %s: %r", change.draft.scope.user, error, change.draft.text)
        return 0


def _draft(message: Message) -> Draft:
    """Make a draft of a message that waited. With its time given, it is recognised when it comes twice."""
    session = message.session if opening_message(message.session) is None else None
    scope = Scope(message.space, message.user, message.thread, session)
    return draft_of(message)._replace(scope=scope, replaces=None)


Open = Callable[[], Awaitable[Store]]


class Fallback:
    """Files, if some can be had, and memory. What is in memory is always newer than what is in the files."""

    def __init__(self, open_files: Open | None, passing: Path | None = None) -> None:
        """Use `passing` for the folder of files that are wanted only as long as something waits in them."""
        self._open_files = open_files
        self._passing = passing
        self._files: PendingMessages | None = None
        self._unopened = False
        """Whether files could not be opened: what was made of them so far may be in their folder."""
        self._memory: PendingMessages | None = None

    @property
    def stores(self) -> list[PendingMessages]:
        """Those that are in use, in the order of what waits in them."""
        return [store for store in (self._files, self._memory) if store is not None]

    @property
    def memory(self) -> PendingMessages:
        """The store in memory, made when it is first needed."""
        if self._memory is None:
            from aforesaid.store.sqlite import MemoryStore  # noqa: PLC0415 - loaded only when asked for

            self._memory = PendingMessages(MemoryStore(first=FIRST))
        return self._memory

    async def open(self) -> None:
        if self._files is None and self._open_files is not None:
            try:
                self._files = PendingMessages(await self._open_files())
            except StoreError as error:
                self._unopened = True
                _log.warning("no files can take over: %s", error)

    async def add(self, changes: Sequence[AddMessage], silence: int) -> Receipt:
        """Keep messages where they are safest: all of them, or none."""
        await self.open()
        if self._files is not None:
            try:
                if self._memory is not None:
                    await self._memory.merge_into(self._files.store, silence, lambda *_: None)
                return await self._files.add(changes)
            except (StoreError, SourcesChanged) as error:
                _log.error("the files fail too; what is said is only in memory: %s", error)
        return await self.memory.add(changes)

    async def messages(self, question: Messages) -> list[Message]:
        return in_time_order([message for each in self.stores for message in await each.messages(question)])

    async def count(self) -> int:
        return sum([await each.count() for each in self.stores])

    async def tidy(self) -> None:
        """Remove files that nobody asked for, if no message waits in them."""
        if self._passing is None:
            return
        if self._files is None and self._unopened:
            await self.open()
        if self._files is not None and not await self._files.count():
            store, self._files = self._files.store, None
            await store.close()
            await asyncio.to_thread(shutil.rmtree, self._passing.expanduser())
            self._unopened = False

    async def close(self) -> None:
        """Close the files, and remove their folder if nobody asked for it and no message waits in it."""
        await self.tidy()
        await close_all(*(waiting.store.close for waiting in self.stores))


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
        changes = [_recognisable(change) for change in changes]
        # Try once more, after whoever tried before; keep what cannot be stored.
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
                answer = found = await self._try_store(question) or 0
                if self._failure is not None:
                    wanted = Messages(question.scope, question.within, LARGEST, archived=question.archived)
                    wanted = replace(wanted, where=question.where)
                    answer = found + len(await self._fallback.messages(wanted))
            case Threads():
                answer = await self._threads(question)
            case MessageById():
                answer = await self._message(question)
            case MessagesByNumber():
                answer = await self._messages_by_number(question)
            case Settings():
                answer = await self._settings(question)
            case _:
                answered: list[T] = []
                await self._try_store(question, answered)
                if not answered and question.needs_store and self._failure is not None:
                    raise self._failure
                answer = answered[0] if answered else await self._read_waiting(question)
        return cast("T", answer)

    async def _messages(self, question: Messages) -> list[Message]:
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

    async def _threads(self, question: Threads) -> list[Thread]:
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
        return await self._read_waiting(question) if found is None else found

    async def _messages_by_number(self, question: MessagesByNumber) -> list[Message]:
        question = replace(question, seqs=[self._numbers.get(seq, seq) for seq in question.seqs])
        found = await self._try_store(question) or []
        for each in self._fallback.stores if self._failure is not None else ():
            found = [*found, *(await each.store.read(question))]
        return found

    async def _settings(self, question: Settings) -> list[Setting]:
        found = await self._try_store(question) or []
        known = {setting.key: setting for setting in found}
        for change in self._held:
            if isinstance(change, PutSetting) and change.scope[:2] == question.scope[:2]:
                known.pop(change.key, None)
                if change.value is not None:
                    known[change.key] = Setting(change.key, change.value, moment(now()))
        return sorted(known.values(), key=lambda setting: setting.key)

    async def health(self) -> Component:
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

    async def _read_waiting(self, question: Question[T]) -> T:
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
    found = locate(location)
    place = _place_of_database(found.address) if found.kind == "postgres" else found.path
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
