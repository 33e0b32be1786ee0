"""Features of the whole session: a word that a message lacks may be a few messages before it.

They weigh less if there are few sessions, and nothing with a single one, where one match would lift every message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aforesaid.recall.candidates import Candidates

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers

# Sessions are long, and repeat the words of their topic: the usual BM25 parameters for documents.
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
    return _weight(candidates) * (covered / candidates.worth)[sessions[candidates.rows]]


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
    return _weight(candidates) * (scores / (most or 1.0))[sessions[candidates.rows]]


def session_dense(candidates: Candidates) -> Numbers:
    """Return the highest vector similarity among the messages of its session."""
    import numpy as np  # noqa: PLC0415

    sessions, known = candidates.columns.session, np.flatnonzero(candidates.dense[:-1])
    nearest = np.zeros(len(candidates.columns.sessions))
    np.maximum.at(nearest, sessions[known], candidates.dense[known])
    return _weight(candidates) * nearest[sessions[candidates.rows]]


def _weight(candidates: Candidates) -> float:
    """Return the weight of session features: 0 for one session, towards 1 for many."""
    return 1 - 1 / max(len(candidates.columns.sessions), 1)
