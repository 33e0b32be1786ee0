"""Filters, counts and threads, on every store."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from aforesaid.domain.details import details_text
from aforesaid.domain.hit import EVERY_MESSAGE, MessageFilter, VectorRow
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.domain.thread import LAST_TEXT
from aforesaid.errors import NotFound
from aforesaid.store import Store
from aforesaid.store.messages import AddMessage, MessageCount, Messages, Threads
from aforesaid.store.searches import AddVectors, SearchText, SearchVector
from making import adding, archive, minutes

ANN = Scope.of("ann")
BOB = Scope.of("bob")
GENERAL = Scope.of("ann", thread="general")


def at(count: float) -> int:
    return int(minutes(count).timestamp() * 1_000_000)


def with_metadata(change: AddMessage, metadata: dict[str, object]) -> AddMessage:
    return replace(change, draft=change.draft._replace(details=details_text(metadata=metadata)))


async def conversation(store: Store) -> list[Message]:
    """Store a talk about boats, and something of Bob's that no read of Ann's may return."""
    receipt = await store.apply(
        [
            with_metadata(adding(ANN, "the blue boat", at=minutes(0)), {"n": 1, "yes": True, "none": None}),
            with_metadata(
                adding(ANN, "a boat indeed", "assistant", at=minutes(1)), {"n": "1", "yes": 1, 'ä"\\\n': "ß"}
            ),
            with_metadata(adding(ANN, "my boat too", author="carol", at=minutes(2)), {"n": 1.0, "m": {"n": 2}}),
            adding(ANN, "which boat", at=minutes(3)),
            adding(BOB, "a boat of bob", at=minutes(1)),
        ]
    )
    return [result.message for result in receipt.results][:4]  # type: ignore[union-attr]


FILTERS = {
    "role": (MessageFilter(role="assistant"), {"a boat indeed"}),
    "author": (MessageFilter(author="carol"), {"my boat too"}),
    "own": (MessageFilter(author="ann"), {"the blue boat", "which boat"}),
    "unknown author": (MessageFilter(author="nobody"), set[str]()),
    "since": (MessageFilter(since=at(2)), {"my boat too", "which boat"}),
    "until": (MessageFilter(until=at(1)), {"the blue boat"}),
    "several": (MessageFilter(role="user", since=at(1), until=at(3)), {"my boat too"}),
    "a number": (MessageFilter(metadata=(("n", 1),)), {"the blue boat", "my boat too"}),
    "the same number": (MessageFilter(metadata=(("n", 1.0),)), {"the blue boat", "my boat too"}),
    "a text": (MessageFilter(metadata=(("n", "1"),)), {"a boat indeed"}),
    "true": (MessageFilter(metadata=(("yes", True),)), {"the blue boat"}),
    "null": (MessageFilter(metadata=(("none", None),)), {"the blue boat"}),
    "no key": (MessageFilter(metadata=(("other", None),)), set[str]()),
    "an inner key": (MessageFilter(metadata=(("n", 2),)), set[str]()),
    "a strange key": (MessageFilter(metadata=(('ä"\\\n', "ß"),)), {"a boat indeed"}),
    "two keys": (MessageFilter(metadata=(("n", 1), ("yes", True))), {"the blue boat"}),
    "metadata and role": (MessageFilter(role="assistant", metadata=(("yes", 1),)), {"a boat indeed"}),
    "none": (EVERY_MESSAGE, {"the blue boat", "a boat indeed", "my boat too", "which boat"}),
}


@pytest.mark.parametrize(("where", "wanted"), FILTERS.values(), ids=FILTERS)
@pytest.mark.parametrize("within", ["user", "thread"])
async def test_a_filter_limits_reads_counts_and_searches_alike(
    store: Store, where: MessageFilter, wanted: set[str], within: str
) -> None:
    messages = await conversation(store)
    rows = [VectorRow(each.seq, each.text, _vector(each.seq), each.space) for each in messages]
    await store.apply([AddVectors("m", tuple(rows), messages[-1].seq)])
    scope: dict[str, object] = {"within": within, "where": where}
    found = await store.read(Messages(ANN, **scope))  # type: ignore[arg-type]
    assert {each.text for each in found} == wanted
    assert await store.read(MessageCount(ANN, **scope)) == len(wanted)  # type: ignore[arg-type]
    hits = await store.read(SearchText(ANN, "boat", **scope))  # type: ignore[arg-type]
    assert {hit.text for hit in hits} == wanted
    similar = await store.read(SearchVector(ANN, "m", _direction(1), also=[messages[0].seq], **scope))  # type: ignore[arg-type]
    seqs = set() if similar is None else set(similar.seqs.tolist())
    assert seqs == {each.seq for each in messages if each.text in wanted}


async def test_a_filter_is_applied_before_the_limit(store: Store) -> None:
    await store.apply([adding(ANN, f"boat {number}", "assistant" if number % 10 else "user") for number in range(60)])
    where = MessageFilter(role="user")
    assert len(await store.read(Messages(ANN, limit=5, where=where))) == 5
    hits = await store.read(SearchText(ANN, "boat", limit=5, where=where))
    assert [hit.message is not None and hit.message.role for hit in hits] == ["user"] * 5


async def test_a_count_knows_archives_and_only_the_newest_versions(store: Store) -> None:
    messages = await conversation(store)
    await archive(store, ANN, messages[:1])
    await store.apply([adding(ANN, "which ship", replaces=messages[3])])
    assert await store.read(MessageCount(ANN)) == 4
    assert await store.read(MessageCount(ANN, archived=False)) == 3
    assert await store.read(MessageCount(Scope.of("nobody"))) == 0


async def test_threads_are_listed_by_their_newest_message(store: Store) -> None:
    (said,) = (await store.apply([adding(GENERAL, "x" * 500, at=minutes(5))])).results
    await conversation(store)
    await store.apply([adding(Scope.of("bob", thread="general"), "bob's", at=minutes(9))])
    first, second = await store.read(Threads(ANN))
    assert (first.id, first.messages, first.first_at, first.last_at) == ("general", 1, minutes(5), minutes(5))
    assert first.last_text == "x" * LAST_TEXT
    assert (second.id, second.messages, second.first_at, second.last_at) == (ANN.thread, 4, minutes(0), minutes(3))
    assert second.last_text == "which boat"
    await store.apply([adding(GENERAL, "short", replaces=said.message)])  # type: ignore[union-attr]
    assert [(each.messages, each.last_text) for each in await store.read(Threads(ANN, limit=1))] == [(1, "short")]
    assert await store.read(Threads(Scope.of("nobody"))) == []


async def test_threads_can_be_paged_also_when_their_times_are_equal(store: Store) -> None:
    names = ["a", "b", "ä", "c"]
    await store.apply([adding(Scope.of("ann", thread=name), "hi", at=minutes(0)) for name in names])
    every = [each.id for each in await store.read(Threads(ANN))]
    assert every == ["ä", "c", "b", "a"]
    paged: list[str] = []
    while len(page := await store.read(Threads(ANN, limit=1, before=paged[-1] if paged else None))) == 1:
        paged.append(page[0].id)
    assert paged == every
    with pytest.raises(NotFound, match="no messages in the thread"):
        await store.read(Threads(ANN, before="z"))


def _direction(number: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    vector = np.array([1, number], dtype=np.float32)
    scaled: np.ndarray[tuple[int], np.dtype[np.float32]] = vector / np.linalg.norm(vector)
    return scaled


def _vector(number: int) -> bytes:
    return _direction(number).astype(np.float16).tobytes()
