"""Whoever is erased is erased from the caches of the process as well."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

import aforesaid

WORD = "Quillonbrax"


def containing(word: str) -> list[str]:
    """Return the texts of caches that have a word. Caches are dictionaries with texts, or tuples with one, as keys."""

    def texts(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, tuple):
            for part in value:
                yield from texts(part)

    gc.collect()
    caches = [each for each in gc.get_objects() if isinstance(each, dict)]
    return [text for cache in caches for key in list(cache) for text in texts(key) if word.lower() in text.lower()]


@pytest.mark.parametrize("embedder", ["local", "process", "deterministic"])
async def test_no_cache_holds_a_word_of_somebody_who_was_purged(tmp_path: Path, embedder: str) -> None:
    settings = {"background": False}
    async with aforesaid.connect(tmp_path / "memory.db", embedder=embedder, settings=settings) as memory:
        ann = memory.user("ann")
        await ann.add("user", f"My cat is called {WORD}. I live in Bern, and I am allergic to nuts.")
        await ann.remember(f"has a cat called {WORD}")
        await memory.upkeep()
        await ann.search(f"Who is {WORD}?")
        await ann.context(f"What does {WORD} eat?")
        assert containing(WORD), "otherwise this test shows nothing"
        await memory.purge("ann")
        await memory.user("bob").search("anything")  # after what the encoder had to do before
        assert containing(WORD) == []
