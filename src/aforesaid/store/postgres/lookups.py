"""What rules look up, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aforesaid.domain.agenda import Entry
from aforesaid.store import records
from aforesaid.store.dialects import for_postgres
from aforesaid.store.postgres.queries import Queries, over_rows
from aforesaid.store.postgres.rows import answering
from aforesaid.store.questions import Question
from aforesaid.store.rules.lookups import PlannedEntries
from aforesaid.store.sql.lookups import LOOKUPS as IN_SQL
from aforesaid.store.sql.tables import ENTRY

_PLANNED: Final = over_rows(
    for_postgres(ENTRY)
    + """
    JOIN {rows} ON agenda.space = {space} AND agenda.policy = new.policy AND agenda.owner = new.owner
     AND agenda.thread = new.thread AND agenda.day = new.day
    """,
    policy="text",
    owner="text",
    thread="text",
    day="text",
)


async def _planned(queries: Queries, lookup: PlannedEntries) -> list[Entry]:
    wanted = [(subject.space, subject.policy, *subject[2:]) for subject in lookup.subjects]
    return [records.entry(row) for row in await queries.rows_of(_PLANNED, wanted)]


LOOKUPS: Final[Mapping[type[Question[Any]], Callable[[Queries, Any], Awaitable[Any]]]] = {
    **answering(IN_SQL),
    PlannedEntries: _planned,
}
