"""Keyword search over the posting lists of one scope."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import apsw

from recollect.domain.hit import Hit
from recollect.domain.scope import Scope, is_direct
from recollect.domain.words import Within
from recollect.store.ranking import Match, TextMatches, best_matches, hit
from recollect.store.sqlite import rows
from recollect.store.sqlite.connection import owner_prefix, thread_prefix
from recollect.store.sqlite.names import find_person, find_thread
from recollect.store.sqlite.reads import NOBODY, inside
from recollect.store.terms import query_words

_POSTINGS: Final = "SELECT doc FROM log_posting WHERE term = ?"


def search(connection: apsw.Connection, scope: Scope, words: str, within: Within, limit: int) -> list[Hit]:
    """Return the best matches of any of the words."""
    return _hits(connection, match(connection, scope, words, within, limit).matches)


def match(connection: apsw.Connection, scope: Scope, words: str, within: Within, limit: int) -> TextMatches:
    """Return the best matches of any of the words. Terms are looked up one by one: no query language is involved."""
    limit_to_scope, values = inside(connection, scope, within)
    if NOBODY in values:
        return TextMatches((), {})
    prefix, documents, total = _posting_lists(connection, scope, within)
    postings = {word: _posting(connection, prefix, terms) for word, terms in query_words(words)}

    def lengths(page: Sequence[int]) -> Mapping[int, int]:
        query = f"SELECT seq, words FROM log WHERE seq IN (SELECT value FROM json_each(?)) AND {limit_to_scope}"
        return dict(rows.every(connection.execute(query, (json.dumps(page), *values))))

    return best_matches(
        postings,
        documents=documents,
        average_length=max(total / max(documents, 1), 1.0),
        lengths=lengths,
        limit=limit,
    )


def _posting(connection: apsw.Connection, prefix: str, terms: Sequence[str]) -> list[tuple[int, int]]:
    # Counted here, because SQLite would sort what the index has in order already.
    found: Counter[int] = Counter()
    for term in terms:
        found.update(seq for (seq,) in connection.execute(_POSTINGS, (prefix + term,)))
    return list(found.items())


def _posting_lists(connection: apsw.Connection, scope: Scope, within: Within) -> tuple[str, int, int]:
    """Return the prefix of the posting lists that hold the whole scope, and how many messages and terms they cover."""
    shared = within != "user" and not is_direct(scope.thread)
    if shared:
        thread = find_thread(connection, scope.space, scope.thread)
        messages, words = rows.one(connection.execute("SELECT messages, words FROM thread WHERE id = ?", (thread,)))
        return thread_prefix(thread or NOBODY), messages, words
    owner = find_person(connection, scope.space, scope.user)
    messages, words = rows.one(connection.execute("SELECT messages, words FROM person WHERE id = ?", (owner,)))
    return owner_prefix(owner or NOBODY), messages, words


def _hits(connection: apsw.Connection, found: Sequence[Match]) -> list[Hit]:
    query = f"{rows.MESSAGE} WHERE log.seq IN (SELECT value FROM json_each(?))"
    wanted = json.dumps([match.seq for match in found])
    by_seq = {message.seq: message for message in rows.messages(connection.execute(query, (wanted,)))}
    return [hit(match, by_seq[match.seq]) for match in found]
