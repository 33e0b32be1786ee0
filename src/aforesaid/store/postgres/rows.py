"""Rows of the database as values of the domain."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from aforesaid.domain.summary import Summary
from aforesaid.store import records
from aforesaid.store.dialects import for_postgres
from aforesaid.store.postgres.queries import Queries, Row
from aforesaid.store.questions import Question
from aforesaid.store.selects import Select

MESSAGE: Final = """
SELECT log.seq, log.given_id, log.space, log.owner, log.thread, s.name, log.role, log.author, log.name, log.text,
       log.at, log.stored_at, log.active, log.chunk, log.hash, log.replaces, log.replaced,
       log.details
  FROM log JOIN session s ON s.space = log.space AND s.id = log.session
"""

_SUMMARY: Final = """
SELECT y.id, y.space, y.owner, y.thread, y.kind, y.level, y.text, y.chunks,
       ARRAY(SELECT x.source FROM summary_source x WHERE x.space = {space} AND x.summary = y.id ORDER BY x.source),
       y.first_seq, y.last_seq, y.messages, y.model, y.prompt, y.created_at, y.active, y.rolled_back,
       y.began_at, y.ended_at, y.reach, y.fresh_seq, y.day, y.version, y.replaces, y.replaced, y.edited_by, y.details,
       y.quality
  FROM summary y
"""
SUMMARY: Final = _SUMMARY.format(space="$1")
"""Summaries of the space $1. It is named for the table of sources too, so that Citus asks one shard."""
SUMMARY_OF_ANY_SPACE: Final = _SUMMARY.format(space="y.space")

SESSION: Final = """
SELECT s.name, s.space, s.thread, s.opened_by, s.started_at, s.last_at, s.messages, s.timeout FROM session s
"""


def summary(row: Row) -> Summary:
    """Read a row of SUMMARY."""
    return records.summary(row, lambda given: given)


def selected(
    selects: Mapping[type[Question[Any]], Select],
) -> dict[type[Question[Any]], Callable[[Queries, Any], Awaitable[Any]]]:
    """Return the functions that answer questions by one statement."""
    return {kind: _answer(for_postgres(select.text), select) for kind, select in selects.items()}


def _answer(text: str, select: Select) -> Callable[[Queries, Any], Awaitable[Any]]:
    async def answer(queries: Queries, question: Any) -> Any:  # noqa: ANN401 - the question says it
        return select.read(question, await queries.rows(text, *select.values(question)))

    return answer
