"""Ranking of messages and notes by words, the same for every store without a ranking of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import compress
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.domain.caches import holds_texts
from aforesaid.domain.checks import moment
from aforesaid.domain.memory import NoteKey, NoteMatch
from aforesaid.domain.message import message_id
from aforesaid.extras import np
from aforesaid.store.columns import Columns, Growing
from aforesaid.store.vector_matrix import Few
from aforesaid.text.languages import QueryWord, index_language, query_words, stop_words

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aforesaid.store.columns import Rows

    Numbers = NDArray[np.float64]
    Numbers64 = NDArray[np.int64]


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
        scores = np.zeros(len(self.columns))
        for _, rarity, rows, counts in self.postings:
            scale = 1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * self.columns.length[rows] / self.average_length
            scores[rows] += rarity * counts * (_SATURATION + 1) / (counts + _SATURATION * scale)
        return scores

    def best(self, scores: Numbers, limit: int) -> Rows:
        """Return the `limit` best rows that have a score, best first, newer first among equals."""
        found = np.flatnonzero(scores)
        if len(found) > limit:
            # All that are at least as good as the last one that fits, so that ties are broken by age alone.
            least = np.partition(scores[found], len(found) - limit)[len(found) - limit]
            found = found[scores[found] >= least]
        order = np.lexsort((-found, -scores[found]))
        return found[order[:limit]]

    def holding(self) -> Rows:
        if not all(len(posting.rows) for posting in self.postings) or not self.postings:
            return np.empty(0, dtype=np.intp)
        found = np.zeros(len(self.columns), dtype=np.intp)
        for posting in self.postings:
            found[posting.rows] += 1
        return np.flatnonzero(found == len(self.postings))

    def words(self, row: int) -> tuple[str, ...]:
        places = [(posting, int(posting.rows.searchsorted(row))) for posting in self.postings]
        return tuple(each.word for each, place in places if place < len(each.rows) and int(each.rows[place]) == row)


def text_matches(
    columns: Columns,
    words: Iterable[tuple[str, Rows, NDArray[np.int64]]],
    inside: NDArray[np.bool_] | None,
    counts: tuple[int, int],
    *,
    notes: bool,
    vectors: Few | None = None,
) -> TextMatches:
    """Return the matches for a query.

    `words` has the rows with each of its words, in order, and how often each row has it; `inside` says which rows
    count. `counts` is how many messages were searched, and how many words these have.
    """
    documents, total = counts
    postings: list[Posting] = []
    for word, rows, times in words:
        rarity = math.log1p((documents - len(rows) + 0.5) / (len(rows) + 0.5))
        kept = slice(None) if inside is None else inside[rows]
        postings.append(Posting(word, rarity, rows[kept], times[kept]))
    return TextMatches(columns, _telling(postings), max(total / max(documents, 1), 1.0), notes, vectors)


def _telling(postings: Sequence[Posting]) -> tuple[Posting, ...]:
    """Keep the rarest words of a long query, in their order: a whole page as a query is about what is rare in it.

    One word that was not found stays too, if there is any: it tells that no message has all words of the query.
    """
    if len(postings) <= _MOST_WORDS:
        return tuple(postings)
    found = [posting for posting in postings if len(posting.rows)]
    kept = {posting.word for posting in sorted(found, key=lambda posting: -posting.rarity)[:_MOST_WORDS]}
    kept.update([posting.word for posting in postings if not len(posting.rows)][:1])
    return tuple(posting for posting in postings if posting.word in kept)


def have(rows: Rows, wanted: Rows) -> list[bool]:
    """Tell which of the wanted rows are among some that are in order."""
    if not len(rows):
        return [False] * len(wanted)
    found: list[bool] = (rows[np.minimum(rows.searchsorted(wanted), len(rows) - 1)] == wanted).tolist()
    return found


_REMEMBERED: Final = 200_000
"""People use the same words again and again."""
_TAIL: Final = 4_096
"""Number of new terms that are scanned one by one before they are merged into the sorted ones."""
_BYTES: Final = 8


def hashed(terms: Sequence[str]) -> bytes:
    """Return terms as numbers in a row, in order and with repetitions."""
    return b"".join([_hash(term) for term in terms])


def number_of(term: str) -> int:
    return int.from_bytes(_hash(term), "little", signed=True)


def content_hash(text: str) -> int:
    """Return a number by which equal texts are found."""
    return int.from_bytes(blake2b(text.encode(), digest_size=_BYTES).digest(), "big", signed=True)


@holds_texts
@lru_cache(_REMEMBERED)
def _hash(term: str) -> bytes:
    # Two of a person's words that have the same 64 bits are not to be expected in the lifetime of the universe.
    return blake2b(term.encode(), digest_size=_BYTES).digest()


class Inverted:
    """Which rows have which terms. Rows are added at the end; what is new is sorted in when it has become much."""

    def __init__(self) -> None:
        self._terms = np.empty(0, dtype=np.int64)
        self._rows = np.empty(0, dtype=np.int32)
        self._new_terms = Growing(np.empty(0, dtype=np.int64))
        self._new_rows = Growing(np.empty(0, dtype=np.int32))
        self._count = 0

    @property
    def size(self) -> int:
        return self._terms.nbytes + self._rows.nbytes + self._new_terms.nbytes + self._new_rows.nbytes

    def extend(self, terms: Sequence[bytes]) -> None:
        lengths = [len(each) // _BYTES for each in terms]
        numbers = np.arange(self._count, self._count + len(terms), dtype=np.int32)
        self._new_terms.extend(np.frombuffer(b"".join(terms), dtype="<i8"))
        self._new_rows.extend(np.repeat(numbers, lengths))
        self._count += len(terms)
        if len(self._new_terms) > max(_TAIL, len(self._terms) // 8):
            self._sort_in()

    def having(self, terms: Sequence[str]) -> tuple[Rows, NDArray[np.int64]]:
        """Return the rows that have any of the terms, in order, and how often."""
        new = self._new_terms.rows
        found = []
        for number in map(number_of, terms):
            first, last = np.searchsorted(self._terms, [number, number + 1])
            found += [self._rows[first:last], self._new_rows.rows[new == number]]
        rows, counts = np.unique(np.concatenate(found), return_counts=True)
        return rows.astype(np.intp), counts

    def _sort_in(self) -> None:
        terms = np.concatenate([self._terms, self._new_terms.rows])
        order = np.argsort(terms, kind="stable")
        self._rows = np.concatenate([self._rows, self._new_rows.rows])[order]
        self._terms = terms[order]
        self._new_terms = Growing(np.empty(0, dtype=np.int64))
        self._new_rows = Growing(np.empty(0, dtype=np.int32))


MOST_SOURCES: Final = 200
"""Maximum messages that a hit names as sources of a note, oldest first."""


class RankedNote(NamedTuple):
    """A note by its number, and how well it fits."""

    note: int
    words: tuple[str, ...]
    coverage: float
    similarity: float | None

    @property
    def key(self) -> NoteKey:
        """What the number means: a summary has an even one, a memory an odd one."""
        return NoteKey("memory" if self.note % 2 else "summary", self.note // 2)

    def match(self, text: str, at: int, sources: Iterable[tuple[int, str | None]]) -> NoteMatch:
        """Return it with its text, its time (microseconds), and the messages that it stands for: number and id."""
        ids = tuple([message_id(seq, given) for seq, given in sources])
        return NoteMatch(self.key, text, moment(at), ids, self.words, self.coverage, self.similarity)


class Similarities(NamedTuple):
    """How near notes are to what was asked."""

    notes: Numbers64
    """Their numbers, in order."""
    values: NDArray[np.floating]


def similarities_of(found: Mapping[int, float]) -> Similarities:
    notes = np.array(sorted(found), dtype=np.int64)
    return Similarities(notes, np.array([found[note] for note in notes.tolist()]))


def note_number_of(key: NoteKey) -> int:
    """Return the number of a note among summaries and memories."""
    return 2 * key.id + (key.kind == "memory")


def rank_notes(
    having: Mapping[str, Sequence[int] | Numbers64], similar: Similarities, notes: int, active: Numbers64 | None = None
) -> Iterator[RankedNote]:
    """Yield the notes that have a word of the query or a vector, best first by both together.

    `having` tells which notes have each word of the query, `similar` how near those are that have a vector, and `notes`
    how many there are. With `active`, which is in order, no others are ranked.
    """
    listed = [*having.values(), similar.notes]
    kinds = np.repeat(np.arange(len(listed)), [len(each) for each in listed])
    every, places = np.unique(np.concatenate(listed).astype(np.int64), return_inverse=True)
    has = np.zeros((len(every), len(listed)), dtype=np.bool_)
    has[places, kinds] = True
    nearness = np.zeros(len(every))
    nearness[places[len(places) - len(similar.notes) :]] = similar.values
    counts = has[:, :-1].sum(axis=0)
    rarity = np.log1p(np.maximum(notes - counts + 0.5, 0) / (counts + 0.5))
    coverage = (has[:, :-1] * rarity).sum(axis=1) / (rarity.sum() or 1.0)
    best = np.lexsort((-every, -coverage - nearness))
    if active is not None:
        best = best[have(active, every[best])]
    # There can be thousands, and few of them are wanted.
    for place in best.tolist():
        *worded, near = has[place].tolist()
        words = tuple(compress(having, worded))
        similarity = float(nearness[place]) if near else None
        yield RankedNote(int(every[place]), words, float(coverage[place]), similarity)


MOST_HAVING: Final = 1_000
"""Memories looked at for each word of a question, newest first. A word that more have tells as little as one that all
of them have."""
_MOST_WORDED: Final = 500
"""Memories with words of a question that are read at most, those with the most telling words first."""
LEAST_RELEVANCE: Final = 0.2
"""Minimum relevance of a found memory. A match of the user's own name alone, which most memories contain, is below."""


def words_asked(question: str) -> list[QueryWord]:
    """Return the words by which memories are found: none for a question that consists of stop words alone."""
    asked = query_words(question)
    ignored = stop_words(index_language([each.word for each in asked]))
    return [each for each in asked if each.word not in ignored]


def covering(having: Mapping[str, Sequence[int]], memories: int) -> list[tuple[int, float]]:
    """Return memories with the weighted share of a question's words that each has, 0 to 1, best first, newest first.

    `having` tells which memories have each word, and `memories` how many there are, both counted to `MOST_HAVING`.
    """
    covered: dict[int, float] = {}
    worth = 0.0
    for found in having.values():
        weight = math.log1p(memories / (len(found) + 1))
        worth += weight
        for memory in found:
            covered[memory] = covered.get(memory, 0.0) + weight
    shares = [(memory, weight / worth) for memory, weight in covered.items() if weight >= LEAST_RELEVANCE * worth]
    return sorted(shares, key=lambda each: (-each[1], -each[0]))[:_MOST_WORDED]
