"""What a search returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from recollect.domain.message import Message


@dataclass(frozen=True, slots=True)
class Hit:
    """Something that was found. A higher `score` is a better match; scores of two searches do not compare."""

    kind: Literal["message"]
    id: str
    text: str
    score: float
    at: datetime
    sources: tuple[str, ...]
    """The ids of the messages that it rests on."""
    terms: tuple[str, ...]
    """The words of the query that were found in it, in any of their forms."""
    message: Message = field(repr=False)
    parts: tuple[tuple[str, float], ...] = field(default=(), repr=False)
    """What each feature added to the score."""

    def explain(self) -> str:
        """Say in one line why it was found: the score, and what each feature added to it."""
        added = sorted(self.parts, key=lambda part: -abs(part[1]))
        reasons = ", ".join(f"{name} {value:+.2f}" for name, value in added if value)
        words = f"; words: {', '.join(self.terms)}" if self.terms else ""
        return f"{self.score:.2f} = {reasons or 'no feature'}{words}"
