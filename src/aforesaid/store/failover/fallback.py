"""Where messages wait while the store fails: files first, memory when no disk works."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from aforesaid.background import close_all
from aforesaid.domain.checks import microseconds
from aforesaid.domain.message import Draft, Message, in_time_order, sequence_number
from aforesaid.domain.receipt import Receipt, Repeated, Stored
from aforesaid.domain.scope import Scope, opening_message
from aforesaid.errors import AforesaidError, InvalidInput, NotFound, SourcesChanged, StoreError
from aforesaid.store.agenda import Advance, Unprocessed
from aforesaid.store.contract import Store
from aforesaid.store.messages import AddMessage, Messages, MessagesByNumber

_log: Final = logging.getLogger("aforesaid.store")

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
        """Return how many messages wait, up to a limit."""
        return len((await self.store.read(Unprocessed(_POLICY, _TOGETHER * 100))).passed)

    async def messages(self, question: Messages) -> list[Message]:
        """Return those of the messages that still wait."""
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
            await self._mark(after, passed[-1].seq)

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

    async def _mark(self, after: int, up_to: int) -> None:
        try:
            await self.store.apply([Advance(_POLICY, after, up_to, ())])
        except StoreError as error:
            # They are recognised when they are merged again.
            _log.warning("what was merged could not be marked: %s", error)
            raise


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
    return Draft(
        scope=Scope(message.space, message.user, message.thread, session),
        role=message.role,
        text=message.text,
        author=message.author,
        name=message.name,
        at=microseconds(message.at, "the time"),
        at_given=True,
        stored_at=microseconds(message.stored_at, "the time"),
        id=message.id if sequence_number(message.id) is None else None,
        details=message.details,
    )


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
        """Open the files, if that can be done."""
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
        """Return the messages that wait, in order of time."""
        return in_time_order([message for each in self.stores for message in await each.messages(question)])

    async def count(self) -> int:
        """Return how many messages wait."""
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
