"""What the two arms say of a message itself."""

from __future__ import annotations

from recollect.recall.candidates import Candidates


def keyword(candidates: Candidates) -> list[float]:
    """How well its words match."""
    return [candidates.keyword.get(turn.message.seq, 0.0) for turn in candidates.turns]


def coverage(candidates: Candidates) -> list[float]:
    """Which part of what the question's words are worth it has, however long it is."""
    return [candidates.worth(candidates.matched.get(turn.message.seq, ())) for turn in candidates.turns]


def dense(candidates: Candidates) -> list[float]:
    """How near its meaning is."""
    return [candidates.dense.get(turn.message.seq, 0.0) for turn in candidates.turns]
