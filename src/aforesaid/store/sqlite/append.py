"""Stores messages: rows, names, sessions, index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from itertools import chain, islice, repeat
from operator import attrgetter, lt
from typing import Final, NamedTuple, TypeAlias, TypeVar

import apsw

from aforesaid.domain.caches import named_tuples
from aforesaid.domain.checks import EARLIEST
from aforesaid.domain.message import Draft, Message, message_hashes, repeats
from aforesaid.domain.receipt import Repeated, Stored
from aforesaid.domain.scope import is_direct
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.contract import EVERY, MANY, Progress
from aforesaid.store.messages import MESSAGE, AddMessages, read_message
from aforesaid.store.placing import Growth, Placing, Prepared
from aforesaid.store.sql import Answer, Row, done, for_sqlite
from aforesaid.store.sqlite.connection import answered, every, one, owner_prefix, prefixed_terms, thread_prefix, writing
from aforesaid.store.sqlite.transaction import WriteTransaction
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
        return "log.shared = 1 AND log.thread = ?" if self.shared else "log.owner = ?"

    @property
    def table(self) -> str:
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
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM unindexed)").get)


def index_step(connection: apsw.Connection, place: Place | None = None) -> bool:
    """Index the next messages, of one place or of all, in a transaction. Return whether there were any."""
    with writing(connection):
        where, values = ("", ()) if place is None else (f"WHERE {place.column} = ?", (place.number,))
        left = STEP
        # Small batches leave many short ranges.
        while left > 0 and (waiting := connection.execute(_RANGE.format(where=where), values).fetchone()) is not None:
            left -= _index(connection, waiting, left)
    return left < STEP


def index_all(connection: apsw.Connection) -> None:
    """Index all messages that are not indexed yet, in the transaction that is open."""
    while (waiting := connection.execute(_RANGE.format(where="")).fetchone()) is not None:
        _index(connection, waiting, STEP)


def _index(connection: apsw.Connection, waiting: Row, most: int) -> int:
    """Index the first messages of a range. Return which part of a step that was, as a number of messages, at least 1.

    They may be fewer than the numbers of the range: some may have been erased.
    """
    first, last = waiting
    found: list[Row] = []
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


_BY_GIVEN_ID: Final = "SELECT seq FROM log WHERE thread = ? AND given_id = ?"
_BY_TIME: Final = "SELECT seq, given_id FROM log WHERE thread = ? AND at = ? AND text = ? ORDER BY seq"
_NEW_MESSAGE: Final = """
INSERT INTO log (seq, owner, thread, shared, session, author, role, name, text, at, stored_at, given_id, words, hash,
                 replaces, replaced, details)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_COUNT_PERSON: Final = """
UPDATE person SET messages = messages + ?2, turns = turns + ?3, open_turns = open_turns + ?3, words = words + ?4,
       last_seq = ?5, last_at = max(coalesce(last_at, ?6), ?6) WHERE id = ?1
"""
_COUNT_THREAD: Final = "UPDATE thread SET messages = messages + ?2, words = words + ?3 WHERE id = ?1"
_MESSAGE: Final = f"{for_sqlite(MESSAGE)} WHERE log.seq = ?"
_NEW_SESSION: Final = CHECKSUMS.insert_selected(
    "session",
    {
        "thread": "$1",
        "name": "$2",
        "automatic": "$3",
        "opened_by": "$4",
        "started_at": "$5",
        "last_at": "$5",
        "first_seq": "$6",
        "last_seq": "$6",
        "messages": "1",
        "timeout": "$7",
    },
    "",
)
_GROW: Final = """
UPDATE session SET started_at = min(started_at, ?2), last_at = max(last_at, ?3), last_seq = ?4, messages = messages + ?5
 WHERE id = ?1
"""


_Count: TypeAlias = tuple[int, int, int, int, int]
"""Messages, user turns, words, last sequence number and last time of an owner."""


class Appender(Placing):
    def __init__(self, transaction: WriteTransaction) -> None:
        super().__init__(transaction, transaction.names.sessions)
        self._transaction = transaction
        self._messages: list[tuple[object, ...]] = []
        self._index: list[tuple[int, str]] = []
        self._waiting: set[tuple[int, int | str | None]] = set()
        """The times and the ids, with their threads, of messages that are not written yet."""
        self._people: dict[int, _Count] = {}
        self._threads: dict[int, tuple[int, int]] = {}
        """Messages and words that stored counts lack, the latter for each shared thread."""
        self.next_seq = self._read_next_seq()
        """The number of the next message."""

    def take_back(self) -> None:
        """Forget what was collected, after the changes themselves have been taken back."""
        self._messages.clear()
        self._index.clear()
        self._waiting.clear()
        self._people.clear()
        self._threads.clear()
        self._grown.clear()
        self._entered.clear()
        self.next_seq = self._read_next_seq()

    def next_number(self, _: str) -> int:
        return self.next_seq

    def open_session(self, draft: Draft, name: str, silence: int, seq: int, *, automatic: bool) -> int:
        owner, thread = self._transaction.names.place(draft.scope, draft.stored_at)
        connection = self._transaction.connection
        connection.execute(_NEW_SESSION, (thread, name, automatic, owner, draft.at, seq, silence))
        return connection.last_insert_rowid()

    def collect(self, stored: Stored, step: Prepared, session: int, *, hidden: bool = False) -> None:
        draft, seq, _, digest = stored
        words, names = step.words, self._transaction.names
        scope = draft.scope
        owner, thread = names.place(scope, draft.stored_at)
        author = owner if draft.author == scope.user else names.author(scope.space, draft.author, draft.stored_at)
        shared_thread = None if is_direct(scope.thread) else thread
        row = (seq, owner, thread, shared_thread is not None, session, author, draft.role, draft.name, draft.text)
        self._messages.append(
            (*row, draft.at, draft.stored_at, draft.id, words, digest)
            + (draft.replaces, hidden or draft.is_tombstone, draft.details)
        )
        if step.terms is not None:
            self._index.append((seq, prefixed_terms(owner, shared_thread, step.terms)))
        self._waiting.add((thread, draft.at))
        if draft.id is not None:
            self._waiting.add((thread, draft.id))
        self.next_seq = seq + 1
        self.count(owner, shared_thread, (1, int(draft.role == "user"), words, seq, draft.at))

    def write(self) -> None:
        super().write()
        if self._people:
            many = self._transaction.connection.executemany
            many(_COUNT_PERSON, [(owner, *count) for owner, count in self._people.items()])
            many(_COUNT_THREAD, [(thread, *count) for thread, count in self._threads.items()])
            self._people.clear()
            self._threads.clear()

    def write_messages(self) -> None:
        if self._messages:
            many = self._transaction.connection.executemany
            many(_NEW_MESSAGE, self._messages)
            many(INDEX, self._index)
            self._messages.clear()
            self._index.clear()
            self._waiting.clear()

    def write_growth(self, grown: Mapping[tuple[str, int], Growth]) -> None:
        self._transaction.connection.executemany(
            _GROW, [(key, each.started, each.last, each.last_seq, each.messages) for (_, key), each in grown.items()]
        )
        self._transaction.names.trim()

    def delivered_before(self, draft: Draft) -> Answer[Message | None]:
        scope = draft.scope
        thread = self._transaction.names.thread(scope.space, scope.thread)
        if (thread, draft.at) in self._waiting or (thread, draft.id) in self._waiting:
            self.write_messages()
        execute = self._transaction.connection.execute
        if draft.id is not None:
            seq = execute(_BY_GIVEN_ID, (thread, draft.id)).get
            if seq is not None:
                return done(self._message(seq))
        if draft.at_given:
            for seq, given_id in every(execute(_BY_TIME, (thread, draft.at, draft.text))):
                found = self._message(seq)
                if repeats(draft, found, given_id):
                    return done(found)
        return done(None)

    def _message(self, seq: int) -> Message:
        return read_message(one(self._transaction.connection.execute(_MESSAGE, (seq,))))

    def count(self, owner: int, shared_thread: int | None, added: _Count) -> None:
        """Count messages that were collected or written."""
        people, threads = self._people, self._threads
        messages, turns, words, last_seq, last_at = added
        if owner in people:
            earlier = people[owner]
            people[owner] = (
                earlier[0] + messages, earlier[1] + turns, earlier[2] + words, last_seq, max(earlier[4], last_at)
            )  # fmt: skip
        else:
            people[owner] = added
        if shared_thread is not None:
            in_thread, counted = threads.get(shared_thread, (0, 0))
            threads[shared_thread] = in_thread + messages, counted + words

    def _read_next_seq(self) -> int:
        # Numbers are taken from the table that AUTOINCREMENT keeps, so that none is ever given twice.
        last: int | None = self._transaction.connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'log'"
        ).get
        return (last or 0) + 1


_ROWS: Final = 250
"""Messages that one statement stores. SQLite binds at most 32,766 values to a statement, and apsw caches the compiled
statement if its text has at most 16,384 bytes."""
_OPTIONAL: Final = ("name", "given_id", "details")
"""Columns that may be NULL, and never hold an empty text."""
_REPLACES: Final = attrgetter("replaces")
_UNINDEXED: Final = "INSERT INTO unindexed (first_seq, last_seq, owner, thread) VALUES (?, ?, ?, ?)"


class Batch(NamedTuple):
    drafts: Sequence[Draft]
    silence: int
    hashes: Sequence[bytes]


def is_batch(changes: AddMessages) -> bool:
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
        for draft, digest in zip(drafts, hashes, strict=True):
            step = Prepared(draft, self._batch.silence, 0, None, digest)
            yield answered(self._transaction.connection, self._appender.append(step))

    def _together(self, drafts: Sequence[Draft], hashes: Sequence[bytes]) -> Iterable[Stored] | None:
        """Store messages that are surely new and of one session; None, and store nothing, if that is not sure."""
        if not drafts or self._scope.session is not None:
            return None
        appender, transaction, scope = self._appender, self._transaction, self._scope
        appender.write_messages()
        _, roles, texts, authors, names, times, times_given, stored_at, ids, _, details = zip(*drafts, strict=True)
        owner, thread = transaction.names.place(scope, stored_at[0])
        if any(times_given):
            # They are surely new if each is later than the one before it, and than all messages of the thread.
            last = transaction.connection.execute("SELECT max(at) FROM log WHERE thread = ?", (thread,)).get
            if not all(map(lt, [EARLIEST - 1 if last is None else last, *times], times)):
                return None
        session = answered(transaction.connection, appender.newest_session(scope))
        surely = (session.surely_has(at, self._batch.silence) for at in (min(times), max(times))) if session else ()
        if session is None or not all(surely):
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
        session.last = max(session.last, *times)
        appender.grow(scope.space, session.key, session.last, last_seq, len(drafts))
        appender.count(owner, shared_thread, (len(drafts), roles.count("user"), 0, last_seq, max(times)))
        appender.next_seq = last_seq + 1
        return named_tuples(Stored, zip(drafts, columns["seq"], repeat(session.name), hashes, strict=False))

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
