"""Figures of a ranking: pure functions of what was found, best first, and of what should have been found.

A ranking holds each item once. What should have been found is never empty: such questions are not asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from math import ceil, log2
from statistics import fmean


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
