"""Asking the database within one transaction, with as few round trips as possible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from aforesaid.errors import StoreDamaged
from aforesaid.store.postgres.deadline import cut_after

if TYPE_CHECKING:
    import psycopg

    from aforesaid.store.postgres.connection import Connection

Row = tuple[Any, ...]
Statement = tuple[str, tuple[Any, ...]]

_SPACE: Final = "SELECT set_config('aforesaid.space', $1, true), set_config('aforesaid.reach', $2, true)"
SNAPSHOT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
WRITING: Final = "BEGIN ISOLATION LEVEL READ COMMITTED"


def opening(begin: str, space: str | None) -> list[Statement]:
    """Return what a transaction starts with: it can see one space, or all of them."""
    return [(begin, ()), (_SPACE, ("" if space is None else space, "all" if space is None else "one"))]


def columns(table: Sequence[Sequence[Any]]) -> tuple[list[Any], ...]:
    """Turn rows into columns, as `unnest` wants them."""
    return tuple([list(column) for column in zip(*table, strict=True)])


class Queries:
    """One transaction. What needs no answer waits, and travels together with the next question."""

    def __init__(self, connection: Connection, first: list[Statement], answer_seconds: float | None = None) -> None:
        """Cut the connection when the database does not answer a round trip within `answer_seconds`."""
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
