"""LexRank: a sentence is central if it shares words with other central sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log
from typing import Final

_FOLLOWING: Final = 0.85
_STEPS: Final = 30


def centrality(terms: Sequence[Mapping[str, float]]) -> list[float]:
    """Return the centrality of each sentence; the most central one has 1.0.

    The similarity of two sentences is the cosine of their weighted words. The matrix of all pairs is not computed: it
    is the product of the word matrix and its transpose, so each step multiplies by both. Time and memory grow linearly
    with the length of the conversation.
    """
    import numpy as np  # noqa: PLC0415 - loaded when there is something to summarise

    count = len(terms)
    if not any(terms):
        return [1.0] * count
    frequency = Counter(term for words in terms for term in words)
    numbers = {term: number for number, term in enumerate(frequency)}
    rows = np.fromiter((row for row, words in enumerate(terms) for _ in words), dtype=np.intp)
    columns = np.fromiter((numbers[term] for words in terms for term in words), dtype=np.intp)
    rarity = np.array([log(1 + count / times) for times in frequency.values()])
    values = rarity[columns]
    lengths = np.sqrt(np.bincount(rows, values**2, count))
    values /= lengths[rows]
    own = (lengths > 0).astype(float)

    def among(vector: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        by_term = np.bincount(columns, values * vector[rows], len(numbers))
        # Without a sentence's similarity to itself.
        return np.maximum(np.bincount(rows, values * by_term[columns], count) - own * vector, 0.0)

    degrees = among(np.ones(count))
    degrees[degrees <= 0] = 1.0
    rank = np.full(count, 1 / count)
    for _ in range(_STEPS):
        rank = (1 - _FOLLOWING) / count + _FOLLOWING * among(rank / degrees)
    return [float(value) for value in rank / rank.max()]
