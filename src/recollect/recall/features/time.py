"""Whether it was said at the time that the question names."""

from __future__ import annotations

from recollect.recall.candidates import Candidates


def period(candidates: Candidates) -> list[float]:
    """One inside a period that the question names, one half near it."""
    named = candidates.question.periods
    return [max((each.nearness(turn.message.at) for each in named), default=0.0) for turn in candidates.turns]
