"""The messages that may be the answer, and all that features may look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from aforesaid.recall.background import SAME, Background
from aforesaid.recall.question import Question
from aforesaid.store.ranking import MOST_GAIN, Posting, TextMatches, have
from aforesaid.text.words import word_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from aforesaid.store.columns import Columns, Rows

    Numbers = NDArray[np.float64]

_PUNCTUATION: Final = 10
"""Characters by which a message with the words of the question may be longer than it. Most need no closer look."""


@dataclass(frozen=True)
class Candidates:
    """Candidates in the order of the log, with what words and meaning say about them and their neighbours.

    `keyword` and `dense` have one number for each message of the scope and a zero at their end, which is where `before`
    and `after` point when there is no neighbour.
    """

    question: Question
    columns: Columns
    rows: Rows
    """The candidates."""
    before: Rows
    """The message before each of them in the same session."""
    after: Rows
    texts: Sequence[str]
    """The candidates' texts. Empty while only features that need no text are computed."""
    postings: tuple[Posting, ...]
    worth: float
    """The summed rarity of the question's words; never zero."""
    keyword: Numbers
    """The BM25 score of each message as a share of a perfect match, 0 to 1."""
    dense: Numbers
    """How many standard deviations a message is nearer in meaning than unrelated ones; zero where that is not known."""
    background: Background
    held: Rows
    """The rows of all messages that have every word of the question, stop words aside."""
    asks_assistant: float = 0.0
    """Log-odds that the question is about what the assistant said, above those of an average question."""
    ranker: Numbers | None = None
    """How much better than most candidates each one answers the question, as the ranker sees it. None: it does
    not take part."""

    def narrowed(self, chosen: Rows, texts: Sequence[str]) -> Candidates:
        """Return some of the candidates, by their place among the rows, with their texts."""
        return replace(self, rows=self.rows[chosen], before=self.before[chosen], after=self.after[chosen], texts=texts)

    @cached_property
    def repeating(self) -> NDArray[np.bool_]:
        """Which of the candidates repeat the question instead of answering it, in meaning or word for word."""
        repeating: NDArray[np.bool_] = self.dense[self.rows] >= self.background.standard(SAME)
        return repeating | self.same_words

    @cached_property
    def same_words(self) -> NDArray[np.bool_]:
        """Which of the candidates are the text of the question, punctuation and case aside. None without texts."""
        import numpy as np  # noqa: PLC0415

        if not self.texts:
            return np.zeros(len(self.rows), dtype=np.bool_)
        asked, most = word_key(self.question.text), len(self.question.text) + _PUNCTUATION
        least = len(asked)  # the key of an ASCII text is not longer than the text
        return np.array(
            [
                len(text) <= most and (len(text) >= least or not text.isascii()) and word_key(text) == asked
                for text in self.texts
            ],
            dtype=np.bool_,
        )

    @cached_property
    def holding(self) -> NDArray[np.bool_]:
        """Which of the candidates have every word of the question, stop words aside, or are its text."""
        import numpy as np  # noqa: PLC0415

        return np.array(have(self.held, self.rows), dtype=np.bool_) | self.same_words

    def coverage(self) -> Numbers:
        """Return the share of the question's words, weighted by rarity, that each message has, 0 to 1."""
        import numpy as np  # noqa: PLC0415

        covered = np.zeros(len(self.columns) + 1)
        for posting in self.postings:
            covered[posting.rows] += posting.rarity
        return covered / self.worth


def candidates_of(
    question: Question, matches: TextMatches, rows: Rows, keyword: Numbers, dense: Numbers, background: Background
) -> Candidates:
    """Make candidates of these rows."""
    columns = matches.columns
    before, after = neighbours(columns, rows)
    worth = sum(posting.rarity for posting in matches.postings) or 1.0
    return Candidates(
        question=question,
        columns=columns,
        rows=rows,
        before=before,
        after=after,
        texts=(),
        postings=matches.postings,
        worth=worth,
        keyword=keyword / (worth * MOST_GAIN),
        dense=dense,
        background=background,
        held=matches.holding(),
    )


def neighbours(columns: Columns, rows: Rows) -> tuple[Rows, Rows]:
    """Return the rows before and after these in the same session; beyond the last row where there is none."""
    import numpy as np  # noqa: PLC0415

    nobody, session = len(columns), columns.session
    earlier, later = np.maximum(rows - 1, 0), np.minimum(rows + 1, max(nobody - 1, 0))
    before = np.where((rows > 0) & (session[earlier] == session[rows]), earlier, nobody)
    after = np.where((rows + 1 < nobody) & (session[later] == session[rows]), later, nobody)
    return before, after
