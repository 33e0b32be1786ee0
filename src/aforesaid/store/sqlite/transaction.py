"""One write transaction of a file: how rows, names, indexes and vectors are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import apsw

from aforesaid.domain.checks import now
from aforesaid.domain.hit import VectorRow
from aforesaid.domain.memory import NoteKey, NoteVector
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import VectorOf
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.operations import Transaction
from aforesaid.store.placing import Latest, Place
from aforesaid.store.ranking import content_hash, note_number_of
from aforesaid.store.sql import Answer, done, for_sqlite
from aforesaid.store.sqlite.connection import bound
from aforesaid.store.vector_matrix import dimensions_of

Key = TypeVar("Key")
Value = TypeVar("Value")

_NEXT_NUMBER: Final = "(SELECT 1 + coalesce(max(seq), 0) AS id FROM sqlite_sequence WHERE name = '{}')"
"""The number that a new row of a table gets, as a table of one row. None is ever given twice."""
_AUDIT: Final = CHECKSUMS.insert_selected(
    "audit",
    {
        "id": "new.id",
        "at": "$1",
        "space": "$2",
        "user": "$3",
        "actor": "$4",
        "action": "$5",
        "subject": "$6",
    },
    f"FROM {_NEXT_NUMBER.format('audit')} AS new",
)


_NEW_EMBEDDER: Final = "INSERT INTO embedder (name, dimensions) VALUES (?, ?) ON CONFLICT DO NOTHING"
_SEEN: Final = "UPDATE embedder SET {mark} = max({mark}, ?) WHERE name = ?"
# A message keeps the vector that it has, unless this is a shorter form of it.
_ADD_VECTOR: Final = """
INSERT OR REPLACE INTO vector (embedder, owner, seq, content, value)
SELECT e.id, log.owner, log.seq, ?3, ?4 FROM log JOIN embedder e ON e.name = ?1 WHERE log.seq = ?2 AND NOT EXISTS (
    SELECT 1 FROM vector v WHERE v.seq = ?2 AND v.embedder = e.id AND length(v.value) <= length(?4))
"""
_ADD_NOTE_VECTOR: Final = """
INSERT INTO note_vector (embedder, owner, note, value)
SELECT (SELECT id FROM embedder WHERE name = ?1), owner, ?3, ?4 FROM {table} WHERE id = ?2
ON CONFLICT DO NOTHING
"""
_INDEX_NOTE: Final = "INSERT INTO note_index (rowid, terms) VALUES (?2, index_terms(?1, 0, 0, ?3))"
_UNINDEX_NOTE: Final = """
INSERT INTO note_index (note_index, rowid, terms) VALUES ('delete', ?2, index_terms(?1, 0, 0, ?3))
"""
_MARKS: Final = {"summary": "summaries_up_to", "memory": "memories_up_to"}
"""The columns that say up to which note of a kind an embedder has come."""


_PERSON = "SELECT id FROM person WHERE space = ? AND name = ?"
_NEW_PERSON = CHECKSUMS.insert("person", ("space", "name", "created_at"))
_OWNS = CHECKSUMS.update("person", "id = $1 AND owner = 0", owner="1")
_THREAD = "SELECT id FROM thread WHERE space = ? AND name = ?"
_NEW_THREAD = CHECKSUMS.insert("thread", ("space", "name"))


class Names:
    """Numbers of people and threads, for the one connection that writes. New ones are stored.

    All of it must be forgotten whenever another connection may have written, or a transaction was taken back.
    """

    def __init__(self, connection: apsw.Connection, limit: int = 100_000) -> None:
        self._connection = connection
        self._people: dict[tuple[str, str], int] = {}
        self._owners: dict[int, None] = {}
        self._threads: dict[tuple[str, str], int] = {}
        self.sessions: dict[Place, Latest | None] = {}
        """The newest automatic session of each thread."""
        self._places: dict[Scope, tuple[int, int]] = {}
        self._limit = limit

    def forget(self) -> None:
        self._people.clear()
        self._owners.clear()
        self._threads.clear()
        self.sessions.clear()
        self._places.clear()

    def trim(self) -> None:
        """Drop remembered sessions when there are too many. They must have been written down."""
        if len(self.sessions) >= self._limit:
            self.sessions.clear()

    def place(self, scope: Scope, now: int) -> tuple[int, int]:
        """Return the numbers of the owner and of the thread that a message is about to go to."""
        found = self._places.get(scope)
        if found is None:
            found = self.owner(scope.space, scope.user, now), self.thread(scope.space, scope.thread)
            self._remember(self._places, scope, found)
        return found

    def author(self, space: str, name: str, now: int) -> int:
        number = self._people.get((space, name))
        if number is None:
            number = find_person(self._connection, space, name)
            if number is None:
                self._connection.execute(_NEW_PERSON, (space, name, now))
                number = self._connection.last_insert_rowid()
            self._remember(self._people, (space, name), number)
        return number

    def owner(self, space: str, name: str, now: int) -> int:
        """Return the number of a person to whom something is about to belong."""
        number = self.author(space, name, now)
        if number not in self._owners:
            self._connection.execute(_OWNS, (number,))
            self._remember(self._owners, number, None)
        return number

    def thread(self, space: str, name: str) -> int:
        number = self._threads.get((space, name))
        if number is None:
            number = find_thread(self._connection, space, name)
            if number is None:
                self._connection.execute(_NEW_THREAD, (space, name))
                number = self._connection.last_insert_rowid()
            self._remember(self._threads, (space, name), number)
        return number

    def _remember(self, cache: dict[Key, Value], key: Key, value: Value) -> None:
        if len(cache) >= self._limit:
            cache.clear()
        cache[key] = value


def find_person(connection: apsw.Connection, space: str, name: str) -> int | None:
    number: int | None = connection.execute(_PERSON, (space, name)).get
    return number


def find_thread(connection: apsw.Connection, space: str, name: str) -> int | None:
    number: int | None = connection.execute(_THREAD, (space, name)).get
    return number


@contextmanager
def overwriting(connection: apsw.Connection) -> Iterator[None]:
    before = connection.pragma("secure_delete")
    connection.pragma("secure_delete", 1)
    try:
        yield
    finally:
        connection.pragma("secure_delete", before)


def _set_indexes(connection: apsw.Connection, thorough: int) -> None:
    for table in ("log_index", "note_index"):
        connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('secure-delete', {thorough})")


@dataclass(frozen=True, slots=True)
class WriteTransaction(Transaction):
    checksums = CHECKSUMS
    connection: apsw.Connection
    names: Names

    def later(self, text: str, *values: Any) -> None:  # noqa: ANN401 - whatever the text binds
        self.connection.execute(for_sqlite(text), bound(values))

    def number(self, table: str, _: str, least: int = 0) -> int:
        number: int = self.connection.execute(f"SELECT id FROM {_NEXT_NUMBER.format(table)}").get
        return max(least, number)

    def space(self, _: str) -> dict[str, str]:
        return {}

    def owner(self, space: str, user: str) -> int:
        return self.names.owner(space, user, now())

    def whose(self, space: str, user: str) -> dict[str, int]:
        return {"owner": self.owner(space, user)}

    def person(self, space: str, name: str, at: int | None = None) -> int:
        return self.names.author(space, name, now() if at is None else at)

    def thread(self, space: str, name: str) -> int:
        return self.names.thread(space, name)

    def terms(self, _: str) -> dict[str, Any]:
        return {}

    def own(self, scope: Scope, at: int) -> None:
        self.names.owner(scope.space, scope.user, at)

    def audit(self, scope: Scope, actor: str, action: str, subject: str, at: int | None = None) -> None:
        when = now() if at is None else at
        self.connection.execute(_AUDIT, (when, scope.space, scope.user, actor, action, subject))

    def index_note(self, scope: Scope, key: NoteKey, text: str, before: str | None = None) -> None:
        owner, note, execute = self.owner(scope.space, scope.user), note_number_of(key), self.connection.execute
        if before is not None:
            execute(_UNINDEX_NOTE, (owner, note, before))
            # It is embedded again: the mark goes back to it, and those after it have their vectors.
            execute("DELETE FROM note_vector WHERE owner = ? AND note = ?", (owner, note))
            mark = _MARKS[key.kind]
            execute(f"UPDATE embedder SET {mark} = min({mark}, ? - 1)", (key.id,))
        execute(_INDEX_NOTE, (owner, note, text))

    def add_vectors(self, embedder: str, rows: Sequence[VectorRow], up_to: int) -> None:
        execute, new = self.connection.execute, [row for row in rows if row.value]
        execute(_NEW_EMBEDDER, (embedder, max((dimensions_of(row.value) for row in new), default=0)))
        values = [(embedder, row.seq, content_hash(row.text), row.value) for row in new]
        self.connection.executemany(_ADD_VECTOR, values)
        execute(_SEEN.format(mark="up_to"), (up_to, embedder))

    def add_note_vectors(self, embedder: str, rows: Sequence[NoteVector]) -> None:
        execute = self.connection.execute
        for key, value, _ in rows:
            execute(_NEW_EMBEDDER, (embedder, dimensions_of(value)))
            execute(_ADD_NOTE_VECTOR.format(table=key.kind), (embedder, key.id, note_number_of(key), value))
            execute(_SEEN.format(mark=_MARKS[key.kind]), (key.id, embedder))

    def put_vector(self, row: VectorOf) -> Answer[bool]:
        text = self.connection.execute("SELECT text FROM log WHERE seq = ?", (row.seq,)).get
        self.connection.execute(_NEW_EMBEDDER, (row.embedder, dimensions_of(row.value)))
        self.connection.execute(_ADD_VECTOR, (row.embedder, row.seq, content_hash(text or ""), row.value))
        return done(bool(self.connection.changes()))

    @contextmanager
    def overwriting(self) -> Iterator[None]:
        """Overwrite the bytes of what is deleted. The keyword index otherwise only records that words are deleted."""
        with overwriting(self.connection):
            _set_indexes(self.connection, 1)
            yield
            _set_indexes(self.connection, 0)

    def dropped(self, _: str) -> None:
        self.names.forget()
