"""What the whole session says. A word that is missing in a message may be a few lines further up.

Where there are few sessions, these features count less: with one session alone they tell nothing, and would lift all of
its messages because of one that matches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aforesaid.recall.candidates import Candidates

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers

# A session is long, and says a word often when it is about it: repetitions and length count as they do for documents.
_SATURATION: Final = 1.2
_LENGTH_WEIGHT: Final = 0.75


def session_coverage(candidates: Candidates) -> Numbers:
    """Return the weighted share of query terms that each candidate's session contains."""
    import numpy as np  # noqa: PLC0415

    sessions = candidates.columns.session
    covered = np.zeros(len(candidates.columns.sessions))
    for posting in candidates.postings:
        here = np.zeros(len(covered), dtype=bool)
        here[sessions[posting.rows]] = True
        covered += posting.rarity * here
    return _telling(candidates) * (covered / candidates.worth)[sessions[candidates.rows]]


def session_keyword(candidates: Candidates) -> Numbers:
    """Return the BM25 score of its session as a share of a perfect match."""
    import numpy as np  # noqa: PLC0415

    sessions, count = candidates.columns.session, len(candidates.columns.sessions)
    lengths = np.bincount(sessions, weights=candidates.columns.length, minlength=count)
    scale = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * lengths / max(float(lengths.mean()), 1.0))
    scores, most = np.zeros(count), 0.0
    for posting in candidates.postings:
        said = np.bincount(sessions[posting.rows], weights=posting.counts, minlength=count)
        having = np.count_nonzero(said)
        rarity = np.log1p((count - having + 0.5) / (having + 0.5))
        scores += rarity * said * (_SATURATION + 1) / (said + scale)
        most += rarity * (_SATURATION + 1)
    return _telling(candidates) * (scores / (most or 1.0))[sessions[candidates.rows]]


def session_dense(candidates: Candidates) -> Numbers:
    """Return how near in meaning the nearest message of its session is."""
    import numpy as np  # noqa: PLC0415

    sessions, known = candidates.columns.session, np.flatnonzero(candidates.dense[:-1])
    nearest = np.zeros(len(candidates.columns.sessions))
    np.maximum.at(nearest, sessions[known], candidates.dense[known])
    return _telling(candidates) * nearest[sessions[candidates.rows]]


def _telling(candidates: Candidates) -> float:
    """Return how much it tells that something is in this session and not in another: 0 for one session, up to 1."""
    return 1 - 1 / max(len(candidates.columns.sessions), 1)
