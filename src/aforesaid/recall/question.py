"""Analysis of a question, independent of any message."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from aforesaid.domain.checks import query_text
from aforesaid.models.embed.caching import MOST_CHARACTERS
from aforesaid.text.times.periods import Period, periods
from aforesaid.text.words import fold, words_of

_WHEN: Final = re.compile(
    r"\b(when|what (date|day|month|year|time)|how long ago|since when|wann|cuando|quand|quando|wanneer|когда)\b"
    r"|什么时候|何时|いつ|متى"
)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its words and the periods that it names."""

    text: str
    asked: datetime
    words: frozenset[str]
    periods: tuple[Period, ...]
    asks_when: bool

    @classmethod
    def of(cls, text: str, asked: datetime | None) -> Question:
        """Analyse a question. `asked`: when it is asked; None: now."""
        at, brief = asked or datetime.now(UTC), shortened(text)
        return cls(
            text=text,
            asked=at,
            words=frozenset(words_of(text)),
            periods=tuple(periods(brief, at)),
            asks_when=_WHEN.search(fold(brief)) is not None,
        )


def shortened(text: str) -> str:
    """Return the part of a long question that is embedded and read for dates: as many characters as of a message."""
    return query_text(text, MOST_CHARACTERS)


def without(text: str, names: frozenset[str]) -> str:
    """Return a question without the names of speakers, since speakers rarely say their own names."""
    kept = [word for word in text.split() if not names.intersection(words_of(word.removesuffix("'s")))]
    return " ".join(kept) or text
