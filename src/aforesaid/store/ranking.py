"""BM25 over the posting lists of one scope, the same for every store that has no ranking of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.domain.hit import Hit
from aforesaid.domain.message import Message
from aforesaid.store.columns import Columns
from aforesaid.store.matrix import Few

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from aforesaid.store.columns import Rows

    Numbers = NDArray[np.float64]

# Chat turns are short and rarely repeat a word for emphasis: little is gained from counting repetitions
# and little from punishing length.
_SATURATION: Final = 0.9
_LENGTH_WEIGHT: Final = 0.4
_MOST_WORDS: Final = 48
"""Maximum words of a query that count."""
MOST_GAIN: Final = _SATURATION + 1
"""What a word can add at most, times its rarity."""


class Posting(NamedTuple):
    """The messages that have a word of the query, in whatever form."""

    word: str
    rarity: float
    """How rare the word is among the messages that were searched."""
    rows: Rows
    counts: NDArray[np.int64]
    """How often each of them has it."""


@dataclass(frozen=True, slots=True)
class TextMatches:
    """The messages of a scope, and which of them have which words of a query."""

    columns: Columns
    postings: tuple[Posting, ...]
    """One for each word, also for words that were not found."""
    average_length: float
    notes: bool = False
    """Whether the user has summaries or memories, which belong to a search of all that is theirs."""
    vectors: Few | None = None
    """All vectors of these messages, where they are few and at hand: then `search_vector` need not be asked."""

    def scores(self) -> Numbers:
        """Return what each message of the scope scores; zero where no word is found."""
        import numpy as np  # noqa: PLC0415 - loaded with the first search

        scores = np.zeros(len(self.columns))
        for _, rarity, rows, counts in self.postings:
            scale = 1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * self.columns.length[rows] / self.average_length
            scores[rows] += rarity * counts * (_SATURATION + 1) / (counts + _SATURATION * scale)
        return scores

    def best(self, scores: Numbers, limit: int) -> Rows:
        """Return the `limit` best rows that have a score, best first, newer first among equals."""
        import numpy as np  # noqa: PLC0415

        found = np.flatnonzero(scores)
        if len(found) > limit:
            # All that are at least as good as the last one that fits, so that ties are broken by age alone.
            least = np.partition(scores[found], len(found) - limit)[len(found) - limit]
            found = found[scores[found] >= least]
        order = np.lexsort((-found, -scores[found]))
        return found[order[:limit]]

    def holding(self) -> Rows:
        """Return the rows that have every word of the query, in order."""
        import numpy as np  # noqa: PLC0415

        if not all(len(posting.rows) for posting in self.postings) or not self.postings:
            return np.empty(0, dtype=np.intp)
        found = np.zeros(len(self.columns), dtype=np.intp)
        for posting in self.postings:
            found[posting.rows] += 1
        return np.flatnonzero(found == len(self.postings))

    def words(self, row: int) -> tuple[str, ...]:
        """Return the words of the query that a message has."""
        return tuple(posting.word for posting in self.postings if has(posting.rows, row))


def posting(word: str, rows: Rows, counts: NDArray[np.int64], documents: int) -> Posting:
    """Make a posting; `documents` is how many messages were searched. Rows are in order."""
    return Posting(word, math.log1p((documents - len(rows) + 0.5) / (len(rows) + 0.5)), rows, counts)


def telling(postings: Sequence[Posting]) -> tuple[Posting, ...]:
    """Keep the rarest words of a long query, in their order: a whole page as a query is about what is rare in it.

    One word that was not found stays too, if there is any: it tells that no message has all words of the query.
    """
    if len(postings) <= _MOST_WORDS:
        return tuple(postings)
    found = [posting for posting in postings if len(posting.rows)]
    kept = {posting.word for posting in sorted(found, key=lambda posting: -posting.rarity)[:_MOST_WORDS]}
    kept.update([posting.word for posting in postings if not len(posting.rows)][:1])
    return tuple(posting for posting in postings if posting.word in kept)


def best_hits(matches: TextMatches, limit: int) -> list[tuple[int, float, tuple[str, ...]]]:
    """Return sequence number, score and words of the best matches."""
    scores = matches.scores()
    return [
        (int(matches.columns.seq[row]), float(scores[row]), matches.words(row)) for row in matches.best(scores, limit)
    ]


def hit(message: Message, score: float, terms: Sequence[str]) -> Hit:
    """Make a hit of a match."""
    return Hit(
        kind="message",
        id=message.id,
        text=message.text,
        score=score,
        at=message.at,
        sources=(message.id,),
        terms=tuple(terms),
        message=message,
    )


def has(rows: Rows, row: int) -> bool:
    """Tell whether a row is among rows that are in order."""
    place = int(rows.searchsorted(row))
    return place < len(rows) and int(rows[place]) == row


def have(rows: Rows, wanted: Rows) -> list[bool]:
    """Tell the same of many rows at once."""
    import numpy as np  # noqa: PLC0415

    if not len(rows):
        return [False] * len(wanted)
    found: list[bool] = (rows[np.minimum(rows.searchsorted(wanted), len(rows) - 1)] == wanted).tolist()
    return found
