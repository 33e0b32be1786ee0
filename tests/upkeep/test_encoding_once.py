"""No text is encoded twice: not for its vectors, its memories or its summaries, and not by two parts at once.

Only what was asked before it was stored is encoded once more: to be read, which takes longer than an answer may wait.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import apsw
import numpy as np
import pytest

import aforesaid
from aforesaid.domain.hit import BYTES, TOKENS
from aforesaid.models.embed import LocalEmbedder
from aforesaid.models.embed.token_vectors import DIMENSIONS, products
from aforesaid.store.vector_matrix import unpacked

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)
SAID = (
    "I moved to Berlin in March.",
    "My sister Clara works at a bakery near the station.",
    "We have two cats, Miso and Udon.",
    "Please call me in the evening, I am allergic to mornings.",
    "The gutter came down last night.",
    "I start my new job at the library on Monday.",
)


class Counting(LocalEmbedder):
    """The real embedder, which counts how often it encodes each text."""

    def __init__(self) -> None:
        super().__init__()
        self.encoded: Counter[str] = Counter()
        encode = self._encode

        def counting(texts: list[str], *, read: bool = False) -> object:
            self.encoded.update(texts)
            return encode(texts, read=read)

        self._encode = counting  # type: ignore[assignment,method-assign]

    async def close(self) -> None:
        """Stay, for the other tests."""


ENCODER = Counting()


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[aforesaid.Memory]:
    profile = {"extends": "archive", "tree_turns": 2, "extract": True}
    settings = {"background": False}
    async with aforesaid.connect(
        tmp_path / "memory.db", profile=profile, embedder=ENCODER, settings=settings
    ) as opened:
        ENCODER.encoded.clear()
        ENCODER.forget_all()
        for number, text in enumerate(SAID):
            at = NOON + timedelta(minutes=2 * number)
            await opened.user("ann").add("user", text, at=at)
            await opened.user("ann").add("assistant", f"Good to know, number {number}.", at=at + timedelta(minutes=1))
        yield opened


def twice() -> list[str]:
    return [text for text, times in ENCODER.encoded.items() if times > 1]


async def test_what_is_embedded_remembered_and_summarised_is_encoded_once(memory: aforesaid.Memory) -> None:
    report = await memory.upkeep()
    assert report.summarised
    assert report.remembered
    assert set(SAID) <= set(ENCODER.encoded)
    assert twice() == []


async def test_parts_of_upkeep_that_run_at_the_same_time_encode_nothing_twice(memory: aforesaid.Memory) -> None:
    parts = memory._services.upkeep.tasks
    await asyncio.gather(*(part.run() for part in parts))
    await memory.upkeep()
    assert set(SAID) <= set(ENCODER.encoded)
    assert twice() == []


async def test_what_was_asked_before_it_was_stored_is_embedded_once_and_read_once(memory: aforesaid.Memory) -> None:
    asked = "Where does my sister work these days?"
    await memory.user("ann").search(asked)
    assert ENCODER.encoded[asked] == 1
    await memory.user("ann").add("user", asked, at=NOON + timedelta(hours=1))
    await memory.upkeep()
    await memory.upkeep()
    assert ENCODER.encoded[asked] == 2


async def test_vectors_of_an_earlier_version_are_stored_anew_without_encoding(tmp_path: Path) -> None:
    path, profile, settings = tmp_path / "earlier.db", {"extract": False}, {"background": False}
    async with aforesaid.connect(path, profile=profile, embedder=ENCODER, settings=settings) as memory:
        for text in SAID:
            await memory.user("ann").add("user", text)
        await memory.upkeep()
        before = await memory.user("ann").search("Where does my sister work?")
    with closing(apsw.Connection(str(path))) as database:
        database.create_scalar_function("earlier", cast("Any", earlier), 1)
        database.execute("UPDATE vector SET value = earlier(value)")
        size = database.execute("SELECT sum(length(value)) FROM vector").get
        for name, earlier_name in (("cursor", "walk"), ("metadata", "mark"), ("tombstone", "forgotten")):
            database.execute(f"ALTER TABLE {name} RENAME TO {earlier_name}")
        database.execute("DROP INDEX tombstone_by_owner; CREATE INDEX forgotten_by_owner ON forgotten (owner, id)")
        for index in ("memory_of_request", "memory_of_matter", "memory_to_deliver", "memory_by_event"):
            database.execute(f"DROP INDEX {index}")
        for column in ("matter", "value"):
            database.execute(f"ALTER TABLE memory DROP COLUMN {column}")
        database.execute("DROP VIEW user_facts; DROP TABLE fact; CREATE VIEW user_facts AS SELECT * FROM facts")
        database.pragma("user_version", BEFORE)
    ENCODER.encoded.clear()
    async with aforesaid.connect(path, profile=profile, embedder=ENCODER, settings=settings) as memory:
        found = await memory.user("ann").search("Where does my sister work?")
        assert [hit.text for hit in found] == [hit.text for hit in before]
        await memory.upkeep()
        after = await memory.user("ann").search("Where does my sister work?")
        assert [hit.text for hit in after] == [hit.text for hit in before]
        assert [hit.score for hit in after] == pytest.approx([hit.score for hit in before], abs=0.01)
        assert (await memory.verify()).ok
    with closing(apsw.Connection(str(path))) as database:
        assert not set(SAID) & set(ENCODER.encoded)
        values = [value for (value,) in database.execute("SELECT value FROM vector")]
        assert len(values) == 2 * len(SAID)
        assert all(value.startswith((BYTES, TOKENS)) for value in values)
        assert sum(map(len, values)) < 0.55 * size


HINDI = ("मुझे पिज़्ज़ा बहुत पसंद है।", "मेरी बहन दिल्ली में रहती है।")


async def test_vectors_of_hindi_that_an_earlier_version_could_not_read_are_made_anew(tmp_path: Path) -> None:
    path, profile, settings = tmp_path / "earlier.db", {"extract": False}, {"background": False}
    async with aforesaid.connect(path, profile=profile, embedder=ENCODER, settings=settings) as memory:
        for text in (*SAID, *HINDI):
            await memory.user("ann").add("user", text)
        await memory.upkeep()
        before = await memory.user("ann").search("pizza", arms="dense")
    assert before[0].text == HINDI[0]
    with closing(apsw.Connection(str(path))) as database:
        of_hindi = "seq IN (SELECT seq FROM log WHERE text LIKE '%।')"
        other = f"(SELECT value FROM vector other WHERE other.embedder = vector.embedder AND NOT {of_hindi} LIMIT 1)"
        database.execute(f"UPDATE vector SET value = {other} WHERE {of_hindi}")
        database.pragma("user_version", BEFORE_HINDI)
    ENCODER.encoded.clear()
    ENCODER.forget_all()
    async with aforesaid.connect(path, profile=profile, embedder=ENCODER, settings=settings) as memory:
        await memory.upkeep()
        assert set(ENCODER.encoded) & {*SAID, *HINDI} == set(HINDI)
        after = await memory.user("ann").search("pizza", arms="dense")
        assert [(hit.text, hit.score) for hit in after] == [(hit.text, hit.score) for hit in before]


BEFORE_HINDI = 25
BEFORE = 20
"""The schema of the last version that stored half-precision numbers, and a byte for each number of a token."""


def earlier(value: bytes) -> bytes:
    """Return a stored vector as that version had it."""
    if value.startswith(BYTES):
        return unpacked([value]).astype(np.float16).tobytes()
    made, _ = products([value], np.eye(DIMENSIONS, dtype=np.float32))
    return (np.rint(made * 100) + 60).astype(np.uint8).tobytes()
