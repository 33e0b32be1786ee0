"""Checks whether a store of your own keeps the promises of the contract. See docs/how-to/add-a-store.md."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final, TypeAlias

from aforesaid.domain.memory import MemoryDraft
from aforesaid.domain.message import Message, draft
from aforesaid.domain.scope import Scope
from aforesaid.errors import NotFound, StoreClosed
from aforesaid.store.contract import Store
from aforesaid.store.dumping import Restore
from aforesaid.store.memories import AddMemory, Memories, NewestFacts, PutFacts
from aforesaid.store.messages import AddMessage, Messages, MessagesAfter
from aforesaid.store.people import Users
from aforesaid.store.searches import SearchText

Opening: TypeAlias = Callable[[str], Store | Awaitable[Store]]
"""Opens a place by its name: an empty one at first, and what was stored in it when it is opened again."""

_ANN: Final = Scope.of("ann")
_BOB: Final = Scope.of("bob")
_AT: Final = datetime(2026, 3, 1, 12, 0, 0, 123457, tzinfo=UTC)
_ODD: Final = "naïve 👩‍👩‍👧 \u202eright to left\u202c שלום \x07\r\n\ttabs \ufeff end "
_LONG: Final = "tea and toast " * 4_000
_WRITERS: Final = 30


class PromiseBroken(AssertionError):
    """A store does not do what the contract says."""


async def check_store(opening: Opening) -> None:
    """Open some places, use them as the library does, and raise PromiseBroken at the first broken promise.

    This takes seconds and leaves the places as they are. It cannot pull the plug: test yourself that a change set which
    was acknowledged survives `kill -9`, and that one which could not be written is not there afterwards.
    """
    for promise in (_kept, _in_order, _once, _all_or_nothing, _together, _cancelled, _erased, _moved, _closed):
        await promise(opening)


async def _kept(opening: Opening) -> None:
    async with _opened(opening, "kept") as store:
        _expect(not await store.read(Users()), "a new place is not empty")
        stored = [await _add(store, _ANN, text, at=_AT) for text in ("I like tea", _ODD, _LONG)]
        found = await store.read(SearchText(_ANN, "tea"))
        _expect(found, "a message is not found by its words when `apply` has returned")
        await store.apply([PutFacts(_ANN, "Ann likes tea.", "tea"), _remembering(stored[0])])
        before = await _seen(store)
        _expect(before[0] == stored, "messages are not read as `apply` returned them")
        _expect((await store.health()).name == "store", "the component of `health` is not called `store`")
    async with _opened(opening, "kept") as store:
        _expect(await _seen(store) == before, "what was stored is not the same after closing and opening")
        _expect((await store.verify()).ok, "`verify` finds damage in a store that was just written")


async def _in_order(opening: Opening) -> None:
    async with _opened(opening, "in order") as store:
        await _add(store, _ANN, "first", at=_AT)
        await _add(store, _ANN, "second", at=_AT.replace(year=2025))
    async with _opened(opening, "in order") as store:
        await _add(store, _ANN, "third", at=_AT.replace(month=2))
        after = await store.read(MessagesAfter(_ANN, 0, 10))
        _expect([each.text for each in after] == ["first", "second", "third"], "cursors do not go by storing")
        _expect(all(a.seq < b.seq for a, b in pairwise(after)), "sequence numbers do not grow")
        said = await store.read(Messages(_ANN))
        _expect([each.text for each in said] == ["second", "third", "first"], "history does not go by time")


async def _once(opening: Opening) -> None:
    async with _opened(opening, "once") as store:
        first = await _add(store, _ANN, "hello", id="m1")
    async with _opened(opening, "once") as store:
        again = await store.apply([AddMessage(draft(_ANN, "user", "hello", id="m1"))])
        _expect(again.duplicate and again.message == first, "a message that came twice is stored twice")


async def _all_or_nothing(opening: Opening) -> None:
    async with _opened(opening, "all or nothing") as store:
        await _add(store, _ANN, "before")
        before = await _seen(store)
        wrong = AddMemory(MemoryDraft(_ANN, "preference", "Ann likes tea.", sources=(4711,)))
        try:
            await store.apply([AddMessage(draft(_ANN, "user", "half")), wrong])
        except NotFound:
            pass
        else:
            raise PromiseBroken("a memory of a message that is not there is stored")
        _expect(await _seen(store) == before, "a part of a change set that failed is visible")
    async with _opened(opening, "all or nothing") as store:
        _expect(await _seen(store) == before, "a part of a change set that failed is there after opening again")


async def _together(opening: Opening) -> None:
    async with _opened(opening, "together") as store:
        stored = await asyncio.gather(*(_add(store, _ANN, f"message {number}") for number in range(_WRITERS)))
        _expect(len({each.seq for each in stored}) == _WRITERS, "writers at the same time got the same number")
    async with _opened(opening, "together") as store:
        texts = {each.text for each in await store.read(Messages(_ANN, limit=2 * _WRITERS))}
        _expect(texts == {each.text for each in stored}, "messages of writers at the same time are lost")


async def _cancelled(opening: Opening) -> None:
    async with _opened(opening, "cancelled") as store:
        writing = asyncio.ensure_future(_add(store, _ANN, "in passing", id="m1"))
        await asyncio.sleep(0)
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        await _add(store, _ANN, "in passing", id="m1")
        texts = [each.text for each in await store.read(Messages(_ANN))]
        _expect(texts == ["in passing"], "a message whose caller was cancelled is lost or stored twice")


async def _erased(opening: Opening) -> None:
    async with _opened(opening, "erased") as store:
        kept, gone = await _add(store, _BOB, "stays"), await _add(store, _BOB, "goes")
        last = await _add(store, _ANN, "goes too")
        await store.apply([_remembering(last)])
        await store.erase(_BOB, [gone.seq])
        await store.purge(_ANN)
    async with _opened(opening, "erased") as store:
        _expect(await store.read(Messages(_BOB)) == [kept], "`erase` erases too much or too little")
        left = [await store.read(Messages(_ANN)), await store.read(Memories(_ANN))]
        _expect(left == [[], []], "something is left of a user who was purged")
        names = [each.id for each in await store.read(Users())]
        _expect(names == ["bob"], "a user who was purged is still listed")
        new = await _add(store, _BOB, "later")
        _expect(new.seq > last.seq, "the number of an erased message is given out again")


async def _moved(opening: Opening) -> None:
    async with _opened(opening, "from") as old, _opened(opening, "to") as new:
        await old.apply([_remembering(await _add(old, _ANN, _ODD, at=_AT)), PutFacts(_ANN, "Ann likes tea.", "tea")])
        async for rows in old.dump():
            await new.apply([Restore(row) for row in rows])
        _expect(await _seen(new) == await _seen(old), "a dump does not restore what was dumped")


async def _closed(opening: Opening) -> None:
    async with _opened(opening, "closed") as store:
        await store.close()
        try:
            await _add(store, _ANN, "too late")
        except StoreClosed:
            return
        raise PromiseBroken("a closed store does not raise StoreClosed")


@asynccontextmanager
async def _opened(opening: Opening, name: str) -> AsyncIterator[Store]:
    made = opening(name)
    store = await made if inspect.isawaitable(made) else made
    _expect(isinstance(store, Store), f"{type(store).__name__} lacks methods of the contract")
    try:
        yield store
    finally:
        await store.close()  # for the second time where it was closed, which is fine


async def _add(store: Store, scope: Scope, text: str, *, at: datetime | None = None, id: str | None = None) -> Message:  # noqa: A002 - as everywhere
    return (await store.apply([AddMessage(draft(scope, "user", text, at=at, id=id))])).message


def _remembering(message: Message) -> AddMemory:
    scope = Scope.of(message.user, message.space)
    return AddMemory(MemoryDraft(scope, "preference", "Ann likes tea.", sources=(message.seq,)))


async def _seen(store: Store) -> tuple[object, ...]:
    asked = (MessagesAfter(_ANN, 0, 100), Memories(_ANN), NewestFacts(_ANN))
    return tuple([await store.read(question) for question in asked])


def _expect(kept: object, broken: str) -> None:
    if not kept:
        raise PromiseBroken(broken)
