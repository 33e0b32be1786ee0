"""Selects the memories that a question is about."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from aforesaid.domain.caches import TwoGenerationCache
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import MOST_IMPORTANCE, MemoryRecord
from aforesaid.text.languages import index_language, query_words, stop_words, terms

_LEAST: Final = 0.2
"""Minimum relevance of a found memory. A match of the user's own name alone, which most memories contain, is below."""
_HITS: Final = 20
"""Memories extracted from one of this many best hits count as found."""

TermCache = TwoGenerationCache[str, frozenset[str]]
"""The index terms of memories' texts, by text."""


def found_memories(
    memories: Sequence[MemoryRecord], question: str, hits: Sequence[Hit], cache: TermCache
) -> list[tuple[MemoryRecord, float]]:
    """Return the memories that a question is about, each with its relevance from 0 to 1, best first.

    A memory is found by the words that it shares with the question, weighted by rarity, or by a search hit that it was
    extracted from. Equally relevant memories are ordered by importance.
    """
    if not memories:
        return []
    of_hits = {hit.message.seq: 1 - place / _HITS for place, hit in enumerate(hits[:_HITS]) if hit.message is not None}
    by_words = _coverage(memories, question, cache)
    found = []
    for memory, coverage in zip(memories, by_words, strict=True):
        relevance = max([coverage, *(of_hits.get(seq, 0.0) for seq in memory.sources)])
        if relevance >= _LEAST:
            found.append((memory, relevance))
    # The sort is stable, and memories are passed with the most important first.
    found.sort(key=lambda each: -each[1] * (1 + each[0].importance / MOST_IMPORTANCE))
    return found


def _coverage(memories: Sequence[MemoryRecord], question: str, cache: TermCache) -> list[float]:
    """Return the weighted share of the question's words that each memory contains."""
    asked = query_words(question)
    # A question that consists of stop words alone matches nothing.
    ignored = stop_words(index_language([each.word for each in asked]))
    words = [frozenset(each.terms) for each in asked if each.word not in ignored]
    said = [_terms(memory.text, cache) for memory in memories]
    covered, worth = [0.0] * len(memories), 0.0
    for word in words:
        having = [place for place, each in enumerate(said) if not word.isdisjoint(each)]
        weight = math.log1p(len(memories) / (len(having) + 1))
        worth += weight
        for place in having:
            covered[place] += weight
    return [each / worth for each in covered] if worth else covered


def _terms(text: str, cache: TermCache) -> frozenset[str]:
    known = cache.get(text)
    if known is None:
        known = frozenset(terms(text))
        cache.put(text, known)
    return known
