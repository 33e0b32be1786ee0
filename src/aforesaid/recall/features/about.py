"""Features of the message itself, mostly independent of the question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aforesaid.recall.candidates import Candidates
from aforesaid.text.times.find import mentions_time

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers

QUESTION_MARKS: Final = ("?", "？", "؟")
_TYPICAL_LENGTH: Final = 2.5
"""Logarithm of the number of words in an average chat turn."""
_MANY_MESSAGES: Final = 100
"""With this many messages, age has half its weight: in a short chat all messages are about equally old."""


def asked_in_return(candidates: Candidates) -> Numbers:
    """Return 1 for messages that are questions, which rarely contain the answer."""
    import numpy as np  # noqa: PLC0415

    return np.array([float(text.rstrip().endswith(QUESTION_MARKS)) for text in candidates.texts])


def asks_when_and_tells_when(candidates: Candidates) -> Numbers:
    """Return 1 for a message that mentions a time, if the question asks when."""
    import numpy as np  # noqa: PLC0415

    if not candidates.question.asks_when:
        return np.zeros(len(candidates.rows))
    return np.array([float(mentions_time(text)) for text in candidates.texts])


def length(candidates: Candidates) -> Numbers:
    """Return the logarithm of the length relative to an average turn: "Thanks!" is rarely the answer."""
    import numpy as np  # noqa: PLC0415

    return np.log1p([_words(text) for text in candidates.texts]) - _TYPICAL_LENGTH


def recency(candidates: Candidates) -> Numbers:
    """Return the position between the oldest message and the newest, 0 to 1, scaled down if there are few messages."""
    messages = len(candidates.columns)
    return candidates.rows / max(messages - 1, 1) * (messages / (messages + _MANY_MESSAGES))


def own_words(candidates: Candidates) -> Numbers:
    """Return 1 for messages of people, 0 for those of the assistant."""
    return (~candidates.columns.assistant[candidates.rows]).astype(float)


def _words(text: str) -> float:
    # Scripts without spaces pack about one word into two characters.
    return len(text.split()) if text.isascii() else max(len(text.split()), len(text) / 6)
