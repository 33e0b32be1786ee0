"""Asking the database within one transaction, with as few round trips as possible."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from aforesaid.domain.checks import moment
from aforesaid.domain.report import Setting
from aforesaid.errors import StoreRefused
from aforesaid.extras import how_to_install
from aforesaid.store.checksums import CHECKSUM
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.people import Settings
from aforesaid.store.sql import Answer, for_postgres

if TYPE_CHECKING:
    from aforesaid.store.postgres.connection import Connection

__all__ = ["HalfVector", "Vector", "sql"]


try:
    from pgvector import HalfVector, Vector
    from psycopg import sql
except ImportError as missing:  # pragma: no cover - tested in a process that cannot import it
    raise StoreRefused(f"PostgreSQL needs more packages; {how_to_install('postgres')}") from missing


@contextmanager
def cut_after(connection: Connection, seconds: float | None) -> Iterator[None]:
    """Cut a connection when the block takes longer than this: what waits for an answer then fails at once.

    The server's own timeouts do not help with a server that hangs, and cancelling the task would wait for it, too.
    """
    if seconds is None:
        yield
        return
    timer = asyncio.get_running_loop().call_later(max(seconds, 0.0), _cut, connection)
    try:
        yield
    finally:
        timer.cancel()


def _cut(connection: Connection) -> None:
    if not connection.closed:
        # A copy of the descriptor: closing the copy leaves the connection's own to libpq.
        with suppress(OSError), socket.socket(fileno=os.dup(connection.pgconn.socket)) as copy:
            copy.shutdown(socket.SHUT_RDWR)


T = TypeVar("T")

Row = tuple[Any, ...]
Statement = tuple[str, tuple[Any, ...]]

_SPACE: Final = "SELECT set_config('aforesaid.space', $1, true), set_config('aforesaid.reach', $2, true)"
SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITING: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_OTHERS: Final = 3
"""Maximum values of a row statement beside its rows."""
_VALUES: Final = 8_000
"""Maximum values of one INSERT with lists of values. PostgreSQL binds up to 65,535."""


def opening(begin: str, space: str | None, *, distributed: bool) -> list[Statement]:
    """Return what a transaction starts with: it can see one space, or all of them."""
    if distributed:
        # Citus repeats SET LOCAL on the workers, and not a call of set_config.
        visible = (
            "SET LOCAL aforesaid.reach = 'all'" if space is None else f"SET LOCAL aforesaid.space = {sql.quote(space)}"
        )
        return [(begin, ()), (visible, ())]
    return [(begin, ()), (_SPACE, ("" if space is None else space, "all" if space is None else "one"))]


def columns(table: Sequence[Sequence[Any]]) -> tuple[list[Any], ...]:
    """Turn rows into columns, as `unnest` wants them."""
    return tuple([list(column) for column in zip(*table, strict=True)])


class RowStatement(NamedTuple):
    """A statement over rows of several spaces.

    One database takes all rows at once. Where Citus distributes the tables by space, the rows of each space have a
    statement of their own that names the space by equality, so that it reaches one shard.
    """

    several: str
    """For rows of any spaces: $1 is the array of their spaces, and each further column is an array too."""
    one: str
    """For rows of one space, which is $1."""
    after: str
    """For one row, as a part of a statement whose part `held` is the space's last number and the revision of whoever is
    new in it, or nothing: numbers of messages and revisions count on from there."""
    table: str = ""
    """For an insert: where the rows go. `one` then has {values} in it, one list for each row."""
    types: Mapping[str, str] = MappingProxyType({})
    """For an insert: the columns and their types."""


_COUNTED_ON: Final = {"seq": "held.last_seq", "last_seq": "held.last_seq", "revision": "held.first_revision"}


def _types(columns: str) -> dict[str, str]:
    pairs = [column.split() for column in columns.split(",")]
    return {pair[0]: pair[1] for pair in pairs}


def _sources(types: Mapping[str, str]) -> tuple[str, str]:
    """Return the table `new` of rows that are bound as arrays, and of one row that counts on from `held`."""
    types = {"space": "text", **types}
    arrays = ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(types.values(), 1))
    values = {name: f"${place}::{kind}" for place, (name, kind) in enumerate(types.items(), 1)}
    counted = ", ".join(
        f"{_COUNTED_ON[name]} + {value} AS {name}" if name in _COUNTED_ON else f"{value} AS {name}"
        for name, value in values.items()
    )
    return f"unnest({arrays}) AS new ({', '.join(types)})", f"(SELECT {counted} FROM held) AS new"


def over_rows(template: str, columns: str) -> RowStatement:
    """Return a statement that reads its rows from {rows}: a table `new` with columns, given as "name type, …".

    {space} names the space of a row. Further values are bound as {0}, {1} and {2}.
    """
    types = _types(columns)
    arrays = ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(types.values(), 2))
    others = [f"${place}" for place in range(len(types) + 2, len(types) + 2 + _OTHERS)]
    several, after = (template.format(*others, rows=rows, space="new.space") for rows in _sources(types))
    one = template.format(*others, rows=f"unnest({arrays}) AS new ({', '.join(types)})", space="$1")
    return RowStatement(several, one, after)


def insert_rows(table: str, columns: str, then: str = "") -> RowStatement:
    """Return a statement that inserts rows of these columns. `then` says what to do with those that are there.

    Rows of a table that has checksums get theirs.
    """
    types = _types(columns)
    names = ("space", *types)
    if table not in CHECKSUMS.columns:
        into = f"INSERT INTO {table} ({', '.join(names)})"
        several, after = (f"{into} SELECT * FROM {rows} {then}" for rows in _sources(types))
        return RowStatement(several, f"{into} VALUES {{values}} {then}", after, table, types)
    values = {name: f"new.{name}" for name in names}
    several, after = (CHECKSUMS.insert_selected(table, values, f"FROM {rows} {then}") for rows in _sources(types))
    # Citus plans an INSERT with values in half the time of one that selects.
    one = f"INSERT INTO {table} ({', '.join(names)}, {CHECKSUM}) VALUES {{values}} {then}"
    return RowStatement(several, one, after, table, types)


def statements(statement: RowStatement, rows: Sequence[Row], *others: Any, distributed: bool) -> list[Statement]:  # noqa: ANN401
    """Return what is run for rows that begin with their space."""
    if not distributed:
        return [(statement.several, (*columns(rows), *others))]
    by_space: dict[str, list[Row]] = {}
    for row in rows:
        by_space.setdefault(row[0], []).append(row[1:])
    if not statement.types:
        return [(statement.one, (space, *columns(found), *others)) for space, found in by_space.items()]
    most = _VALUES // len(statement.types)
    return [
        _insert(statement, space, found[start : start + most])
        for space, found in by_space.items()
        for start in range(0, len(found), most)
    ]


def _insert(statement: RowStatement, space: str, rows: Sequence[Row]) -> Statement:
    width, values = len(statement.types), []
    for first in range(2, 2 + len(rows) * width, width):
        places = {name: f"${place}::{kind}" for place, (name, kind) in enumerate(statement.types.items(), first)}
        places = {"space": "$1::text", **places}
        checksum = [CHECKSUMS.of(statement.table, places)] if statement.table in CHECKSUMS.columns else []
        values.append(f"({', '.join([*places.values(), *checksum])})")
    return statement.one.format(values=", ".join(values)), (space, *(value for row in rows for value in row))


class Queries:
    """One transaction. What needs no answer waits, and travels together with the next question."""

    def __init__(
        self,
        connection: Connection,
        first: list[Statement],
        answer_seconds: float | None = None,
        *,
        distributed: bool = False,
    ) -> None:
        """Cut the connection when the database does not answer a round trip within `answer_seconds`.

        `distributed` says that Citus distributes the tables.
        """
        self.distributed = distributed
        self._connection = connection
        self._waiting = first
        self._answer_seconds = answer_seconds

    def later(self, query: str, *values: Any) -> None:  # noqa: ANN401 - whatever the query binds
        """Let something be done before the next question is asked, or at the end."""
        self._waiting.append((query, values))

    def later_rows(self, statement: RowStatement, rows: Sequence[Row], *others: Any) -> None:  # noqa: ANN401
        """Let something be done with rows that begin with their space."""
        for query, values in statements(statement, rows, *others, distributed=self.distributed):
            self.later(query, *values)

    async def together(self, *statements: Statement) -> list[list[Row]]:
        """Ask several things in one round trip."""
        waiting, self._waiting = self._waiting, []
        with cut_after(self._connection, self._answer_seconds):
            answers = await self._connection.together([*waiting, *statements])
        return answers[len(waiting) :]

    async def rows(self, query: str, *values: Any) -> list[Row]:  # noqa: ANN401
        """Return all rows. What their columns hold is said by the query, not by a type."""
        (found,) = await self.together((query, values))
        return found

    async def rows_of(self, statement: RowStatement, table: Sequence[Row], *others: Any) -> list[Row]:  # noqa: ANN401
        """Return all rows for a table whose rows begin with their space."""
        asked = statements(statement, table, *others, distributed=self.distributed)
        return [row for found in await self.together(*asked) for row in found]

    async def first(self, query: str, *values: Any) -> Row | None:  # noqa: ANN401
        found = await self.rows(query, *values)
        return found[0] if found else None

    async def value(self, query: str, *values: Any) -> Any:  # noqa: ANN401
        """Return the first value of the first row; None where there is no row."""
        found = await self.first(query, *values)
        return None if found is None else found[0]

    async def finish(self, *, keep: bool) -> None:
        if not keep:
            self._waiting.clear()
        if self._connection.closed:
            return
        await self.together(("COMMIT" if keep else "ROLLBACK", ()))


async def answered(queries: Queries, answer: Answer[T]) -> T:
    """Return what a question or a change says, for which statements for both databases are run."""
    try:
        asked = next(answer)
        while True:
            asked = answer.send(
                await queries.together(*((for_postgres(text), tuple(values)) for text, values in asked))
            )
    except StopIteration as end:
        result: T = end.value
        return result


_SETTINGS: Final = over_rows(
    """
    SELECT setting.space, setting.owner, setting.key, setting.value::text, setting.updated_at
      FROM {rows} JOIN setting ON setting.space = {space} AND setting.owner = new.owner ORDER BY setting.key
    """,
    "owner text",
)
_MOST: Final = 1_000
"""Maximum people and spaces of one statement."""


_Key = tuple[str, str]
"""A space, and a user in it."""
Reading = Callable[[Callable[[Queries], Awaitable[Any]]], Awaitable[Any]]
"""Carries something out in a transaction that sees all spaces."""


class GatheredSettings:
    """Answers questions for settings. Those that come while others are being answered wait for the next statement."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._waiting: dict[_Key, asyncio.Future[list[Setting]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def read(self, question: Settings) -> list[Setting]:
        key = question.scope[:2]
        answer = self._waiting.get(key)
        if answer is None:
            answer = self._waiting[key] = asyncio.get_running_loop().create_future()
        if self._task is None:
            self._task = asyncio.create_task(self._answer_all())
        # Others may wait for the same answer when this one no longer does.
        return await asyncio.shield(answer)

    async def _answer_all(self) -> None:
        try:
            while self._waiting:
                asked = {key: self._waiting.pop(key) for key in list(self._waiting)[:_MOST]}
                try:
                    found = await self._reading(lambda queries, asked=asked: _settings(queries, list(asked)))  # type: ignore[misc]
                except BaseException as error:
                    for answer in asked.values():
                        if isinstance(error, asyncio.CancelledError):
                            answer.cancel()
                        elif not answer.done():
                            answer.set_exception(error)
                            answer.exception()  # whoever waited may have gone
                    if not isinstance(error, Exception):
                        raise
                else:
                    for key, answer in asked.items():
                        if not answer.done():
                            answer.set_result(found.get(key, []))
        finally:
            self._task = None


async def _settings(queries: Queries, keys: list[_Key]) -> dict[_Key, list[Setting]]:
    found: dict[_Key, list[Setting]] = {}
    for space, user, key, value, at in await queries.rows_of(_SETTINGS, keys):
        found.setdefault((space, user), []).append(Setting(key, json.loads(value), moment(at)))
    return found
