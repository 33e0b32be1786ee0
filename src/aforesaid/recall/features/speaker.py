"""Feature: whether the question names the speaker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aforesaid.recall.candidates import Candidates
from aforesaid.text.words import words_of

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers


def speaker(candidates: Candidates) -> Numbers:
    """Return 1 if the question names the speaker, in a chat of several people."""
    import numpy as np  # noqa: PLC0415

    asked = candidates.question.words
    named = np.array([not asked.isdisjoint(words_of(name)) for name in candidates.columns.speakers])
    # No information if the question names everybody or nobody.
    informative = named.any() and not named.all()
    return (named[candidates.columns.speaker[candidates.rows]] & informative).astype(float)
