"""Asking the database within one transaction, with as few round trips as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aforesaid.errors import StoreDamaged
from aforesaid.store.postgres.deadline import cut_after
from aforesaid.store.postgres.packages import sql

if TYPE_CHECKING:
    import psycopg

    from aforesaid.store.postgres.connection import Connection

Row = tuple[Any, ...]
Statement = tuple[str, tuple[Any, ...]]

_SPACE: Final = "SELECT set_config('aforesaid.space', $1, true), set_config('aforesaid.reach', $2, true)"
SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITING: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"
_OTHERS: Final = 3
"""Maximum values of a row statement beside its rows."""


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
    """For rows of any spaces: the spaces are the array $1."""
    one: str
    """For rows of one space: it is $1, and is read from the table of spaces. A space that is not there has no rows."""


def over_rows(template: str, **types: str) -> RowStatement:
    """Return a statement that reads its rows from {rows}: a table `new` with the column `space` and columns of these types.

    Inside a lateral subquery, {space} names the space of a row. Further values are bound as {0}, {1} and {2}.
    """
    names = ", ".join(types)
    arrays = ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(types.values(), 2))
    others = [f"${place}" for place in range(len(types) + 2, len(types) + 2 + _OTHERS)]
    several = f"unnest($1::text[], {arrays}) AS new (space, {names})"
    one = f"(SELECT space.space, given.* FROM space CROSS JOIN unnest({arrays}) AS given ({names}) WHERE space.space = $1) AS new"
    return RowStatement(
        template.format(*others, rows=several, space="new.space"), template.format(*others, rows=one, space="$1")
    )


def statements(statement: RowStatement, rows: Sequence[Row], *others: Any, distributed: bool) -> list[Statement]:  # noqa: ANN401
    """Return what is run for rows that begin with their space."""
    if not distributed:
        return [(statement.several, (*columns(rows), *others))]
    by_space: dict[str, list[Row]] = {}
    for row in rows:
        by_space.setdefault(row[0], []).append(row[1:])
    return [(statement.one, (space, *columns(found), *others)) for space, found in by_space.items()]


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

    async def together(self, *statements: Statement) -> list[list[Row]]:
        """Ask several things in one round trip."""
        with cut_after(self._connection, self._answer_seconds):
            return await self._together(statements)

    async def _together(self, statements: Sequence[Statement]) -> list[list[Row]]:
        if len(statements) == 1 and not self._waiting:
            query, values = statements[0]
            return [await _rows(await self._connection.execute(query, values or None, binary=True))]
        waiting, self._waiting = self._waiting, []
        async with self._connection.pipeline():
            cursors = [
                await self._connection.execute(query, values or None, binary=True)
                for query, values in (*waiting, *statements)
            ]
        return [await _rows(cursor) for cursor in cursors[len(waiting) :]]

    async def rows(self, query: str, *values: Any) -> list[Row]:  # noqa: ANN401
        """Return all rows. What their columns hold is said by the query, not by a type."""
        (found,) = await self.together((query, values))
        return found

    async def rows_of(self, statement: RowStatement, table: Sequence[Row], *others: Any) -> list[Row]:  # noqa: ANN401
        """Return all rows for a table whose rows begin with their space."""
        asked = statements(statement, table, *others, distributed=self.distributed)
        return [row for found in await self.together(*asked) for row in found]

    async def first(self, query: str, *values: Any) -> Row | None:  # noqa: ANN401
        """Return the first row, if there is one."""
        found = await self.rows(query, *values)
        return found[0] if found else None

    async def one(self, query: str, *values: Any) -> Row:  # noqa: ANN401
        """Return the row that the query is certain to have."""
        found = await self.first(query, *values)
        if found is None:
            raise StoreDamaged("a row that must be there is missing; run: aforesaid verify")
        return found

    async def value(self, query: str, *values: Any) -> Any:  # noqa: ANN401
        """Return the first value of the first row; None where there is no row."""
        found = await self.first(query, *values)
        return None if found is None else found[0]

    async def finish(self, *, keep: bool) -> None:
        """Commit what was done, or take it back."""
        if not keep:
            self._waiting.clear()
        if self._connection.closed:
            return
        await self.together(("COMMIT" if keep else "ROLLBACK", ()))


async def _rows(cursor: psycopg.AsyncCursor[Row]) -> list[Row]:
    return [] if cursor.description is None else await cursor.fetchall()
