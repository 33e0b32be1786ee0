"""No text is encoded twice: not for its vectors, its memories or its summaries, and not by two parts at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import aforesaid
from aforesaid.models.embed import LocalEmbedder

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

        def counting(texts: list[str]) -> object:
            self.encoded.update(texts)
            return encode(texts)

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


async def test_what_was_asked_before_it_was_stored_is_not_encoded_again(memory: aforesaid.Memory) -> None:
    asked = "Where does my sister work these days?"
    await memory.user("ann").search(asked)
    await memory.user("ann").add("user", asked, at=NOON + timedelta(hours=1))
    await memory.upkeep()
    assert ENCODER.encoded[asked] == 1
