"""Deleting by age in PostgreSQL, where a transaction writes to one space."""

from __future__ import annotations

from typing import NamedTuple

from aforesaid.domain.retention import Discard
from aforesaid.store.dialects import for_postgres
from aforesaid.store.postgres.queries import Queries
from aforesaid.store.sql.upkeep import OLD, moment_of


class Discarding(NamedTuple):
    """A discard in the space that it was found to have something to do in."""

    step: Discard
    space: str | None
    """None where nothing is old enough in any space."""


async def locate(queries: Queries, step: Discard) -> Discarding:
    """Find a space in which something is old enough."""
    for old in OLD[step.what]:
        text = for_postgres(f"SELECT y.space {old} LIMIT 1")
        space = await queries.value(text, moment_of(step.what, step.before))
        if space is not None:
            return Discarding(step, space)
    return Discarding(step, None)
