"""The messages that may be the answer, and all that features may look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from aforesaid.recall.question import Question
from aforesaid.store.ranking import MOST_GAIN, Posting, TextMatches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from aforesaid.store.columns import Columns, Rows

    Numbers = NDArray[np.float64]


class Usual(NamedTuple):
    """How similar messages of the scope are to the question on the whole."""

    mean: float = 0.0
    deviation: float = 1.0

    def standard(self, cosine: float) -> float:
        """Return a cosine as a number of standard deviations."""
        return (cosine - self.mean) / self.deviation

    def cosine(self, standard: float) -> float | None:
        """Return the cosine that a number of standard deviations stands for. Exactly zero stands for nothing known."""
        return self.mean + standard * self.deviation if standard else None

    def cosines(self, standards: Numbers) -> list[float | None]:
        """Return the same of many."""
        cosines = (self.mean + standards * self.deviation).tolist()
        return [cosine if known else None for cosine, known in zip(cosines, standards.tolist(), strict=True)]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates in the order of the log, and what the arms said about them, their neighbours and their sessions.

    Arrays named after an arm have one number for each message of the scope and a zero at their end, which is where
    `before` and `after` point when there is no neighbour.
    """

    question: Question
    columns: Columns
    rows: Rows
    """The candidates."""
    before: Rows
    """The message before each of them in the same session."""
    after: Rows
    texts: Sequence[str]
    """What the candidates say. Empty in a first round, in which only features that do without it are asked."""
    postings: tuple[Posting, ...]
    worth: float
    """What all words of the question are worth together; never zero."""
    keyword: Numbers
    """Which part of the score of a perfect match a message reached, 0 to 1."""
    dense: Numbers
    """How many standard deviations it is more similar than messages are on the whole; zero where that is not known."""
    usual: Usual

    def narrowed(self, chosen: Rows, texts: Sequence[str]) -> Candidates:
        """Return some of the candidates, by their place among the rows, with what they say."""
        return replace(self, rows=self.rows[chosen], before=self.before[chosen], after=self.after[chosen], texts=texts)

    def coverage(self) -> Numbers:
        """Return which part of the question's worth the words of each message have, 0 to 1."""
        import numpy as np  # noqa: PLC0415

        covered = np.zeros(len(self.columns) + 1)
        for posting in self.postings:
            covered[posting.rows] += posting.rarity
        return covered / self.worth


def candidates_of(
    question: Question, matches: TextMatches, rows: Rows, keyword: Numbers, dense: Numbers, usual: Usual
) -> Candidates:
    """Put together what is known of these rows."""
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
        usual=usual,
    )


def neighbours(columns: Columns, rows: Rows) -> tuple[Rows, Rows]:
    """Return the rows before and after these in the same session; beyond the last row where there is none."""
    import numpy as np  # noqa: PLC0415

    nobody, session = len(columns), columns.session
    earlier, later = np.maximum(rows - 1, 0), np.minimum(rows + 1, max(nobody - 1, 0))
    before = np.where((rows > 0) & (session[earlier] == session[rows]), earlier, nobody)
    after = np.where((rows + 1 < nobody) & (session[later] == session[rows]), later, nobody)
    return before, after
