"""The vectors of what was embedded last are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from aforesaid.errors import ModelError
from aforesaid.models.embed import CachingEmbedder, DeterministicEmbedder, Vectors


class Watched:
    """An embedder that writes down what it was asked for, takes its time, and may fail."""

    name = "watched"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.fails = False
        self.closed = False
        self._inner = DeterministicEmbedder()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked.append(list(texts))
        await asyncio.sleep(0.01)
        if self.fails:
            raise ModelError("down")
        return await self._inner.embed(texts)

    async def close(self) -> None:
        self.closed = True


async def test_a_text_is_embedded_once_alone_or_among_others() -> None:
    inner = Watched()
    caching = CachingEmbedder(inner)
    alone = await caching.embed(["tea"])
    again = await caching.embed(["tea"])
    among = await caching.embed(["milk", "tea", "milk"])
    assert inner.asked == [["tea"], ["milk"]]
    expected = await DeterministicEmbedder().embed(["milk", "tea", "milk"])
    assert np.array_equal(among, expected)
    assert np.array_equal(alone, expected[1:2])
    assert np.array_equal(again, alone)
    assert (await caching.embed([])).shape[0] == 0
    await caching.close()
    assert inner.closed
    assert caching.name == "watched"


async def test_whoever_asks_for_what_is_coming_waits_for_it() -> None:
    inner = Watched()
    caching = CachingEmbedder(inner)
    caching.expect("tea")
    first = asyncio.ensure_future(caching.embed(["tea"]))
    await asyncio.sleep(0)
    first.cancel()
    await caching.embed(["tea"])
    caching.expect("tea")
    assert inner.asked == [["tea"]]


async def test_a_failure_is_not_kept() -> None:
    inner = Watched()
    caching = CachingEmbedder(inner)
    inner.fails = True
    caching.expect("milk")  # nobody asks for it, and nobody hears of it
    with pytest.raises(ModelError):
        await caching.embed(["tea"])
    inner.fails = False
    assert len(await caching.embed(["tea"])) == 1
    assert inner.asked == [["milk"], ["tea"], ["tea"]]


async def test_the_oldest_texts_make_room() -> None:
    inner = Watched()
    size = (await DeterministicEmbedder().embed(["any"])).nbytes
    caching = CachingEmbedder(inner, most_bytes=256 * size)
    await caching.embed(["first"])
    await asyncio.gather(*(caching.embed([f"text {number}"]) for number in range(300)))
    asked = len(inner.asked)
    await caching.embed(["text 299"])
    assert len(inner.asked) == asked
    await caching.embed(["first"])
    assert inner.asked[-1] == ["first"]


async def test_two_batches_at_the_same_time_embed_each_text_once() -> None:
    inner = Watched()
    caching = CachingEmbedder(inner)
    texts = ["tea", "milk", "soup", "bread"]
    caching.expect("bread")
    first, second, third = await asyncio.gather(
        caching.embed(texts[:3]), caching.embed(texts[1:]), caching.embed([*texts, "tea"])
    )
    assert sorted(text for asked in inner.asked for text in asked) == sorted(texts)
    expected = await DeterministicEmbedder().embed([*texts, "tea"])
    assert np.array_equal(first, expected[:3])
    assert np.array_equal(second, expected[1:4])
    assert np.array_equal(third, expected)
    assert np.array_equal(await caching.embed(texts), expected[:4])
    assert len(inner.asked) == 2


async def test_a_single_text_does_not_wait_for_a_batch() -> None:
    inner = Watched()
    caching = CachingEmbedder(inner)
    batch = asyncio.ensure_future(caching.embed(["tea", "milk"]))
    await asyncio.sleep(0)
    await caching.embed(["tea"])
    await batch
    assert inner.asked == [["tea", "milk"], ["tea"]]


async def test_a_cancelled_caller_leaves_a_shared_batch_to_the_others_and_cancels_its_own() -> None:
    inner = Watched()
    caching = CachingEmbedder(inner)
    one, other = (asyncio.ensure_future(caching.embed(["tea", "milk"])) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    assert len(await other) == 2
    alone = asyncio.ensure_future(caching.embed(["soup", "bread"]))
    await asyncio.sleep(0)
    alone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await alone
    await caching.embed(["soup", "bread"])
    assert inner.asked == [["tea", "milk"], ["soup", "bread"], ["soup", "bread"]]


async def test_a_batch_that_fails_is_not_kept_and_nothing_stays_behind() -> None:
    inner = Watched()
    caching = CachingEmbedder(inner)
    inner.fails = True
    results = await asyncio.gather(*(caching.embed(["tea", "milk"]) for _ in range(2)), return_exceptions=True)
    assert [type(result) for result in results] == [ModelError] * 2
    inner.fails = False
    assert len(await caching.embed(["tea", "milk"])) == 2
    caching.forget_all()
    assert len(await caching.embed(["tea", "milk"])) == 2
    assert inner.asked == [["tea", "milk"]] * 3


async def test_what_is_being_embedded_when_somebody_is_erased_is_not_kept() -> None:
    inner = Watched()
    caching = CachingEmbedder(inner)
    coming = [asyncio.ensure_future(caching.embed(texts)) for texts in (["tea"], ["milk", "soup"])]
    await asyncio.sleep(0)
    caching.forget_all()
    await asyncio.gather(*coming)
    await caching.embed(["tea", "milk", "soup"])
    assert inner.asked == [["tea"], ["milk", "soup"], ["tea", "milk", "soup"]]


def test_each_event_loop_waits_for_its_own() -> None:
    caching = CachingEmbedder(Watched())
    for _ in range(2):
        assert len(asyncio.run(caching.embed(["tea"]))) == 1
