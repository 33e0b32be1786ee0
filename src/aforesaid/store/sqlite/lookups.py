"""What rules look up, in SQLite."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import apsw

from aforesaid.domain.agenda import Entry
from aforesaid.store import records
from aforesaid.store.dialects import for_sqlite
from aforesaid.store.questions import Question
from aforesaid.store.rules.lookups import PlannedEntries
from aforesaid.store.sql.lookups import LOOKUPS as IN_SQL
from aforesaid.store.sql.tables import ENTRY
from aforesaid.store.sqlite.rows import answering

_PLANNED: Final = f"""
{for_sqlite(ENTRY)} WHERE (policy, space, user, thread, day) IN (
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?))
"""


def _planned(connection: apsw.Connection, lookup: PlannedEntries) -> list[Entry]:
    return [records.entry(row) for row in connection.execute(_PLANNED, (json.dumps(lookup.subjects),))]


LOOKUPS: Final[Mapping[type[Question[Any]], Callable[[apsw.Connection, Any], Any]]] = {
    **answering(IN_SQL),
    PlannedEntries: _planned,
}
