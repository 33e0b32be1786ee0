"""Statements for both databases (`store.sql`), run on a connection to the file, and the numbers of names."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, TypeVar

import apsw

from aforesaid.domain.scope import Scope
from aforesaid.errors import StoreDamaged
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.placing import Latest, Place
from aforesaid.store.sql import Answer, Row, for_sqlite

T = TypeVar("T")
Key = TypeVar("Key")
Value = TypeVar("Value")


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
    execute = connection.execute
    try:
        statements = next(answer)
        while True:
            found = [execute(for_sqlite(text), bound(values)).fetchall() for text, values in statements]
            statements = answer.send(found)
    except StopIteration as end:
        result: T = end.value
        return result


_as_json: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def bound(values: Iterable[Any]) -> list[Any]:
    """Return values as SQLite takes them: lists as JSON."""
    return [_as_json(value) if isinstance(value, list) else value for value in values]


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
