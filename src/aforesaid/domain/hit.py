"""Search hits."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from aforesaid.domain.literals import HitKind
from aforesaid.domain.message import Message

_REASONS: Final = {
    "keyword": "its words match",
    "coverage": "its words match",
    "dense": "its meaning is close",
    "before_keyword": "the messages around it match",
    "before_dense": "the messages around it match",
    "after_keyword": "the messages around it match",
    "after_dense": "the messages around it match",
    "together": "the messages around it match",
    "session_keyword": "its conversation is about this",
    "session_coverage": "its conversation is about this",
    "session_dense": "its conversation is about this",
    "speaker": "the question names the speaker",
    "period": "it was said at the time that the question names",
    "when": "the question asks when, and it mentions a time",
    "question": "it asks a question itself",
    "length": "its length",
    "recency": "its age",
    "ranker": "it answers the question word by word",
    "role": "the question asks for what the assistant said, or for what people said",
    "rerank": "the reranker's order",
    "own": "a person said it, not the assistant",
    "same_words": "it is exactly what was searched for",
}
"""Descriptions of the score's features for users."""
_NOTABLE: Final = 0.25
"""Minimum contribution of a feature that is mentioned in an explanation."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A search hit.

    `score` is between 0 and 1 and orders the hits of one search. On average over labelled questions, 0.5 is as common
    among right hits as among wrong ones. It does not tell whether the answer was ever said: the best hit often scores
    as high where it was not. A search by words alone has scores of another scale.
    """

    kind: HitKind
    id: str
    """The id of the message, the name of the session, or the number of the summary or the memory."""
    text: str
    score: float
    at: datetime
    sources: tuple[str, ...]
    """The ids of the messages that it rests on; of a summary, the first 200. Messages with the same words come last."""
    terms: tuple[str, ...]
    """The query's words that occur in it, in any inflection."""
    message: Message | None = field(default=None, repr=False)
    """The message; for a session, its best match. None for a summary or a memory."""
    parts: tuple[tuple[str, float], ...] = field(default=(), repr=False)
    """The contribution of each feature to the weighted sum behind the score."""
    similarity: float | None = field(default=None, repr=False)
    """How near its meaning is, 0 to 1, calibrated for the encoder. None if it was not compared."""
    around: tuple[Message, ...] = field(default=(), repr=False)
    """The messages around it in the same session, if they were asked for, oldest first."""

    def reasons(self) -> list[tuple[str, float]]:
        """Return why it was found, in plain words, with what each reason added to the weighted sum, most first."""
        added: dict[str, float] = {}
        for name, value in self.parts:
            reason = _REASONS.get(name, name)
            added[reason] = added.get(reason, 0.0) + value
        return sorted(((reason, value) for reason, value in added.items() if value), key=lambda each: -abs(each[1]))

    def explain(self) -> str:
        """Return one line that says why it was found."""
        said = []
        for reason, value in self.reasons():
            if value >= _NOTABLE:
                said.append(self._in_detail(reason))
        if self.terms and not any(reason.startswith("its words match") for reason in said):
            said.append(self._in_detail("its words match"))
        against = [reason for reason, value in self.reasons() if value <= -_NOTABLE]
        line = f"score {self.score:.2f}: {', '.join(said) or 'nothing in it stands out'}"
        return f"{line}; against it: {', '.join(against)}" if against else line

    def _in_detail(self, reason: str) -> str:
        if reason == "its words match" and self.terms:
            return f"its words match ({', '.join(self.terms)})"
        if reason == "its meaning is close" and self.similarity is not None:
            return f"its meaning is close (similarity {self.similarity:.2f})"
        return reason
