"""Figures of a ranking: pure functions of what was found, best first, and of what should have been found.

A ranking holds each item once. What should have been found is never empty: such questions are not asked.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from math import ceil, log2, sqrt
from statistics import fmean
from typing import Final

_Z_95: Final = 1.959964
"""The standard deviations around the mean that contain 95% of a normal distribution."""


def recall_at(k: int, ranking: Sequence[str], relevant: Collection[str]) -> float:
    """Return the share of the relevant items that are among the first `k`."""
    return len(set(ranking[:k]) & set(relevant)) / len(set(relevant))


def any_at(k: int, ranking: Sequence[str], relevant: Collection[str]) -> float:
    """Return 1 when a relevant item is among the first `k`, otherwise 0."""
    return float(not set(relevant).isdisjoint(ranking[:k]))


def all_at(k: int, ranking: Sequence[str], relevant: Collection[str]) -> float:
    """Return 1 when every relevant item is among the first `k`, otherwise 0."""
    return float(set(relevant) <= set(ranking[:k]))


def reciprocal_rank(ranking: Sequence[str], relevant: Collection[str]) -> float:
    """Return 1 / the rank of the first relevant item, 0 when none was found."""
    return next((1 / rank for rank, item in enumerate(ranking, 1) if item in relevant), 0.0)


def ndcg_at(k: int, ranking: Sequence[str], relevant: Collection[str]) -> float:
    """Return the normalised discounted cumulative gain of the first `k`, with binary relevance."""
    gain = sum(1 / log2(rank + 1) for rank, item in enumerate(ranking[:k], 1) if item in relevant)
    best = sum(1 / log2(rank + 1) for rank in range(1, min(k, len(set(relevant))) + 1))
    return min(1.0, gain / best)


def by_session(ranking: Iterable[str], session_of: Mapping[str, str]) -> list[str]:
    """Rank sessions by their best-ranked turn."""
    return list(dict.fromkeys(session_of[turn] for turn in ranking))


def percentile(share: float, values: Iterable[float]) -> float | None:
    """Return a percentile by the nearest-rank method. None if there are no values."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(ceil(share * len(ordered)), 1) - 1]


def separation(higher: Collection[float], lower: Collection[float]) -> float | None:
    """Return the probability that a value of `higher` is above one of `lower`, ties counted as half.

    This is the area under the ROC curve. None if one side is empty.
    """
    if not higher or not lower:
        return None
    ordered = sorted(lower)
    wins = sum(bisect_left(ordered, value) + bisect_right(ordered, value) for value in higher)
    return wins / (2 * len(higher) * len(ordered))


def wilson(successes: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95% confidence interval of a share. Nothing is known if there are no trials: 0 to 1."""
    if not total:
        return 0.0, 1.0
    share, z = successes / total, _Z_95
    middle = share + z * z / (2 * total)
    half = z * sqrt(share * (1 - share) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


@dataclass(frozen=True, slots=True)
class Score:
    """The figures of one question, or their averages over several, between 0 and 1."""

    recall_at_1: float
    recall_at_3: float
    recall_at_5: float
    recall_at_10: float
    recall_at_20: float
    any_at_5: float
    all_at_5: float
    mrr: float
    ndcg_at_10: float


def score(ranking: Sequence[str], relevant: Collection[str]) -> Score:
    """Return all figures of one ranking."""
    return Score(
        recall_at_1=recall_at(1, ranking, relevant),
        recall_at_3=recall_at(3, ranking, relevant),
        recall_at_5=recall_at(5, ranking, relevant),
        recall_at_10=recall_at(10, ranking, relevant),
        recall_at_20=recall_at(20, ranking, relevant),
        any_at_5=any_at(5, ranking, relevant),
        all_at_5=all_at(5, ranking, relevant),
        mrr=reciprocal_rank(ranking, relevant),
        ndcg_at_10=ndcg_at(10, ranking, relevant),
    )


def average(scores: Sequence[Score]) -> Score | None:
    """Return the unweighted average over questions. None if there are none."""
    if not scores:
        return None
    return Score(*(fmean(column) for column in zip(*map(astuple, scores), strict=True)))
