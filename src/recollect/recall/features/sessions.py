"""What the whole session says. A word that is missing here may stand a few lines further up."""

from __future__ import annotations

from recollect.recall.candidates import Candidates


def session_keyword(candidates: Candidates) -> list[float]:
    """Which part of what the question's words are worth its session has."""
    worth = {
        place: candidates.worth({word for turn in turns for word in candidates.matched.get(turn.message.seq, ())})
        for place, turns in candidates.sessions().items()
    }
    return [worth[turn.message.thread, turn.message.session] for turn in candidates.turns]


def session_dense(candidates: Candidates) -> list[float]:
    """How near the nearest message of its session is."""
    nearest = {
        place: max(candidates.dense.get(turn.message.seq, 0.0) for turn in turns)
        for place, turns in candidates.sessions().items()
    }
    return [nearest[turn.message.thread, turn.message.session] for turn in candidates.turns]
