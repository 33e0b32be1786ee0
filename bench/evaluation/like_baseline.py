"""The baseline for recall: rank messages by the number of keywords they contain, as SQL `LIKE '%word%'` does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from evaluation.conversation import Turn

_STOP_WORD: Final = re.compile(
    "a|an|the|and|or|but|in|on|at|to|of|for|with|i|you|he|she|it|we|they|am|is|are|was|were|be|do|does|did|"
    "what|when|where|who|why|how"
)
_WORD: Final = re.compile(r"\w+")


def keywords(question: str) -> list[str]:
    """Return the distinct words of a question, without stop words."""
    return [word for word in dict.fromkeys(_WORD.findall(question.lower())) if not _STOP_WORD.fullmatch(word)]


def like(question: str, turns: Sequence[Turn], limit: int) -> list[str]:
    """Return the ids of the turns with the most keywords, best first; ties go to the more recent turn."""
    wanted = keywords(question)
    matches: list[tuple[int, int]] = []
    for place, turn in enumerate(turns):
        text = turn.text.lower()
        found = sum(word in text for word in wanted)
        if found:
            matches.append((found, place))
    matches.sort(key=lambda match: (match[0], turns[match[1]].at, match[1]), reverse=True)
    return [turns[place].id for _, place in matches[:limit]]
