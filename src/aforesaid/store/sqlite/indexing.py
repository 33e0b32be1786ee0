"""The keyword index of batches, which is written after the batch is stored, one step at a time.

Table `unindexed` has the ranges of messages that are not in the index yet. The writer thread indexes them while nothing
else is to be written, and a search first has the messages indexed that it looks through. Where they cannot be indexed,
because the disk is full for example, the search is answered without them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Final, NamedTuple, TypeVar

import apsw

from aforesaid.store import records
from aforesaid.store.sqlite.connection import owner_prefix, prefixed_terms, thread_prefix
from aforesaid.text.languages import terms

T = TypeVar("T")

STEP: Final = 1_000
"""Maximum messages that are indexed in one transaction. It takes about 40 ms, in which nothing else can be written."""
_STEP_CHARACTERS: Final = 200_000
"""Characters of text after which a step ends, so that long messages take no longer."""
INDEX: Final = "INSERT INTO log_index (rowid, terms) VALUES (?, ?)"

_RANGE: Final = "SELECT first_seq, last_seq FROM unindexed {where} ORDER BY first_seq LIMIT 1"
_OF_PLACE: Final = "SELECT EXISTS (SELECT 1 FROM unindexed WHERE {column} = ?)"
_MESSAGES: Final = "SELECT seq, owner, thread, shared, text FROM log WHERE seq BETWEEN ? AND ? ORDER BY seq LIMIT ?"
_SET_WORDS: Final = "UPDATE log SET words = ? WHERE seq = ?"
_SHORTEN: Final = "UPDATE unindexed SET first_seq = ? WHERE first_seq = ?"


class Place(NamedTuple):
    """Whose messages are searched: all of a person's, or all of a shared thread's."""

    shared: bool
    number: int

    @property
    def prefix(self) -> str:
        """What the terms of its posting lists begin with."""
        return (thread_prefix if self.shared else owner_prefix)(self.number)

    @property
    def limit(self) -> str:
        """The condition on the log."""
        return "log.shared = 1 AND log.thread = ?" if self.shared else "log.owner = ?"

    @property
    def table(self) -> str:
        """Where its counts are."""
        return "thread" if self.shared else "person"

    @property
    def column(self) -> str:
        """The column of `unindexed` with its number."""
        return "thread" if self.shared else "owner"


class IndexIncomplete(Exception):
    """Messages that a search looks through are not in the keyword index yet. The search is made again once they are."""

    def __init__(self, place: Place) -> None:
        super().__init__(f"the messages of {place.table} {place.number} are not all indexed")
        self.place = place


_answers_without: Final = ContextVar("answers_without", default=False)
"""Whether a search is answered although messages that it looks through are not indexed."""


def is_complete_for(connection: apsw.Connection, place: Place) -> bool:
    """Return whether all messages of a place are in the keyword index. Raises IndexIncomplete if they must be."""
    complete = not connection.execute(_OF_PLACE.format(column=place.column), (place.number,)).get
    if not complete and not _answers_without.get():
        raise IndexIncomplete(place)
    return complete


def answer_without_waiting(work: Callable[[apsw.Connection], T], connection: apsw.Connection) -> T:
    """Make a search, without the keywords of messages that are not indexed yet."""
    token = _answers_without.set(True)
    try:
        return work(connection)
    finally:
        _answers_without.reset(token)


def is_incomplete(connection: apsw.Connection) -> bool:
    """Return whether any messages are not in the keyword index yet."""
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM unindexed)").get)


def index_step(connection: apsw.Connection, place: Place | None = None) -> bool:
    """Index the next messages, of one place or of all, in a transaction. Return whether there were any."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        where, values = ("", ()) if place is None else (f"WHERE {place.column} = ?", (place.number,))
        left = STEP
        # Small batches leave many short ranges.
        while left > 0 and (waiting := connection.execute(_RANGE.format(where=where), values).fetchone()) is not None:
            left -= _index(connection, waiting, left)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
    return left < STEP


def index_all(connection: apsw.Connection) -> None:
    """Index all messages that are not indexed yet, in the transaction that is open."""
    while (waiting := connection.execute(_RANGE.format(where="")).fetchone()) is not None:
        _index(connection, waiting, STEP)


def _index(connection: apsw.Connection, waiting: records.Row, most: int) -> int:
    """Index the first messages of a range. Return which part of a step that was, as a number of messages, at least 1.

    They may be fewer than the numbers of the range: some may have been erased.
    """
    first, last = waiting
    found: list[records.Row] = []
    characters = 0
    for row in connection.execute(_MESSAGES, (first, last, most)):
        found.append(row)
        characters += len(row[4]) if isinstance(row[4], str) else 0
        if characters > _STEP_CHARACTERS:
            break
    index, counts, total = [], [], 0
    for seq, owner, thread, shared, text in found:
        # A row that was damaged has no words; verify finds it.
        words = terms(text) if isinstance(text, str) else []
        index.append((seq, prefixed_terms(owner, thread if shared else None, " ".join(words))))
        counts.append((len(words), seq))
        total += len(words)
    connection.executemany(INDEX, index)
    connection.executemany(_SET_WORDS, counts)
    if found:
        _, owner, thread, shared, _ = found[0]
        connection.execute("UPDATE person SET words = words + ? WHERE id = ?", (total, owner))
        if shared:
            connection.execute("UPDATE thread SET words = words + ? WHERE id = ?", (total, thread))
    long = characters > _STEP_CHARACTERS
    if (len(found) < most and not long) or found[-1][0] == last:
        connection.execute("DELETE FROM unindexed WHERE first_seq = ?", (first,))
    else:
        connection.execute(_SHORTEN, (found[-1][0] + 1, first))
    return max(len(found), 1, round(STEP * characters / _STEP_CHARACTERS))
