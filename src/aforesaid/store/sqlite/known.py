"""Reads of facts, requests to forget, derived texts and users to extract from."""

from __future__ import annotations

from typing import Final

import apsw

from aforesaid.domain.checks import moment
from aforesaid.domain.memory import Derived, Facts, Tombstone, Unextracted
from aforesaid.domain.scope import Scope
from aforesaid.store import questions
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.names import find_person

# The index holds nobody but those whom it is about.
_UNEXTRACTED: Final = """
SELECT space, name, extracted, last_seq FROM person INDEXED BY person_to_extract
 WHERE last_seq > extracted AND id > ? ORDER BY id LIMIT ?
"""


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
