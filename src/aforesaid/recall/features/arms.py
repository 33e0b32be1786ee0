"""How well the message itself matches, by words and by meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aforesaid.recall.candidates import Candidates

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers


def keyword(candidates: Candidates) -> Numbers:
    """Return its BM25 score as a share of a perfect match."""
    return candidates.keyword[candidates.rows]


def coverage(candidates: Candidates) -> Numbers:
    """Return the weighted share of query terms each candidate contains, whatever its length."""
    return candidates.coverage()[candidates.rows]


def dense(candidates: Candidates) -> Numbers:
    """Return how near its meaning is, in standard deviations above the background."""
    return candidates.dense[candidates.rows]


def ranker(candidates: Candidates) -> Numbers:
    """Return the ranker's score; zero where it does not take part."""
    import numpy as np  # noqa: PLC0415

    return np.zeros(len(candidates.rows)) if candidates.ranker is None else candidates.ranker
