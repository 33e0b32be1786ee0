"""Features: each a small function that gives every candidate a number. A new one is a new file and a line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from aforesaid.recall.candidates import Candidates
from aforesaid.recall.features.about import asked_in_return, asks_when_and_tells_when, length, own_words, recency
from aforesaid.recall.features.arms import coverage, dense, keyword, ranker
from aforesaid.recall.features.neighbours import after_dense, after_keyword, before_dense, before_keyword, together
from aforesaid.recall.features.role import asked_role
from aforesaid.recall.features.sessions import session_coverage, session_dense, session_keyword
from aforesaid.recall.features.speaker import speaker
from aforesaid.recall.features.time import period

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers

    Feature = Callable[[Candidates], Numbers]

FEATURES: Final[dict[str, Feature]] = {
    "keyword": keyword,
    "coverage": coverage,
    "dense": dense,
    "before_keyword": before_keyword,
    "before_dense": before_dense,
    "after_keyword": after_keyword,
    "after_dense": after_dense,
    "together": together,
    "session_keyword": session_keyword,
    "session_coverage": session_coverage,
    "session_dense": session_dense,
    "speaker": speaker,
    "period": period,
    "question": asked_in_return,
    "when": asks_when_and_tells_when,
    "length": length,
    "recency": recency,
    "own": own_words,
    "role": asked_role,
    "ranker": ranker,
}

NEED_TEXT: Final = frozenset({"question", "when", "length", "ranker"})
"""Features that read what a candidate says. They are computed for the best candidates only."""
