"""What the arms say of the message before and the one after. Answers follow questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aforesaid.recall.candidates import Candidates

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers


def before_keyword(candidates: Candidates) -> Numbers:
    """How well the words of the message before it match."""
    return candidates.keyword[candidates.before]


def before_dense(candidates: Candidates) -> Numbers:
    """How near the meaning of the message before it is."""
    return candidates.dense[candidates.before]


def after_keyword(candidates: Candidates) -> Numbers:
    """How well the words of the message after it match."""
    return candidates.keyword[candidates.after]


def after_dense(candidates: Candidates) -> Numbers:
    """How near the meaning of the message after it is."""
    return candidates.dense[candidates.after]


def together(candidates: Candidates) -> Numbers:
    """Which part of the question's worth it has together with its neighbours, beyond what it has alone."""
    import numpy as np  # noqa: PLC0415

    gained = np.zeros(len(candidates.rows))
    for posting in candidates.postings:
        has = np.zeros(len(candidates.columns) + 1, dtype=bool)
        has[posting.rows] = True
        beside = has[candidates.before] | has[candidates.after]
        gained += posting.rarity * (beside & ~has[candidates.rows])
    return gained / candidates.worth
