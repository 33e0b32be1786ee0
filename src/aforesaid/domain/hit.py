"""What a search returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from aforesaid.domain.message import Message
from aforesaid.domain.words import HitKind


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found. A higher `score` is a better match; scores of two searches do not compare."""

    kind: HitKind
    id: str
    """The id of the message, the name of the session, or the number of the summary or the memory."""
    text: str
    score: float
    at: datetime
    sources: tuple[str, ...]
    """The ids of the messages that it rests on; of a summary, the first 200. Others that say the same in the same words
    come last."""
    terms: tuple[str, ...]
    """The words of the query that were found in it, in any of their forms."""
    message: Message | None = field(default=None, repr=False)
    """The message; for a session, the one that fits best. A summary or a memory has none."""
    parts: tuple[tuple[str, float], ...] = field(default=(), repr=False)
    """What each feature added to the score."""
    similarity: float | None = field(default=None, repr=False)
    """How near its meaning is: a cosine, up to 1. None where that is not known."""
    around: tuple[Message, ...] = field(default=(), repr=False)
    """The messages around it in the same session, where they were asked for, oldest first."""

    def explain(self) -> str:
        """Say in one line why it was found: the score, and what each feature added to it."""
        added = sorted(self.parts, key=lambda part: -abs(part[1]))
        reasons = ", ".join(f"{name} {value:+.2f}" for name, value in added if value)
        words = f"; words: {', '.join(self.terms)}" if self.terms else ""
        near = "" if self.similarity is None else f"; similarity {self.similarity:.2f}"
        return f"{self.score:.2f} = {reasons or 'no feature'}{words}{near}"
