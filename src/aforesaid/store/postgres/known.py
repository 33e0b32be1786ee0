"""Reads of facts, requests to forget, derived texts and users to extract from."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.memory import Unextracted
from aforesaid.domain.scope import Scope
from aforesaid.store import questions
from aforesaid.store.postgres.queries import Queries

_UNEXTRACTED: Final = """
SELECT space, name, extracted, last_seq FROM person
 WHERE last_seq > extracted AND (space, name) > ($1, $2) ORDER BY space, name LIMIT $3
"""


async def unextracted(queries: Queries, question: questions.UnextractedUsers) -> list[Unextracted]:
    """Return users of whom something was stored that nobody has looked through."""
    last = ("", "") if question.after is None else (question.after.space, question.after.user)
    return [
        Unextracted(Scope.of(name, space), extracted, last_seq)
        for space, name, extracted, last_seq in await queries.rows(_UNEXTRACTED, *last, question.limit)
    ]
