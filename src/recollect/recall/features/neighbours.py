"""What the arms say of the message before and the one after. Answers follow questions."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.recall.candidates import Candidates


def before_keyword(candidates: Candidates) -> list[float]:
    """How well the words of the message before it match."""
    return [_of(candidates.keyword, turn.before) for turn in candidates.turns]


def before_dense(candidates: Candidates) -> list[float]:
    """How near the meaning of the message before it is."""
    return [_of(candidates.dense, turn.before) for turn in candidates.turns]


def after_keyword(candidates: Candidates) -> list[float]:
    """How well the words of the message after it match."""
    return [_of(candidates.keyword, turn.after) for turn in candidates.turns]


def after_dense(candidates: Candidates) -> list[float]:
    """How near the meaning of the message after it is."""
    return [_of(candidates.dense, turn.after) for turn in candidates.turns]


def _of(scores: Mapping[int, float], seq: int | None) -> float:
    return 0.0 if seq is None else scores.get(seq, 0.0)
