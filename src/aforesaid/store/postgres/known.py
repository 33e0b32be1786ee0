"""What is known about users: changes to it, versions of facts, what was forgotten, what was worked out."""

from __future__ import annotations

from typing import Final

from aforesaid.domain.checks import moment
from aforesaid.domain.clock import now
from aforesaid.domain.memory import Derived, Facts, MemoryRecord, Tombstone, Unextracted
from aforesaid.domain.memory_change import (
    AddMemory,
    AuditAccess,
    ChangeMemory,
    CountMemory,
    Forget,
    MarkExtracted,
    MemoryChange,
    PutDerived,
)
from aforesaid.domain.scope import Scope
from aforesaid.errors import SourcesChanged, quoted
from aforesaid.store import questions
from aforesaid.store.postgres import memories
from aforesaid.store.postgres.queries import Queries
from aforesaid.store.postgres.unit import Unit

_FORGET: Final = """
INSERT INTO forgotten (space, id, owner, words, up_to, at)
SELECT space, $3, name, $4, last_seq, $5 FROM person WHERE space = $1 AND name = $2
"""
_KEPT: Final = "SELECT key FROM derived WHERE space = $1 AND owner = $2 AND kind = $3"
_PUT_DERIVED: Final = """
INSERT INTO derived (space, owner, kind, key, value, at) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (space, owner, kind) DO UPDATE SET key = excluded.key, value = excluded.value, at = excluded.at
"""
_MARK: Final = "UPDATE person SET extracted = $3 WHERE space = $1 AND name = $2 AND extracted = $4 RETURNING name"
_FACTS: Final = "SELECT text, version, created_at, cause FROM facts WHERE space = $1 AND owner = $2"
_FORGOTTEN: Final = "SELECT words, up_to FROM forgotten WHERE space = $1 AND owner = $2 ORDER BY id"
_DERIVED: Final = "SELECT key, value, at FROM derived WHERE space = $1 AND owner = $2 AND kind = $3"
_UNEXTRACTED: Final = """
SELECT space, name, extracted, last_seq FROM person
 WHERE last_seq > extracted AND (space, name) > ($1, $2) ORDER BY space, name LIMIT $3
"""


async def carry_out(unit: Unit, step: MemoryChange) -> MemoryRecord | None:
    """Carry out one change."""
    match step:
        case AddMemory():
            return await memories.add(unit, step)
        case ChangeMemory():
            return await memories.change(unit, step)
        case CountMemory():
            await memories.count(unit, step)
        case Forget():
            _forget(unit, step)
        case PutDerived():
            await _put_derived(unit, step)
        case MarkExtracted():
            await _mark_extracted(unit, step)
        case AuditAccess():
            unit.audit(step.scope, step.actor, step.action, step.subject)
    return None


def _forget(unit: Unit, step: Forget) -> None:
    """Keep in mind what was asked to be forgotten."""
    scope, numbers = step.scope, unit.numbers[step.scope.space]
    unit.own(scope, now())
    for words in step.words:
        numbers.forgotten += 1
        unit.later(_FORGET, scope.space, scope.user, numbers.forgotten, words, now())
    unit.audit(scope, step.actor, "forget", f"{len(step.words)} things")


async def _put_derived(unit: Unit, step: PutDerived) -> None:
    """Keep something that was worked out, in the place of what was kept before."""
    scope = step.scope
    unit.own(scope, now())
    if step.instead_of is not None:
        kept = await unit.value(_KEPT, scope.space, scope.user, step.kind)
        if (kept or "") != step.instead_of:
            raise SourcesChanged(f"the {step.kind} of {quoted(scope.user)} was computed by another process first")
    unit.later(_PUT_DERIVED, scope.space, scope.user, step.kind, step.key, step.value, now())


async def _mark_extracted(unit: Unit, step: MarkExtracted) -> None:
    """Say how far a user's messages were looked through."""
    scope = step.scope
    await unit.expect_owner(scope)
    if not await unit.rows(_MARK, scope.space, scope.user, step.up_to, step.after):
        raise SourcesChanged(f"the messages of {quoted(scope.user)} were processed by another process first")


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
