"""Statements for both databases (`store.sql`), run on a connection to the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import apsw

from aforesaid.errors import StoreDamaged
from aforesaid.store.dialects import for_sqlite
from aforesaid.store.questions import Question
from aforesaid.store.records import Row
from aforesaid.store.sql.statements import Answer, Answers, Select

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
