"""What is known about users: changes to it, versions of facts, what was forgotten, what was worked out."""

from __future__ import annotations

from typing import Final

import apsw

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
from aforesaid.store.sqlite import memories, rows
from aforesaid.store.sqlite.names import find_person
from aforesaid.store.sqlite.unit import Unit

_FORGET: Final = """
INSERT INTO forgotten (owner, words, up_to, at) SELECT id, ?2, last_seq, ?3 FROM person WHERE id = ?1
"""
_PUT_DERIVED: Final = """
INSERT INTO derived (owner, kind, key, value, at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET key = ?3, value = ?4, at = ?5
"""
_MARK: Final = "UPDATE person SET extracted = ? WHERE id = ? AND extracted = ?"
# The index holds nobody but those whom it is about.
_UNEXTRACTED: Final = """
SELECT space, name, extracted, last_seq FROM person INDEXED BY person_to_extract
 WHERE last_seq > extracted AND id > ? ORDER BY id LIMIT ?
"""


def carry_out(unit: Unit, step: MemoryChange) -> MemoryRecord | None:
    """Carry out one change."""
    match step:
        case AddMemory():
            return memories.add(unit, step)
        case ChangeMemory():
            return memories.change(unit, step)
        case CountMemory():
            memories.count(unit, step)
        case Forget():
            _forget(unit, step)
        case PutDerived():
            _put_derived(unit, step)
        case MarkExtracted():
            _mark_extracted(unit, step)
        case AuditAccess():
            unit.audit(step.scope, step.actor, step.action, step.subject)
    return None


def _forget(unit: Unit, step: Forget) -> None:
    """Keep in mind what was asked to be forgotten."""
    owner = unit.names.owner(step.scope.space, step.scope.user, now())
    for words in step.words:
        unit.connection.execute(_FORGET, (owner, words, now()))
    unit.audit(step.scope, step.actor, "forget", f"{len(step.words)} things")


def _put_derived(unit: Unit, step: PutDerived) -> None:
    """Keep something that was worked out, in the place of what was kept before."""
    owner = unit.names.owner(step.scope.space, step.scope.user, now())
    if step.instead_of is not None:
        query = "SELECT key FROM derived WHERE owner = ? AND kind = ?"
        kept: str | None = unit.connection.execute(query, (owner, step.kind)).get
        if (kept or "") != step.instead_of:
            raise SourcesChanged(f"the {step.kind} of {quoted(step.scope.user)} was computed by another process first")
    unit.connection.execute(_PUT_DERIVED, (owner, step.kind, step.key, step.value, now()))


def _mark_extracted(unit: Unit, step: MarkExtracted) -> None:
    """Say how far a user's messages were looked through."""
    owner = unit.known_owner(step.scope)
    unit.connection.execute(_MARK, (step.up_to, owner, step.after))
    if not unit.connection.changes():
        raise SourcesChanged(f"the messages of {quoted(step.scope.user)} were processed by another process first")


def facts(connection: apsw.Connection, question: questions.FactsVersions) -> list[Facts]:
    """Return all versions of the user's facts, oldest first."""
    owner = find_person(connection, question.scope.space, question.scope.user)
    query = "SELECT text, version, created_at, cause FROM facts WHERE owner = ? ORDER BY version"
    return [
        Facts(question.scope.space, question.scope.user, text, version, moment(created), cause)
        for text, version, created, cause in rows.every(connection.execute(query, (owner,)))
    ]


def newest_facts(connection: apsw.Connection, question: questions.NewestFacts) -> Facts | None:
    """Return the newest version of the user's facts."""
    owner = find_person(connection, question.scope.space, question.scope.user)
    query = "SELECT text, version, created_at, cause FROM facts WHERE owner = ? ORDER BY version DESC LIMIT 1"
    row = connection.execute(query, (owner,)).fetchone()
    return (
        None
        if row is None
        else Facts(question.scope.space, question.scope.user, row[0], row[1], moment(row[2]), row[3])
    )


def forgotten(connection: apsw.Connection, question: questions.Tombstones) -> list[Tombstone]:
    """Return what the user asked to forget, oldest first."""
    owner = find_person(connection, question.scope.space, question.scope.user)
    query = "SELECT words, up_to FROM forgotten WHERE owner = ? ORDER BY id"
    return [Tombstone(words, up_to) for words, up_to in rows.every(connection.execute(query, (owner,)))]


def derived(connection: apsw.Connection, question: questions.DerivedText) -> Derived | None:
    """Return what is kept of a kind."""
    owner = find_person(connection, question.scope.space, question.scope.user)
    query = "SELECT key, value, at FROM derived WHERE owner = ? AND kind = ?"
    row = connection.execute(query, (owner, question.kind)).fetchone()
    return None if row is None else Derived(row[0], row[1], moment(row[2]))


def unextracted(connection: apsw.Connection, question: questions.UnextractedUsers) -> list[Unextracted]:
    """Return users of whom something was stored that nobody has looked through."""
    start = 0 if question.after is None else find_person(connection, question.after.space, question.after.user) or 0
    return [
        Unextracted(Scope.of(name, space), extracted, last)
        for space, name, extracted, last in rows.every(connection.execute(_UNEXTRACTED, (start, question.limit)))
    ]
