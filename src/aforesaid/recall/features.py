"""Features: functions that give every candidate a number. A new one is a function and a line in FEATURES."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from aforesaid.domain.checks import microseconds
from aforesaid.extras import np
from aforesaid.recall.candidates import Candidates
from aforesaid.text.times.find import mentions_time
from aforesaid.text.words import words_of

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers

    Feature = Callable[[Candidates], Numbers]


def coverage(candidates: Candidates) -> Numbers:
    """Return the weighted share of query terms each candidate contains, whatever its length."""
    return candidates.coverage()[candidates.rows]


def ranker(candidates: Candidates) -> Numbers:
    """Return the ranker's score; zero where it does not take part."""
    return np.zeros(len(candidates.rows)) if candidates.ranker is None else candidates.ranker


QUESTION_MARKS: Final = ("?", "？", "؟")
_TYPICAL_LENGTH: Final = 2.5
"""Logarithm of the number of words in an average chat turn."""
_MANY_MESSAGES: Final = 100
"""With this many messages, age has half its weight: in a short chat all messages are about equally old."""


def asked_in_return(candidates: Candidates) -> Numbers:
    """Return 1 for messages that are questions, which rarely contain the answer."""
    return np.array([float(text.rstrip().endswith(QUESTION_MARKS)) for text in candidates.texts])


def asks_when_and_tells_when(candidates: Candidates) -> Numbers:
    """Return 1 for a message that mentions a time, if the question asks when."""
    if not candidates.question.asks_when:
        return np.zeros(len(candidates.rows))
    return np.array([float(mentions_time(text)) for text in candidates.texts])


def length(candidates: Candidates) -> Numbers:
    """Return the logarithm of the length relative to an average turn: "Thanks!" is rarely the answer."""
    # Scripts without spaces pack about one word into two characters.
    words = [
        len(text.split()) if text.isascii() else max(len(text.split()), len(text) / 6) for text in candidates.texts
    ]
    return np.log1p(words) - _TYPICAL_LENGTH


def recency(candidates: Candidates) -> Numbers:
    """Return the position between the oldest message and the newest, 0 to 1, scaled down if there are few messages."""
    messages = len(candidates.columns)
    return candidates.rows / max(messages - 1, 1) * (messages / (messages + _MANY_MESSAGES))


def own_words(candidates: Candidates) -> Numbers:
    """Return 1 for messages of people, 0 for those of the assistant."""
    return (~candidates.columns.assistant[candidates.rows]).astype(float)


_FEW_MESSAGES: Final = 10
"""With this many messages, neighbours have half their weight."""


def together(candidates: Candidates) -> Numbers:
    """Return the weighted share of query terms that only the neighbours contain."""
    gained = np.zeros(len(candidates.rows))
    for posting in candidates.postings:
        has = np.zeros(len(candidates.columns) + 1, dtype=bool)
        has[posting.rows] = True
        beside = has[candidates.before] | has[candidates.after]
        gained += posting.rarity * (beside & ~has[candidates.rows])
    return _neighbour_weight(candidates) * gained / candidates.worth


def _neighbour_weight(candidates: Candidates) -> float:
    """Return the weight of neighbours in this memory, 0 to 1."""
    return len(candidates.columns) / (len(candidates.columns) + _FEW_MESSAGES)


def asked_role(candidates: Candidates) -> Numbers:
    """Return, for messages of the assistant, the log-odds that the question is about them; 0 for those of people."""
    return candidates.columns.assistant[candidates.rows].astype(float) * candidates.asks_assistant


# Sessions are long, and repeat the words of their topic: the usual BM25 parameters for documents.
_SATURATION: Final = 1.2
_LENGTH_WEIGHT: Final = 0.75


def session_coverage(candidates: Candidates) -> Numbers:
    """Return the weighted share of query terms that each candidate's session contains."""
    sessions = candidates.columns.session
    covered = np.zeros(len(candidates.columns.sessions))
    for posting in candidates.postings:
        here = np.zeros(len(covered), dtype=bool)
        here[sessions[posting.rows]] = True
        covered += posting.rarity * here
    return _session_weight(candidates) * (covered / candidates.worth)[sessions[candidates.rows]]


def session_keyword(candidates: Candidates) -> Numbers:
    """Return the BM25 score of its session as a share of a perfect match."""
    sessions, count = candidates.columns.session, len(candidates.columns.sessions)
    lengths = np.bincount(sessions, weights=candidates.columns.length, minlength=count)
    scale = _SATURATION * (1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * lengths / max(float(lengths.mean()), 1.0))
    scores, most = np.zeros(count), 0.0
    for posting in candidates.postings:
        said = np.bincount(sessions[posting.rows], weights=posting.counts, minlength=count)
        having = np.count_nonzero(said)
        rarity = np.log1p((count - having + 0.5) / (having + 0.5))
        scores += rarity * said * (_SATURATION + 1) / (said + scale)
        most += rarity * (_SATURATION + 1)
    return _session_weight(candidates) * (scores / (most or 1.0))[sessions[candidates.rows]]


def session_dense(candidates: Candidates) -> Numbers:
    """Return the highest vector similarity among the messages of its session."""
    sessions, known = candidates.columns.session, np.flatnonzero(candidates.dense[:-1])
    nearest = np.zeros(len(candidates.columns.sessions))
    np.maximum.at(nearest, sessions[known], candidates.dense[known])
    return _session_weight(candidates) * nearest[sessions[candidates.rows]]


def _session_weight(candidates: Candidates) -> float:
    """Return the weight of session features: 0 for one session, towards 1 for many."""
    return 1 - 1 / max(len(candidates.columns.sessions), 1)


def speaker(candidates: Candidates) -> Numbers:
    """Return 1 if the question names the speaker, in a chat of several people."""
    asked = candidates.question.words
    named = np.array([not asked.isdisjoint(words_of(name)) for name in candidates.columns.speakers])
    # No information if the question names everybody or nobody.
    informative = named.any() and not named.all()
    return (named[candidates.columns.speaker[candidates.rows]] & informative).astype(float)


_DAY: Final = 24 * 60 * 60 * 1_000_000
_NEAR: Final = 0.5
_FARTHER: Final = 0.25
"""Values of messages near the period, and a little farther away, since people misremember dates."""


def period(candidates: Candidates) -> Numbers:
    """Return 1 inside a period that the question names, and less near it.

    Near means within the length of the period, at least a day; a little farther away means within two days.
    """
    said = candidates.columns.at[candidates.rows]
    best = np.zeros(len(said))
    for named in candidates.question.periods:
        start, end = microseconds(named.start, "the period"), microseconds(named.end, "the period")
        distance = np.maximum(np.maximum(start - said, said - end + 1), 0)
        length = max(end - start, _DAY)
        near = np.where(distance <= length, _NEAR, np.where(distance <= 2 * _DAY, _FARTHER, 0.0))
        best = np.maximum(best, np.where(distance == 0, 1.0, near))
    return best


FEATURES: Final[dict[str, Feature]] = {
    "keyword": lambda candidates: candidates.keyword[candidates.rows],
    "coverage": coverage,
    "dense": lambda candidates: candidates.dense[candidates.rows],
    "before_keyword": lambda candidates: _neighbour_weight(candidates) * candidates.keyword[candidates.before],
    "before_dense": lambda candidates: _neighbour_weight(candidates) * candidates.dense[candidates.before],
    "after_keyword": lambda candidates: _neighbour_weight(candidates) * candidates.keyword[candidates.after],
    "after_dense": lambda candidates: _neighbour_weight(candidates) * candidates.dense[candidates.after],
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
