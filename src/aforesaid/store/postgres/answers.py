"""Which function answers which question, and which lookup of a rule, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from aforesaid.domain.report import Stats
from aforesaid.domain.scope import Entry
from aforesaid.store import questions, records
from aforesaid.store.postgres import search
from aforesaid.store.postgres.queries import Queries, over_rows
from aforesaid.store.postgres.verify import answered, answering
from aforesaid.store.rules.writes import PlannedEntries
from aforesaid.store.sql import answers, writes
from aforesaid.store.sql.appending import ENTRY
from aforesaid.store.sql.statements import for_postgres

_SIZES_OF_WORKERS: Final = """
SELECT sum(result::bigint)::bigint FROM run_command_on_workers('SELECT pg_database_size(current_database())')
 WHERE success
"""
_NEXT_TRANSACTION: Final = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
_NEXT_OF_WORKERS: Final = f"""
SELECT string_agg(result, ' ' ORDER BY nodename, nodeport) FROM run_command_on_workers('{_NEXT_TRANSACTION}')
"""
_PLANNED: Final = over_rows(
    for_postgres(ENTRY)
    + """
    JOIN {rows} ON agenda.space = {space} AND agenda.policy = new.policy AND agenda.owner = new.owner
     AND agenda.thread = new.thread AND agenda.day = new.day
    """,
    "policy text, owner text, thread text, day text",
)


async def _totals(queries: Queries, question: questions.Totals) -> Stats:
    """Return totals, with the sizes of Citus workers."""
    found: Stats = await answered(queries, answers.ANSWERS[questions.Totals](question))
    if not queries.distributed:
        return found
    return replace(found, bytes=found.bytes + (await queries.value(_SIZES_OF_WORKERS) or 0))


async def _change_token(queries: Queries, _: questions.ChangeToken) -> str:
    """Return a text that is another one once a transaction has written something."""
    token = str(await queries.value(_NEXT_TRANSACTION))
    # What is written to a worker alone leaves no trace on the coordinator.
    return f"{token} {await queries.value(_NEXT_OF_WORKERS)}" if queries.distributed else token


async def _planned(queries: Queries, lookup: PlannedEntries) -> list[Entry]:
    wanted = [(subject.space, subject.policy, *subject[2:]) for subject in lookup.subjects]
    return [records.entry(row) for row in await queries.rows_of(_PLANNED, wanted)]


ANSWERS: Final[Mapping[type, Callable[[Queries, Any], Awaitable[Any]]]] = {
    **answering(answers.ANSWERS),
    questions.UnembeddedMessages: search.unembedded,
    questions.MessageVectors: search.of_messages,
    questions.TokenVectors: search.of_tokens,
    questions.UnembeddedNotes: search.unembedded_notes,
    questions.SearchNotes: search.search,
    questions.Totals: _totals,
    questions.ChangeToken: _change_token,
}
"""All but the searches, which keep something in memory (`Search`, `VectorSearch`)."""
LOOKUPS: Final[Mapping[type, Callable[[Queries, Any], Awaitable[Any]]]] = {
    **answering(writes.LOOKUPS),
    PlannedEntries: _planned,
}
