"""Receipts of contexts, on every store: kept by id, listed by time, and gone with their user."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from aforesaid.domain.checks import microseconds
from aforesaid.domain.context_receipt import (
    ContextReceipt,
    SentItem,
    SentSection,
    new_receipt_id,
    read_receipt,
    receipt_details,
)
from aforesaid.domain.memory import MemoryDraft
from aforesaid.domain.receipt import Discarded
from aforesaid.errors import InvalidInput
from aforesaid.store import Store, open_store
from aforesaid.store.memories import AddMemory, Memories
from aforesaid.store.messages import Messages
from aforesaid.store.people import KeepReceipt, Receipts, Users
from aforesaid.store.retention import Discard, DiscardableCount
from copying import copy
from filling import ANN, ANN_AWAY, BOB, receipt_of
from making import add, minutes

MICROSECONDS = 1_000_000


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[Store]:
    store = await open_store(str(tmp_path / "other.db"))
    yield store
    await store.close()


async def keep(store: Store, *receipts: ContextReceipt) -> None:
    await store.apply([KeepReceipt(receipt) for receipt in receipts])


async def test_receipts_are_listed_with_the_newest_first(store: Store) -> None:
    (reply,) = await add(store, ANN, "hello")
    first, second = receipt_of(ANN, reply, 7, 1), receipt_of(ANN, None, 7, 2)
    await keep(store, first, second)
    assert await store.read(Receipts(ANN)) == [second, first]
    assert await store.read(Receipts(ANN, limit=1)) == [second]
    assert await store.read(Receipts(ANN, before=second.id)) == [first]
    since = microseconds(minutes(2), "the time")
    assert await store.read(Receipts(ANN, since=since)) == [second]
    assert await store.read(Receipts(ANN, ids=[first.id, "unknown"])) == [first]
    assert await store.read(Receipts(ANN, replies=[reply.seq, 99])) == [first]
    assert (await store.verify()).ok


async def test_a_receipt_belongs_to_its_user_alone(store: Store) -> None:
    for scope in (ANN, BOB, ANN_AWAY):
        await add(store, scope, "hello")
    receipt = receipt_of(ANN, None, 7)
    await keep(store, receipt)
    for scope in (BOB, ANN_AWAY):
        assert await store.read(Receipts(scope, ids=[receipt.id])) == []


async def test_a_receipt_that_is_stored_again_takes_the_place_of_the_first(store: Store) -> None:
    (reply,) = await add(store, ANN, "hello")
    receipt = receipt_of(ANN, None, 7)
    await keep(store, receipt)
    answered = replace(receipt, reply=reply.seq, output_tokens=12)
    await keep(store, answered)
    assert await store.read(Receipts(ANN)) == [answered]
    assert (await store.verify()).ok


async def test_a_receipt_makes_nobody_a_user(store: Store) -> None:
    await keep(store, receipt_of(ANN, None, 7))
    assert await store.read(Receipts(ANN)) == []
    assert await store.read(Users()) == []


async def test_old_receipts_are_removed_by_age(store: Store) -> None:
    await add(store, ANN, "hello")
    await keep(store, *(receipt_of(ANN, None, 7, number) for number in (1, 2, 3)))
    before = microseconds(minutes(3), "the time")
    assert await store.read(DiscardableCount("receipts", before)) == 2
    assert (await store.apply([Discard("receipts", before)])).results == (Discarded(2),)
    assert [each.at for each in await store.read(Receipts(ANN))] == [minutes(3)]
    assert (await store.verify()).ok


async def test_receipts_go_with_their_user(store: Store) -> None:
    await add(store, ANN, "hello")
    await add(store, BOB, "hello")
    await keep(store, receipt_of(ANN, None, 7), receipt_of(BOB, None, 7))
    await store.purge(ANN)
    assert await store.read(Receipts(ANN)) == []
    assert len(await store.read(Receipts(BOB))) == 1
    assert (await store.verify()).ok


async def test_receipts_get_the_numbers_of_the_store_that_they_move_to(store: Store, other: Store) -> None:
    await add(other, BOB, "other messages", "come first there")
    message, erased = await add(store, ANN, "I like tea", "and secrets")
    memory = (await store.apply([AddMemory(MemoryDraft(ANN, "fact", "likes tea", sources=(message.seq,)))])).memory
    items = SentItem("message", message.seq, 1), SentItem("message", erased.seq, 2), SentItem("memory", memory.id, 3)
    receipt = replace(receipt_of(ANN, message, memory.id), sections=(SentSection("recent", 6, items),))
    await keep(store, receipt)
    await store.erase(ANN, [erased.seq])
    await copy(store.dump(), other)
    await copy(store.dump(), other)
    (there,) = await other.read(Messages(ANN))
    (known,) = await other.read(Memories(ANN))
    (moved,) = await other.read(Receipts(ANN))
    assert moved.sections[0].items == (("message", there.seq, 1), ("message", None, 2), ("memory", known.id, 3))
    assert (moved.id, moved.reply) == (receipt.id, there.seq)


def test_ids_sort_by_time_and_cannot_be_guessed() -> None:
    ids = [new_receipt_id(second * MICROSECONDS) for second in (1, 2, 1_800_000_000)]
    assert ids == sorted(ids)
    assert len({new_receipt_id(0)[12:] for _ in range(1_000)}) == 1_000


def test_a_receipt_says_in_words_what_the_model_knew() -> None:
    items = tuple(SentItem("message", number, 1) for number in (1, 2, 2))
    receipt = replace(receipt_of(ANN, None, 7), sections=(SentSection("recent", 3, items),))
    assert receipt.knew == "2 messages"
    known = SentSection("memories", 3, (SentItem("memory", 5, 1), SentItem("summary", 5, 1)))
    assert replace(receipt, sections=(*receipt.sections, known)).knew == "2 messages, 1 memory and 1 summary"
    assert replace(receipt, sections=()).knew == "nothing"


@pytest.mark.parametrize(
    "wrong",
    [
        {"sections": "none"},
        {"sections": [["recent", 1]]},
        {"sections": [["recent", -1, []]]},
        {"sections": [["recent", 1, [["dog", 1, 1]]]]},
        {"sections": [["recent", 1, [["message", True, 1]]]]},
        {"caller": 5},
        {"budget": "many"},
        {"milliseconds": [1]},
    ],
)
def test_a_damaged_receipt_is_refused_in_words(wrong: dict[str, object]) -> None:
    receipt = receipt_of(ANN, None, 7)
    with pytest.raises(InvalidInput, match="receipt"):
        read_receipt(receipt.id, "default", "ann", receipt.at, None, {**receipt_details(receipt), **wrong})
    with pytest.raises(InvalidInput, match="receipt"):
        read_receipt("../etc", "default", "ann", receipt.at, None, receipt_details(receipt))
