"""What a message is like, whatever was asked."""

from __future__ import annotations

import math
import re
from typing import Final

from recollect.recall.candidates import Candidates

_TIME_WORDS: Final = re.compile(
    r"\b(yesterday|today|tomorrow|tonight|last|next|ago|weeks?|months?|years?|(mon|tues|wednes|thurs|fri|satur|sun)day|"
    r"january|february|march|april|may|june|july|august|september|october|november|december|weekend|recently|"
    r"gestern|heute|morgen|letzte[nrs]?|ayer|hoy|manana|pasad[oa]|hier|demain|вчера|сегодня|завтра|недел[юиея]|\d{4})\b"
    r"|昨天|今天|明天|上周|下周|[0-9]+月|昨日|今日|明日|أمس|اليوم|غدا",
    re.IGNORECASE,
)
_TYPICAL_LENGTH: Final = 2.5
"""The logarithm of the words of a usual chat turn."""


def asked_in_return(candidates: Candidates) -> list[float]:
    """One for a question: it asks, and does not tell."""
    return [float(turn.message.text.rstrip().endswith(("?", "？", "؟"))) for turn in candidates.turns]


def asks_when_and_tells_when(candidates: Candidates) -> list[float]:
    """One for a message that speaks of time, where the question asks for it."""
    asks = candidates.question.asks_when
    return [float(asks and _TIME_WORDS.search(turn.message.text) is not None) for turn in candidates.turns]


def length(candidates: Candidates) -> list[float]:
    """How much longer than usual it is: "Thanks!" is rarely the answer."""
    return [math.log1p(_words(turn.message.text)) - _TYPICAL_LENGTH for turn in candidates.turns]


def recency(candidates: Candidates) -> list[float]:
    """Where it stands between the oldest candidate and the newest, 0 to 1."""
    first, last = candidates.turns[0].message.seq, candidates.turns[-1].message.seq
    return [(turn.message.seq - first) / max(last - first, 1) for turn in candidates.turns]


def own_words(candidates: Candidates) -> list[float]:
    """One for what people said themselves, as against the assistant."""
    return [float(turn.message.role == "user") for turn in candidates.turns]


def _words(text: str) -> float:
    # Scripts without spaces pack about one word into two characters.
    return len(text.split()) if text.isascii() else max(len(text.split()), len(text) / 6)
