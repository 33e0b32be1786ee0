"""From the weighted sum of features to a score between 0 and 1, and the minimum score of a hit.

The sum alone ranks the candidates of one question and says nothing about another question. The score is a logistic
function of it, fitted to questions that a conversation answers and to questions about what
was never said in it. It rises with the sum, so it changes no ranking. It does not tell whether a question was answered
at all: hits for what was never said score as high. Beside the sum it uses what all candidates of a
question have in common: how strong the best one is, how many of the question's words are in the memory, and how large
the memory is. 0.5 means: as common among right hits as among wrong ones.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.recall.background import MIDDLE, STEEPNESS, calibration, logistic, logistics
from aforesaid.recall.candidates import Candidates
from aforesaid.recall.features.about import QUESTION_MARKS
from aforesaid.text.sentences import length_in_words

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers
    from aforesaid.store.columns import Rows

MIN_SCORE: Final = 0.25
"""Minimum score of what lacks a word of the query, where the words themselves are searched for."""
MIN_SCORE_OF_ANSWERS: Final = 0.04
"""Minimum score of a hit for a question whose words are not all in one message. Of the cut-offs in steps of 0.01 it is
the highest that costs at most a quarter of a point of recall@10 on the conversations that nothing is tested with."""
_FEW_WORDS: Final = 2
"""Maximum words of a query without a question mark that is taken for words to search for, not for a question."""
_SMALL: Final = 40
"""Memories with fewer messages are judged like one of this size: that few messages make none of them an answer."""
_STRONG: Final = 6.0
"""A best candidate above this sum counts as this one, so that a very strong match does not hide good ones."""
QUESTION_FEATURES: Final = ("nearest", "coverage", "found", "messages", "best", "unknown", "constant")
"""The names of what `question_features` returns, in its order."""


class ScoreScale(NamedTuple):
    """How the weighted sums of one question become scores."""

    slope: float
    offset: float

    def score(self, total: float) -> float:
        """Return the score of a weighted sum."""
        return logistic(self.slope * total + self.offset)

    def scores(self, totals: Numbers) -> list[float]:
        """Return the scores of many weighted sums."""
        return logistics(self.slope * totals + self.offset)


SIMILARITY_SCALE: Final = ScoreScale(STEEPNESS, -STEEPNESS * MIDDLE)
"""The scale of a search by meaning alone, whose sums are distances to the background: the score is the similarity."""


def least_score(query: str, *, known: bool, held: bool) -> float:
    """Return the minimum score of what lacks a word of the query. What has all of them is a hit with any score.

    `known`: whether any word of it was ever said; `held`: whether something that was said has all of them. Beside that,
    the rest is mostly noise. Without a question mark, so is all that resembles one or two words, or words that nobody
    ever said.
    """
    asked = query.rstrip().endswith(QUESTION_MARKS)
    searched = not asked and (not known or length_in_words(query) <= _FEW_WORDS)
    return MIN_SCORE if held or searched else MIN_SCORE_OF_ANSWERS


def keyword_score(bm25: float) -> float:
    """Return the score of a search by words alone: a squashed BM25 score, which compares within one search only."""
    return bm25 / (1 + bm25)


class NoteEvidence(NamedTuple):
    """What the summaries and memories found for a question say about it as a whole."""

    total: float = -math.inf
    """The highest weighted sum."""
    coverage: float = 0.0
    """The highest share of the question's words."""
    nearest: float = 0.0
    """The highest nearness in meaning."""


def score_scale(candidates: Candidates, best: float, notes: NoteEvidence) -> ScoreScale:
    """Return the scale of a question. `best` is the highest weighted sum among the messages."""
    fitted = calibration()["score"]
    features = zip(QUESTION_FEATURES, question_features(candidates, best, notes), strict=True)
    return ScoreScale(fitted["slope"], sum(fitted[name] * value for name, value in features))


def question_features(candidates: Candidates, best: float, notes: NoteEvidence) -> tuple[float, ...]:
    """Return what all candidates of a question have in common, messages and notes together.

    That is the nearness of the nearest, the coverage of the one with most words, the share of the question's words that
    are in the memory, the logarithm of its size, the highest sum, whether no word is in the memory, and 1.
    Messages that repeat the question do not count: asked again, it must find its answer as before.
    """
    repeating = candidates.repeating
    repeated, others = candidates.rows[repeating], candidates.rows[~repeating]
    words = max(len(candidates.postings), 1)
    found = max(sum(_has_others(posting.rows, repeated) for posting in candidates.postings) / words, notes.coverage)
    return (
        max(_highest(candidates.dense[others]), notes.nearest),
        max(_highest(candidates.coverage()[others]), notes.coverage),
        found,
        math.log(max(len(candidates.columns), _SMALL)),
        min(max(best, notes.total, 0.0), _STRONG),
        float(not found),
        1.0,
    )


def _has_others(rows: Rows, repeated: Rows) -> bool:
    if not len(repeated):
        return len(rows) > 0
    import numpy as np  # noqa: PLC0415 - loaded with the first search

    return not bool(np.isin(rows, repeated).all())


def _highest(values: Numbers) -> float:
    return float(values.max()) if len(values) else 0.0
