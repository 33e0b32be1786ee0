"""Random searches over the same random conversations have the same answers on PostgreSQL and on SQLite."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aforesaid.domain.checks import Within
from aforesaid.domain.hit import VectorRow
from aforesaid.domain.scope import Scope
from aforesaid.store import Store, open_store
from aforesaid.store.searches import AddVectors, SearchText, SearchVector
from making import adding, minutes
from pg import clean_database

WORDS = [
    *("tea", "teas", "coffee", "running", "runs", "ran", "Berlin", "berlin", "Café", "cafe", "柏林", "東京", "москва"),
    *("the", "and", "house", "houses", "2026", "telephone", "mother's", "naïve", "walking"),
]
SCOPES = [Scope.of(user, thread=thread) for user in ("ann", "bob") for thread in (None, "general")]


async def talk(store: Store, source: random.Random) -> None:
    for number in range(150):
        scope = source.choice(SCOPES)
        text = " ".join(source.choices(WORDS, k=source.randint(1, 12)))
        role = source.choice(["user", "assistant"])
        message = (await store.apply([adding(scope, text, role, at=minutes(source.randint(0, 4000) + number))])).message
        vector = np.array([source.gauss(0, 1) for _ in range(16)])
        value = (vector / np.linalg.norm(vector)).astype(np.float16).tobytes()
        await store.apply([AddVectors("m", (VectorRow(message.seq, text, value, message.space),), message.seq)])


async def answers(store: Store, source: random.Random) -> tuple[list[Any], list[float]]:
    found: list[Any] = []
    numbers: list[float] = []
    for _ in range(120):
        scope, within = source.choice(SCOPES), source.choice(["user", "thread"])
        place: Within = "user" if within == "user" else "thread"
        words = " ".join(source.choices(WORDS, k=source.randint(1, 6)))
        hits = await store.read(SearchText(scope, words, within=place, limit=source.randint(1, 20)))
        found.append([(hit.message.seq if hit.message else 0, hit.terms) for hit in hits])
        numbers += [hit.score for hit in hits]
        vector = np.array([source.gauss(0, 1) for _ in range(16)], dtype=np.float32)
        vector /= np.linalg.norm(vector)
        similar = await store.read(SearchVector(scope, "m", vector, within=place, limit=5))
        assert similar is not None
        found.append(similar.seqs.tolist())
        numbers += [*similar.scores.tolist(), similar.mean, similar.deviation]
    return found, numbers


@pytest.mark.req("D7")
async def test_random_searches_have_the_same_answers(tmp_path: Path) -> None:
    stores = [await open_store(tmp_path / "memory.db"), await open_store(clean_database())]
    told = []
    for store in stores:
        await talk(store, random.Random(7))
        told.append(await answers(store, random.Random(8)))
        await store.close()
    (found, numbers), (others, other_numbers) = told
    assert found == others
    assert numbers == pytest.approx(other_numbers, abs=1e-5)
