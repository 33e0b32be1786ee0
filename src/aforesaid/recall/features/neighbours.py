"""Features of the messages before and after a candidate: answers follow questions.

They weigh less if there are few messages, where nearly every message is a neighbour of a match.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aforesaid.recall.candidates import Candidates

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers

_FEW_MESSAGES: Final = 10
"""With this many messages, neighbours have half their weight."""


def before_keyword(candidates: Candidates) -> Numbers:
    """Return the keyword score of the message before."""
    return _weight(candidates) * candidates.keyword[candidates.before]


def before_dense(candidates: Candidates) -> Numbers:
    """Return the vector similarity of the message before."""
    return _weight(candidates) * candidates.dense[candidates.before]


def after_keyword(candidates: Candidates) -> Numbers:
    """Return the keyword score of the message after."""
    return _weight(candidates) * candidates.keyword[candidates.after]


def after_dense(candidates: Candidates) -> Numbers:
    """Return the vector similarity of the message after."""
    return _weight(candidates) * candidates.dense[candidates.after]


def together(candidates: Candidates) -> Numbers:
    """Return the weighted share of query terms that only the neighbours contain."""
    import numpy as np  # noqa: PLC0415

    gained = np.zeros(len(candidates.rows))
    for posting in candidates.postings:
        has = np.zeros(len(candidates.columns) + 1, dtype=bool)
        has[posting.rows] = True
        beside = has[candidates.before] | has[candidates.after]
        gained += posting.rarity * (beside & ~has[candidates.rows])
    return _weight(candidates) * gained / candidates.worth


def _weight(candidates: Candidates) -> float:
    """Return the weight of neighbours in this memory, 0 to 1."""
    return len(candidates.columns) / (len(candidates.columns) + _FEW_MESSAGES)
