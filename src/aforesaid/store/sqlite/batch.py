"""Storing a batch: many messages of one owner and thread, with few statements. They are indexed after the commit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice, repeat
from operator import attrgetter, lt
from typing import Final, NamedTuple

import apsw

from aforesaid.domain.caches import named_tuples
from aforesaid.domain.change import AddMessages
from aforesaid.domain.checks import EARLIEST
from aforesaid.domain.message import Draft, message_hashes
from aforesaid.domain.receipt import Repeated, Stored
from aforesaid.domain.scope import is_direct
from aforesaid.store.contract import Progress
from aforesaid.store.reporting import EVERY, MANY
from aforesaid.store.sql.appending import Prepared
from aforesaid.store.sqlite.append import Appender
from aforesaid.store.sqlite.write_transaction import WriteTransaction

_ROWS: Final = 250
"""Messages that one statement stores. SQLite binds at most 32,766 values to a statement, and apsw caches the compiled
statement if its text has at most 16,384 bytes."""
_OPTIONAL: Final = ("name", "given_id", "details")
"""Columns that may be NULL, and never hold an empty text."""
_REPLACES: Final = attrgetter("replaces")
_UNINDEXED: Final = "INSERT INTO unindexed (first_seq, last_seq, owner, thread) VALUES (?, ?, ?, ?)"


class Batch(NamedTuple):
    """Many messages of one owner and thread, none of which replaces another."""

    drafts: Sequence[Draft]
    silence: int
    hashes: Sequence[bytes]


def is_batch(changes: AddMessages) -> bool:
    """Return whether messages are stored as a batch: there are many, and none replaces another."""
    return len(changes) >= MANY and not any(map(_REPLACES, changes.drafts))


def prepare_batch(changes: AddMessages, progress: Progress | None) -> Batch:
    """Compute what a batch needs that needs no file."""
    drafts = changes.drafts
    hashes: list[bytes] = []
    for start in range(0, len(drafts), EVERY):
        hashes += message_hashes(drafts[start : start + EVERY], drafts[0].scope)
        if progress is not None:
            progress("prepared", len(hashes), len(drafts))
    return Batch(drafts, changes.silence, hashes)


class BatchAppender:
    """Appends one batch within a write transaction."""

    def __init__(self, transaction: WriteTransaction, appender: Appender, batch: Batch) -> None:
        """Use what appends single messages for those that have to be looked at one by one."""
        self._transaction = transaction
        self._appender = appender
        self._batch = batch
        self._scope = batch.drafts[0].scope

    def append(self, progress: Progress | None) -> list[Stored | Repeated]:
        """Store the messages, or return those that they repeat."""
        drafts, _, hashes = self._batch
        results: list[Stored | Repeated] = []
        first_seq = self._appender.next_seq
        for start in range(0, len(drafts), EVERY):
            some = slice(start, start + EVERY)
            results += self._together(drafts[some], hashes[some]) or self._first_alone(drafts[some], hashes[some])
            if progress is not None:
                progress("stored", len(results), len(drafts))
        if self._appender.next_seq > first_seq:
            owner, thread = self._transaction.names.place(self._scope, drafts[0].stored_at)
            self._transaction.connection.execute(_UNINDEXED, (first_seq, self._appender.next_seq - 1, owner, thread))
        return results

    def _first_alone(self, drafts: Sequence[Draft], hashes: Sequence[bytes]) -> Iterator[Stored | Repeated]:
        """Store messages of which the first may open a session, which the others then belong to."""
        yield from self._one_by_one(drafts[:1], hashes[:1])
        yield from self._together(drafts[1:], hashes[1:]) or self._one_by_one(drafts[1:], hashes[1:])

    def _one_by_one(self, drafts: Sequence[Draft], hashes: Sequence[bytes]) -> Iterator[Stored | Repeated]:
        silence, append = self._batch.silence, self._appender.append
        return (append(Prepared(draft, silence, 0, None, digest)) for draft, digest in zip(drafts, hashes, strict=True))

    def _together(self, drafts: Sequence[Draft], hashes: Sequence[bytes]) -> Iterable[Stored] | None:
        """Store messages that are surely new and of one session; None, and store nothing, if that is not sure."""
        if not drafts or self._scope.session is not None:
            return None
        appender, transaction, scope = self._appender, self._transaction, self._scope
        appender.write_messages()
        _, roles, texts, authors, names, times, times_given, stored_at, ids, _, details = zip(*drafts, strict=True)
        owner, thread = transaction.names.place(scope, stored_at[0])
        if any(times_given) and not self._are_later(times, thread):
            return None
        session = appender.sessions.newest_for(times, self._batch.silence, thread)
        if session is None:
            return None
        shared_thread = None if is_direct(scope.thread) else thread
        first_seq = appender.next_seq
        last_seq = first_seq + len(drafts) - 1
        numbers = {author: transaction.names.author(scope.space, author, stored_at[0]) for author in {*authors}}
        columns = {
            "seq": range(first_seq, last_seq + 1),
            "author": [*map(numbers.__getitem__, authors)],
            "role": roles,
            "text": texts,
            "at": times,
            "stored_at": stored_at,
            "hash": hashes,
        }
        # Most batches have none of these, and binding NULLs takes a quarter of the time.
        columns |= {name: column for name, column in zip(_OPTIONAL, (names, ids, details), strict=True) if any(column)}
        if not self._insert((owner, thread, shared_thread is not None, session.key), columns):
            return None
        appender.sessions.extend(session, thread, times, last_seq)
        appender.count(owner, shared_thread, (len(drafts), roles.count("user"), 0, last_seq, max(times)))
        appender.next_seq = last_seq + 1
        return named_tuples(Stored, zip(drafts, columns["seq"], repeat(session.name), hashes, strict=False))

    def _are_later(self, times: Sequence[int], thread: int) -> bool:
        """Return whether each time is later than the one before it, and than all messages of the thread."""
        last = self._transaction.connection.execute("SELECT max(at) FROM log WHERE thread = ?", (thread,)).get
        return all(map(lt, [EARLIEST - 1 if last is None else last, *times], times))

    def _insert(self, common: tuple[int, int, bool, int], columns: Mapping[str, Sequence[object]]) -> bool:
        """Insert rows; return False, and insert none, if one has the id of another message."""
        execute = self._transaction.connection.execute
        rows, names = zip(*columns.values(), strict=True), tuple(columns)
        execute("SAVEPOINT together")
        try:
            while some := [*islice(rows, _ROWS)]:
                execute(_insert(names, len(some)), (*common, *chain.from_iterable(some)))
        except apsw.ConstraintError:
            execute("ROLLBACK TO together; RELEASE together")
            return False
        execute("RELEASE together")
        return True


@cache
def _insert(names: Sequence[str], rows: int) -> str:
    values = f"(?1, ?2, ?3, ?4, 0{', ?' * len(names)})"
    return (
        f"INSERT INTO log (owner, thread, shared, session, words, {', '.join(names)}) "
        f"VALUES {', '.join([values] * rows)}"
    )
