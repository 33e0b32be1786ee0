"""What the message before and the one after say. Answers follow questions.

In a memory of a few messages, everything is a neighbour of everything: there, neighbours count less, so that they do
not lift a message that does not match.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aforesaid.recall.candidates import Candidates

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers

_FEW_MESSAGES: Final = 10
"""With this many messages, neighbours count half."""


def before_keyword(candidates: Candidates) -> Numbers:
    """Return how well the words of the message before match."""
    return _telling(candidates) * candidates.keyword[candidates.before]


def before_dense(candidates: Candidates) -> Numbers:
    """Return how near in meaning the message before is."""
    return _telling(candidates) * candidates.dense[candidates.before]


def after_keyword(candidates: Candidates) -> Numbers:
    """Return how well the words of the message after match."""
    return _telling(candidates) * candidates.keyword[candidates.after]


def after_dense(candidates: Candidates) -> Numbers:
    """Return how near in meaning the message after is."""
    return _telling(candidates) * candidates.dense[candidates.after]


def together(candidates: Candidates) -> Numbers:
    """Return the share of the question's words that its neighbours have and it has not, weighted by rarity."""
    import numpy as np  # noqa: PLC0415

    gained = np.zeros(len(candidates.rows))
    for posting in candidates.postings:
        has = np.zeros(len(candidates.columns) + 1, dtype=bool)
        has[posting.rows] = True
        beside = has[candidates.before] | has[candidates.after]
        gained += posting.rarity * (beside & ~has[candidates.rows])
    return _telling(candidates) * gained / candidates.worth


def _telling(candidates: Candidates) -> float:
    """Return how much it tells to be a neighbour, 0 to 1."""
    return len(candidates.columns) / (len(candidates.columns) + _FEW_MESSAGES)
