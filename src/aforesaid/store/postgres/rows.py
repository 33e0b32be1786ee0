"""Statements for both databases (`store.sql`), run in a transaction of the database."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from aforesaid.store.dialects import for_postgres
from aforesaid.store.postgres.queries import Queries, Row
from aforesaid.store.questions import Question
from aforesaid.store.rules.driving import run_waiting
from aforesaid.store.sql.statements import Answer, Answers, Statement

T = TypeVar("T")


async def answered(queries: Queries, answer: Answer[T]) -> T:
    """Return the answer to a question."""

    async def perform(statements: tuple[Statement, ...]) -> list[list[Row]]:
        return await queries.together(*((for_postgres(text), tuple(values)) for text, values in statements))

    return await run_waiting(answer, perform)


def answering(answers: Answers) -> dict[type[Question[Any]], Callable[[Queries, Any], Awaitable[Any]]]:
    """Return functions that answer questions in a transaction."""
    return {kind: _function(answer) for kind, answer in answers.items()}


def _function(answer: Callable[[Any], Answer[Any]]) -> Callable[[Queries, Any], Awaitable[Any]]:
    return lambda queries, question: answered(queries, answer(question))
