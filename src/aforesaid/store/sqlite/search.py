"""Keyword search over the posting lists of one scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import apsw

from aforesaid.domain.hit import Hit
from aforesaid.store import questions
from aforesaid.store.columns import Columns, columns_of
from aforesaid.store.ranking import Posting, TextMatches, best_hits, hit, posting, telling
from aforesaid.store.sql.messages import pick
from aforesaid.store.sqlite.caches import Caches
from aforesaid.store.sqlite.rows import answered
from aforesaid.text.languages import query_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from aforesaid.store.columns import Rows

_HAS_NOTES: Final = """
SELECT EXISTS (SELECT 1 FROM summary WHERE owner = ?1) OR EXISTS (SELECT 1 FROM memory WHERE owner = ?1)
"""
# One text with all numbers in it: handing over rows one by one would take ten times as long.
_POSTING: Final = "SELECT group_concat(doc) FROM log_posting WHERE term = ?"


def search(connection: apsw.Connection, caches: Caches, question: questions.SearchText) -> list[Hit]:
    """Return the best matches of any of the words."""
    best = best_hits(
        match(
            connection,
            caches,
            questions.MatchText(question.scope, question.words, question.within, None, question.where),
        ),
        question.limit,
    )
    wanted = questions.MessagesByNumber(question.scope, [seq for seq, _, _ in best], question.within)
    messages = {message.seq: message for message in answered(connection, pick(wanted))}
    return [hit(messages[seq], score, found) for seq, score, found in best]


def match(connection: apsw.Connection, caches: Caches, question: questions.MatchText) -> TextMatches:
    """Return which messages have which words. Terms are looked up one by one: no query language is involved."""
    found = caches.find(connection, question.scope, question.within, question.where)
    if found is None:
        return TextMatches(columns_of(()), (), 1.0)
    place, columns, inside, documents, total, _ = found
    vectors = None if question.embedder is None else caches.few(connection, found, question.embedder)
    notes = question.within == "user" and bool(connection.execute(_HAS_NOTES, (place.number,)).get)
    postings = []
    for word, terms in query_words(question.words):
        rows, counts = _posting(connection, columns, [place.prefix + term for term in terms])
        made = posting(word, rows, counts, documents)
        if inside is not None:
            kept = inside[rows]
            made = Posting(word, made.rarity, rows[kept], counts[kept])
        postings.append(made)
    return TextMatches(columns, telling(postings), max(total / max(documents, 1), 1.0), notes, vectors)


def _posting(connection: apsw.Connection, columns: Columns, terms: Sequence[str]) -> tuple[Rows, NDArray[np.int64]]:
    import numpy as np  # noqa: PLC0415 - loaded with the first search

    listed = [connection.execute(_POSTING, (term,)).get for term in terms]
    found = [np.fromstring(numbers, dtype=np.int64, sep=",") for numbers in listed if numbers]
    if not found:
        return np.empty(0, dtype=np.intp), np.empty(0, dtype=np.int64)
    # In order already, but for what several terms have found. A message comes once for each time it has the word.
    seqs = found[0] if len(found) == 1 else np.sort(np.concatenate(found))
    again = seqs[1:] == seqs[:-1]
    if not again.any():
        rows, _ = columns.locate(seqs)
        return rows, np.ones(len(rows), dtype=np.int64)
    first = np.flatnonzero(np.concatenate([[True], ~again]))
    rows, known = columns.locate(seqs[first])
    return rows, np.diff(first, append=len(seqs))[known]
