"""The messages that may be the answer, and all that features may look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from recollect.domain.vector import Turn
from recollect.recall.question import Question


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates in the order of the log, and what the two arms said about them and their neighbours."""

    question: Question
    turns: tuple[Turn, ...]
    keyword: Mapping[int, float]
    """By sequence number: which part of the score of a perfect match it reached, 0 to 1."""
    matched: Mapping[int, tuple[str, ...]]
    """The words of the question that a message has."""
    rarity: Mapping[str, float]
    """What each word of the question is worth."""
    dense: Mapping[int, float]
    """By sequence number: how many standard deviations it is more similar than messages are on the whole."""

    total: float
    """What all words of the question are worth together; never zero."""

    def worth(self, words: Iterable[str]) -> float:
        """Return which part of the question's worth lies in these words, 0 to 1."""
        return sum([self.rarity[word] for word in words]) / self.total

    def sessions(self) -> dict[tuple[str, str], list[Turn]]:
        """Return the candidates of each session."""
        found: dict[tuple[str, str], list[Turn]] = {}
        for turn in self.turns:
            found.setdefault((turn.message.thread, turn.message.session), []).append(turn)
        return found
