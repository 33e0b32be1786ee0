"""Which function answers which question, and which lookup of a rule, in SQLite."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

import apsw

from aforesaid.domain.scope import Entry
from aforesaid.store import questions, records
from aforesaid.store.rules.writes import PlannedEntries
from aforesaid.store.sql import answers, writes
from aforesaid.store.sql.appending import ENTRY
from aforesaid.store.sql.statements import for_sqlite
from aforesaid.store.sqlite import search
from aforesaid.store.sqlite.caches import Caches
from aforesaid.store.sqlite.rows import answering

_PLANNED: Final = f"""
{for_sqlite(ENTRY)} WHERE (policy, space, user, thread, day) IN (
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(?))
"""


def _planned(connection: apsw.Connection, lookup: PlannedEntries) -> list[Entry]:
    return [records.entry(row) for row in connection.execute(_PLANNED, (json.dumps(lookup.subjects),))]


ANSWERS: Final[Mapping[type, Callable[[apsw.Connection, Any], Any]]] = {
    **answering(answers.ANSWERS),
    questions.UnembeddedMessages: search.unembedded,
    questions.MessageVectors: search.of_messages,
    questions.TokenVectors: search.of_tokens,
    questions.UnembeddedNotes: search.unembedded_notes,
    questions.SearchNotes: search.search_notes,
}
LOOKUPS: Final[Mapping[type, Callable[[apsw.Connection, Any], Any]]] = {
    **answering(writes.LOOKUPS),
    PlannedEntries: _planned,
}
CACHED_ANSWERS: Final[Mapping[type, Callable[[apsw.Connection, Caches, Any], Any]]] = {
    questions.SearchText: search.search,
    questions.MatchText: search.match,
    questions.SearchVector: lambda connection, caches, question: caches.similar(connection, question),
}
"""Searches, which keep columns and vectors in memory."""
