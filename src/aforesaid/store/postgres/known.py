"""Reads of facts, requests to forget, derived texts and users to extract from."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.checks import moment
from aforesaid.domain.memory import Derived, Facts, Tombstone, Unextracted
from aforesaid.domain.scope import Scope
from aforesaid.store import questions
from aforesaid.store.postgres.queries import Queries

_FACTS: Final = "SELECT text, version, created_at, cause FROM facts WHERE space = $1 AND owner = $2"
_FORGOTTEN: Final = "SELECT words, up_to FROM forgotten WHERE space = $1 AND owner = $2 ORDER BY id"
_DERIVED: Final = "SELECT key, value, at FROM derived WHERE space = $1 AND owner = $2 AND kind = $3"
_UNEXTRACTED: Final = """
SELECT space, name, extracted, last_seq FROM person
 WHERE last_seq > extracted AND (space, name) > ($1, $2) ORDER BY space, name LIMIT $3
"""


async def facts(queries: Queries, question: questions.FactsVersions) -> list[Facts]:
    """Return all versions of the user's facts, oldest first."""
    return await _facts(queries, question.scope, "ORDER BY version")


async def newest_facts(queries: Queries, question: questions.NewestFacts) -> Facts | None:
    """Return the newest version of the user's facts."""
    found = await _facts(queries, question.scope, "ORDER BY version DESC LIMIT 1")
    return found[0] if found else None


async def _facts(queries: Queries, scope: Scope, order: str) -> list[Facts]:
    return [
        Facts(scope.space, scope.user, text, version, moment(created), cause)
        for text, version, created, cause in await queries.rows(f"{_FACTS} {order}", scope.space, scope.user)
    ]


async def forgotten(queries: Queries, question: questions.Tombstones) -> list[Tombstone]:
    """Return what the user asked to forget, oldest first."""
    return [Tombstone(*row) for row in await queries.rows(_FORGOTTEN, question.scope.space, question.scope.user)]


async def derived(queries: Queries, question: questions.DerivedText) -> Derived | None:
    """Return what is kept of a kind."""
    row = await queries.first(_DERIVED, question.scope.space, question.scope.user, question.kind)
    return None if row is None else Derived(row[0], row[1], moment(row[2]))


async def unextracted(queries: Queries, question: questions.UnextractedUsers) -> list[Unextracted]:
    """Return users of whom something was stored that nobody has looked through."""
    last = ("", "") if question.after is None else (question.after.space, question.after.user)
    return [
        Unextracted(Scope.of(name, space), extracted, last_seq)
        for space, name, extracted, last_seq in await queries.rows(_UNEXTRACTED, *last, question.limit)
    ]
