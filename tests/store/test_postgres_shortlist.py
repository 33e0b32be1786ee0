"""Search by meaning on PostgreSQL among more vectors than the database compares one by one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from aforesaid.domain.checks import Within
from aforesaid.domain.hit import Similar, VectorRow
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import Stored
from aforesaid.domain.scope import Scope
from aforesaid.store import vector_matrix
from aforesaid.store.messages import AddMessage
from aforesaid.store.operations import Question
from aforesaid.store.postgres import PostgresStore, search
from aforesaid.store.searches import AddVectors, MatchText, SearchVector
from making import adding, minutes
from pg import clean_database

ANN: Final = Scope.of("ann", thread="general")
BOB: Final = Scope.of("bob", thread="general")
SIZE: Final = 456  # not a multiple of 64: the last number is padded
CHANCE: Final = np.random.default_rng(3)


@pytest.fixture
async def store() -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(clean_database())
    yield opened
    await opened.close()


def vectors(count: int) -> NDArray[np.float32]:
    centres = CHANCE.standard_normal((8, SIZE))
    rows = centres[CHANCE.integers(0, 8, count)] + CHANCE.standard_normal((count, SIZE)) / 2
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


async def stored(store: PostgresStore, steps: Sequence[AddMessage]) -> list[Message]:
    return [result.message for result in (await store.apply(steps)).results if isinstance(result, Stored)]


async def fill(store: PostgresStore, scope: Scope, values: NDArray[np.float32], start: int = 0) -> list[Message]:
    steps = [adding(scope, f"{scope.user} {start + place}", at=minutes(start + place)) for place in range(len(values))]
    messages = await stored(store, steps)
    await embed(store, messages, values)
    return messages


async def embed(store: PostgresStore, messages: Sequence[Message], values: NDArray[np.float32]) -> None:
    halves = values.astype(np.float16)
    rows = [VectorRow(each.seq, each.text, halves[at].tobytes(), each.space) for at, each in enumerate(messages)]
    await store.apply([AddVectors("m", tuple(rows), rows[-1].seq)])


async def ask(store: PostgresStore, vector: NDArray[np.float32], within: Within, also: Sequence[int] = ()) -> Similar:
    found = await store.read(SearchVector(ANN, "m", vector, within=within, limit=10, also=also))
    assert found is not None
    return found


@pytest.mark.parametrize("within", ["user", "thread"])
async def test_a_shortlist_has_what_an_exact_comparison_finds(
    store: PostgresStore, within: Within, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = vectors(420)
    await fill(store, ANN, values[:200])
    await fill(store, BOB, values[200:400], 200)
    asked = values[400:]
    exact = [await ask(store, vector, within, [3]) for vector in asked]
    monkeypatch.setattr(search, "EXACT", 100)
    monkeypatch.setattr(vector_matrix, "SHORTLIST", 60)
    monkeypatch.setattr(search, "_PAGE_OF_SIGNS", 70)
    found = 0
    for vector, whole in zip(asked, exact, strict=True):
        similar = await ask(store, vector, within, [3])
        assert len(similar.seqs) < len(whole.seqs), "nothing was left out"
        known = dict(zip(whole.seqs.tolist(), whole.scores.tolist(), strict=True))
        named = dict(zip(similar.seqs.tolist(), similar.scores.tolist(), strict=True))
        assert named == pytest.approx({seq: known[seq] for seq in named}, abs=1e-6)
        assert 3 in named
        assert list(similar.scores[:10]) == sorted(similar.scores[:10], reverse=True)
        assert (similar.mean, similar.deviation) == pytest.approx((whole.mean, whole.deviation), abs=1e-5)
        found += len(set(similar.seqs[:10].tolist()) & set(whole.seqs[:10].tolist()))
    assert found >= 0.95 * 10 * len(asked)


async def test_signs_follow_new_replaced_and_erased_messages(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = vectors(60)
    messages = await fill(store, ANN, values[:50])
    monkeypatch.setattr(search, "EXACT", 10)
    assert (await ask(store, values[7], "user")).seqs[0] == messages[7].seq
    # New ones.
    messages += await fill(store, ANN, values[50:], 50)
    assert (await ask(store, values[55], "user")).seqs[0] == messages[55].seq
    # Another user's are not found.
    await fill(store, BOB, values[:5], 60)
    assert (await ask(store, values[2], "user")).seqs[0] == messages[2].seq
    # A new version takes the place of the old one.
    newer = (await store.apply([adding(ANN, "another text", at=minutes(7), replaces=messages[7])])).message
    await embed(store, [newer], values[30:31])
    similar = await ask(store, values[30], "user", [messages[7].seq])
    assert {messages[30].seq, newer.seq} == set(similar.seqs[:2].tolist())
    assert messages[7].seq not in similar.seqs
    # Erased ones are gone.
    await store.erase(ANN, [messages[30].seq])
    similar = await ask(store, values[30], "user", [messages[30].seq])
    assert similar.seqs[0] == newer.seq
    assert messages[30].seq not in similar.seqs


async def test_an_embedder_that_has_seen_nothing_finds_nothing_among_many(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = await stored(store, [adding(ANN, f"text {place}") for place in range(5)])
    monkeypatch.setattr(search, "EXACT", 2)
    asked = SearchVector(ANN, "m", vectors(1)[0])
    assert await store.read(asked) is None
    rows = tuple(VectorRow(each.seq, each.text, b"", each.space) for each in messages)
    await store.apply([AddVectors("m", rows, rows[-1].seq)])
    assert await store.read(asked) is None


@pytest.mark.parametrize("kind", [search._Kept, search._KeptVectors])
async def test_a_search_that_is_cancelled_leaves_nothing_half_read(
    store: PostgresStore, kind: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = vectors(50)
    await fill(store, ANN, values)
    monkeypatch.setattr(search, "EXACT", 10)
    monkeypatch.setattr(search, "_IN_A_THREAD", 1)
    begun, extend = threading.Event(), kind.extend

    def slowly(kept: object, *rows: object) -> None:
        begun.set()
        time.sleep(0.2)
        extend(kept, *rows)

    asked: dict[type, Question[Any]] = {
        search._Kept: MatchText(ANN, "ann"),
        search._KeptVectors: SearchVector(ANN, "m", values[7], limit=10),
    }
    with monkeypatch.context() as slow:
        slow.setattr(kind, "extend", slowly)
        cancelled = asyncio.create_task(store.read(asked[kind]))
        await asyncio.to_thread(begun.wait)
        cancelled.cancel()
        matches, similar = await asyncio.gather(*[store.read(each) for each in asked.values()])
        with pytest.raises(asyncio.CancelledError):
            await cancelled
    assert matches.columns.seq.tolist() == list(range(1, 51))
    assert sorted(similar.seqs.tolist()) == list(range(1, 51))
