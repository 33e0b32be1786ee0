"""Statements for both databases (`store.sql`), run on a connection to the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import apsw

from aforesaid.domain.checks import now
from aforesaid.domain.scope import Scope
from aforesaid.errors import StoreDamaged
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.questions import Question
from aforesaid.store.records import Row
from aforesaid.store.sql.statements import Answer, Answers, Select, for_sqlite

T = TypeVar("T")


def every(cursor: apsw.Cursor) -> list[Row]:
    """Return all rows. What their columns hold is said by the query, not by a type."""
    return cursor.fetchall()


def one(cursor: apsw.Cursor) -> Row:
    """Return the row that the query is certain to have."""
    row: Row | None = cursor.fetchone()
    if row is None:
        raise StoreDamaged("a row that must be there is missing; run: aforesaid verify")
    return row


def answered(connection: apsw.Connection, answer: Answer[T]) -> T:
    """Return the answer to a question."""
    execute = connection.execute
    try:
        statements = next(answer)
        while True:
            found = [execute(for_sqlite(text), bound(values)).fetchall() for text, values in statements]
            statements = answer.send(found)
    except StopIteration as end:
        result: T = end.value
        return result


def answering(answers: Answers) -> dict[type[Question[Any]], Callable[[apsw.Connection, Any], Any]]:
    """Return functions that answer questions on a connection."""
    return {kind: _function(answer) for kind, answer in answers.items()}


def _function(answer: Callable[[Any], Answer[Any]]) -> Callable[[apsw.Connection, Any], Any]:
    if not isinstance(answer, Select):
        return lambda connection, question: answered(connection, answer(question))
    # Many reads take less time in SQLite than a generator takes.
    query, values, read = for_sqlite(answer.text), answer.values, answer.read
    return lambda connection, question: read(question, connection.execute(query, bound(values(question))).fetchall())


def bound(values: Iterable[Any]) -> list[Any]:
    """Return values as SQLite takes them: lists as JSON."""
    return [json.dumps(value, separators=(",", ":")) if isinstance(value, list) else value for value in values]


_PERSON = "SELECT id FROM person WHERE space = ? AND name = ?"
_NEW_PERSON = CHECKSUMS.insert("person", ("space", "name", "created_at"))
_OWNS = CHECKSUMS.update("person", "id = $1 AND owner = 0", owner="1")
_THREAD = "SELECT id FROM thread WHERE space = ? AND name = ?"
_NEW_THREAD = CHECKSUMS.insert("thread", ("space", "name"))


@dataclass(slots=True)
class LatestSession:
    """The newest automatic session of a thread, and by how much it grew since that was written down."""

    key: int
    name: str
    started: int
    last: int
    earlier_last: int | None
    """When the session before it ended."""
    last_seq: int = 0
    grown_by: int = 0


class Names:
    """Numbers of people and threads, for the one connection that writes.

    All of it must be forgotten whenever another connection may have written, or a transaction was taken back.
    """

    def __init__(self, connection: apsw.Connection, limit: int = 100_000) -> None:
        """Remember at most `limit` numbers."""
        self._connection = connection
        self._people: dict[tuple[str, str], int] = {}
        self._owners: set[int] = set()
        self._threads: dict[tuple[str, str], int] = {}
        self.sessions: dict[int, LatestSession] = {}
        """The newest automatic session of each thread."""
        self._places: dict[Scope, tuple[int, int]] = {}
        self._limit = limit

    def forget(self) -> None:
        """Drop everything that was remembered."""
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
            if len(self._places) >= self._limit:
                self._places.clear()
            found = self._places[scope] = (
                self.owner(scope.space, scope.user, now),
                self.thread(scope.space, scope.thread),
            )
        return found

    def author(self, space: str, name: str, now: int) -> int:
        """Return the number of a person, who is written down if they are new."""
        number = self._people.get((space, name))
        if number is None:
            number = self._connection.execute(_PERSON, (space, name)).get
            if number is None:
                self._connection.execute(_NEW_PERSON, (space, name, now))
                number = self._connection.last_insert_rowid()
            self._make_room(self._people)
            self._people[space, name] = number
        return number

    def owner(self, space: str, name: str, now: int) -> int:
        """Return the number of a person to whom something is about to belong."""
        number = self.author(space, name, now)
        if number not in self._owners:
            self._connection.execute(_OWNS, (number,))
            if len(self._owners) >= self._limit:
                self._owners.clear()
            self._owners.add(number)
        return number

    def thread(self, space: str, name: str) -> int:
        """Return the number of a thread, which is written down if it is new."""
        number = self._threads.get((space, name))
        if number is None:
            number = find_thread(self._connection, space, name)
            if number is None:
                self._connection.execute(_NEW_THREAD, (space, name))
                number = self._connection.last_insert_rowid()
            self._make_room(self._threads)
            self._threads[space, name] = number
        return number

    def _make_room(self, cache: dict[tuple[str, str], int]) -> None:
        if len(cache) >= self._limit:
            cache.clear()


def find_person(connection: apsw.Connection, space: str, name: str) -> int | None:
    """Return the number of a person, or None."""
    number: int | None = connection.execute(_PERSON, (space, name)).get
    return number


def find_thread(connection: apsw.Connection, space: str, name: str) -> int | None:
    """Return the number of a thread, or None."""
    number: int | None = connection.execute(_THREAD, (space, name)).get
    return number


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


@dataclass(frozen=True, slots=True)
class WriteTransaction:
    """The inside of one write transaction."""

    connection: apsw.Connection
    names: Names

    def later(self, text: str, *values: Any) -> None:  # noqa: ANN401 - whatever the text binds
        """Run a statement for both databases."""
        self.connection.execute(for_sqlite(text), bound(values))

    def insert(self, table: str, row: Mapping[str, Any], *, replacing: tuple[str, ...] = ()) -> None:
        """Insert a row with its checksum. `replacing` is the key of a row that it may take the place of."""
        self.connection.execute(CHECKSUMS.insert_or_replace(table, tuple(row), replacing), bound(row.values()))

    def update(self, table: str, where: str, key: tuple[Any, ...], **values: Any) -> None:  # noqa: ANN401
        """Set columns of the rows that a condition finds, and their checksums. `key` is what the condition binds."""
        self.connection.execute(
            CHECKSUMS.update_bound(table, where, len(key), tuple(values)), (*key, *bound(values.values()))
        )

    def number(self, table: str, _: str, least: int = 0) -> int:
        """Return the number of a new row, which is at least `least`."""
        number: int = self.connection.execute(f"SELECT id FROM {_NEXT_NUMBER.format(table)}").get
        return max(least, number)

    def space(self, _: str) -> dict[str, str]:
        """Return the column that names the space of a row: there is none."""
        return {}

    def owner(self, space: str, user: str) -> int:
        """Return the number of a user."""
        return self.names.owner(space, user, now())

    def whose(self, space: str, user: str) -> dict[str, int]:
        """Return the column that names the owner of a row."""
        return {"owner": self.owner(space, user)}

    def person(self, space: str, name: str) -> int:
        """Return the number of a person."""
        return self.names.author(space, name, now())

    def thread(self, space: str, name: str) -> int:
        """Return the number of a thread, which is stored if it is new."""
        return self.names.thread(space, name)

    def array(self, values: Sequence[str]) -> str:
        """Return what a column holds of several texts: JSON."""
        return json.dumps(values, ensure_ascii=False)

    def terms(self, _: str) -> dict[str, Any]:
        """Return the column with the words of a note: there is an index instead."""
        return {}

    def own(self, scope: Scope, at: int) -> None:
        """Write down that something belongs to a user."""
        self.names.owner(scope.space, scope.user, at)

    def audit(self, scope: Scope, actor: str, action: str, subject: str, at: int | None = None) -> None:
        """Add a row to the audit log."""
        when = now() if at is None else at
        self.connection.execute(_AUDIT, (when, scope.space, scope.user, actor, action, subject))
