"""ROUGE: the overlap of a summary with a reference, in words, word pairs and longest common subsequence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from aforesaid.text.languages import terms


class Rouge(NamedTuple):
    """The harmonic means of precision and recall, between 0 and 1."""

    one: float
    two: float
    longest: float


def rouge(summary: str, reference: str) -> Rouge:
    """Compare a summary with a reference, by the stems of their words."""
    made, wanted = terms(summary), terms(reference)
    pairs_made, pairs_wanted = list(pairwise(made)), list(pairwise(wanted))
    return Rouge(
        _mean(_shared(made, wanted), len(made), len(wanted)),
        _mean(_shared(pairs_made, pairs_wanted), len(pairs_made), len(pairs_wanted)),
        _mean(longest_common_subsequence(made, wanted), len(made), len(wanted)),
    )


def longest_common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of two lists of words."""
    # Bit-parallel algorithm: one bit per word of the other list, 1 while that word is unused.
    places: dict[str, int] = {}
    for place, word in enumerate(other):
        places[word] = places.get(word, 0) | (1 << place)
    everything = (1 << len(other)) - 1
    unused = everything
    for word in one:
        usable = unused & places.get(word, 0)
        unused = ((unused + usable) | (unused - usable)) & everything
    return len(other) - unused.bit_count()


def _shared(one: Sequence[object], other: Sequence[object]) -> int:
    return (Counter(one) & Counter(other)).total()


def _mean(shared: int, made: int, wanted: int) -> float:
    return 2 * shared / (made + wanted) if made + wanted else 0.0
