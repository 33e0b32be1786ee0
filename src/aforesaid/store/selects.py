"""Questions that SQLite and PostgreSQL answer by one statement with the same meaning (see `dialects`)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from aforesaid.domain.checks import moment
from aforesaid.domain.details import TAKEN_BACK
from aforesaid.domain.memory import Derived, Facts, Tombstone
from aforesaid.domain.report import AuditEntry, Setting
from aforesaid.store import questions, records
from aforesaid.store.questions import OfScope, Question
from aforesaid.store.records import Row
from aforesaid.store.rules import lookups


class Select(NamedTuple):
    """A statement, what is bound to it, and how its rows become the answer."""

    text: str
    values: Callable[[Any], Sequence[Any]]
    """For $1, $2, …; in PostgreSQL, $1 is the space."""
    read: Callable[[Any, list[Row]], Any]


_USER: Final = "[[$2 ~ (SELECT id FROM person WHERE space = $1 AND name = $2)]]"
_OWNED: Final = f"[[space = $1 AND ]]owner = {_USER}"
_BY_NAME: Final = "space = $1 AND [[owner ~ user]] = $2"
_SEQS: Final = "[[space = $1 AND seq = ANY($2::bigint[]) ~ seq IN (SELECT value FROM json_each($2))]]"
_FACTS: Final = f"SELECT text, version, created_at, cause FROM facts WHERE {_OWNED} ORDER BY version"
_ENTRY: Final = """
SELECT policy, space, [[owner ~ user]], thread, day, messages, characters, waiting, last_seq, due_at, done_at, done_seq,
       failures, error FROM agenda
"""


def _whose(question: OfScope[Any]) -> tuple[str, str]:
    return question.scope[:2]


def _facts(question: OfScope[Any], found: list[Row]) -> list[Facts]:
    return [Facts(*_whose(question), text, version, moment(at), cause) for text, version, at, cause in found]


def _is_there(_: object, found: list[Row]) -> bool:
    return bool(found)


def _number(_: object, found: list[Row]) -> int:
    return found[0][0] if found else 0


def _of_person(column: str) -> Select:
    return Select(f"SELECT {column} FROM person WHERE space = $1 AND name = $2", _whose, _number)


SELECTS: Final[Mapping[type[Question[Any]], Select]] = {
    questions.FactsVersions: Select(_FACTS, _whose, _facts),
    questions.NewestFacts: Select(
        f"{_FACTS} DESC LIMIT 1", _whose, lambda question, found: next(iter(_facts(question, found)), None)
    ),
    questions.Tombstones: Select(
        f"SELECT words, up_to FROM forgotten WHERE {_OWNED} ORDER BY id",
        _whose,
        lambda _, found: [Tombstone(*row) for row in found],
    ),
    questions.DerivedText: Select(
        f"SELECT key, value, at FROM derived WHERE {_OWNED} AND kind = $3",
        lambda question: (*_whose(question), question.kind),
        lambda _, found: next((Derived(key, value, moment(at)) for key, value, at in found), None),
    ),
    questions.Settings: Select(
        f"SELECT key, [[value::text ~ value]], updated_at FROM setting WHERE {_OWNED} ORDER BY key",
        _whose,
        lambda _, found: [Setting(key, json.loads(value), moment(at)) for key, value, at in found],
    ),
    questions.AuditRows: Select(
        f"""
        SELECT id, at, space, [[owner ~ user]], actor, action, subject FROM audit WHERE {_BY_NAME}
         ORDER BY id DESC LIMIT $3
        """,
        lambda question: (*_whose(question), question.limit),
        lambda _, found: [AuditEntry(row[0], moment(row[1]), *row[2:]) for row in reversed(found)],
    ),
    questions.PlannedEntry: Select(
        f"{_ENTRY} WHERE {_BY_NAME} AND policy = $3 AND thread = $4 AND day = $5",
        lambda question: (*question.subject[1:3], question.subject.policy, *question.subject[3:]),
        lambda _, found: next((records.entry(row) for row in found), None),
    ),
    questions.Marks: Select(
        "SELECT name, value FROM mark[[ WHERE space = '']]", lambda _: (), lambda _, found: dict(found)
    ),
}

LOOKUPS: Final[Mapping[type[Question[Any]], Select]] = {
    lookups.IsUser: Select("SELECT 1 FROM person WHERE space = $1 AND name = $2 AND owner", _whose, _is_there),
    lookups.LastChunk: _of_person("last_chunk"),
    lookups.Extracted: _of_person("extracted"),
    lookups.MessagesUpTo: Select(
        f"SELECT count(*) FROM log WHERE {_OWNED} AND seq <= $3",
        lambda lookup: (*_whose(lookup), lookup.seq),
        _number,
    ),
    lookups.MessagesCovered: Select(
        f"""
        SELECT count(*), min(seq), max(seq), min(at), max(at) FROM log
         WHERE {_OWNED} AND seq BETWEEN $3 AND $4 AND at >= $5 AND at < $6 AND ([[$7::text ~ $7]] IS NULL
            OR thread = [[$7 ~ (SELECT id FROM thread WHERE space = $1 AND name = $7)]])
        """,
        lambda lookup: (
            *_whose(lookup),
            *(lookup.first, lookup.last, lookup.since, lookup.until),
            lookup.scope.thread if lookup.here else None,
        ),
        lambda _, found: lookups.Coverage(*found[0]) if found[0][0] else None,
    ),
    lookups.ChunkMessages: Select(
        f"SELECT seq, role FROM log WHERE {_OWNED} AND chunk = $3",
        lambda lookup: (*_whose(lookup), lookup.chunk),
        lambda _, found: found,
    ),
    lookups.AuditIsKnown: Select(
        f"SELECT 1 FROM audit WHERE {_BY_NAME} AND at = $3 AND actor = $4 AND action = $5 AND subject = $6",
        lambda lookup: (
            *(lookup.entry.space, lookup.entry.user, records.number_of(lookup.entry.at)),
            *(lookup.entry.actor, lookup.entry.action, lookup.entry.subject),
        ),
        _is_there,
    ),
    lookups.Progress: Select(
        "SELECT up_to FROM walk WHERE [[space = $1 AND ]]policy = $2",
        lambda lookup: (lookup.space, lookup.policy),
        _number,
    ),
    lookups.WasPurged: Select(f"SELECT 1 FROM audit WHERE {_BY_NAME} AND action = 'purge' LIMIT 1", _whose, _is_there),
    lookups.MemoriesToPurge: Select(
        f"""
        SELECT m.id, [[m.owner FROM memory m ~ o.name FROM memory m JOIN person o ON o.id = m.owner]]
         WHERE [[m.space = $1 AND ]]m.id IN (
            SELECT id FROM memory WHERE {_OWNED}
            UNION SELECT id FROM memory WHERE [[space = $1 AND ]]speaker = {_USER}
            UNION SELECT memory FROM memory_version
             WHERE [[space = $1 AND was ->> 'speaker' ~ json_extract(was, '$.speaker')]] = {_USER}
            UNION SELECT memory FROM memory_source
             WHERE [[space = $1 AND seq = ANY($3::bigint[]) ~ seq IN (SELECT value FROM json_each($3))]])
        """,
        lambda lookup: (*_whose(lookup), list(lookup.seqs)),
        lambda _, found: [lookups.MemoryToPurge(*row) for row in found],
    ),
    lookups.MemoriesFrom: Select(
        f"""
        SELECT m.id, [[m.owner FROM memory m ~ o.name FROM memory m JOIN person o ON o.id = m.owner]]
         WHERE [[m.space = $1 AND ]]m.id IN (SELECT memory FROM memory_source WHERE {_SEQS})
        """,
        lambda lookup: (lookup.space, list(lookup.seqs)),
        lambda _, found: [lookups.MemoryToPurge(*row) for row in found],
    ),
    lookups.TakenBackBefore: Select(
        f"""
        WITH RECURSIVE earlier (seq) AS (
            SELECT replaces FROM log WHERE {_SEQS} AND details = '{TAKEN_BACK}' AND replaces IS NOT NULL
            UNION SELECT l.replaces FROM earlier e JOIN log l ON [[l.space = $1 AND ]]l.seq = e.seq
             WHERE l.replaces IS NOT NULL
        ) SELECT l.seq, [[l.owner, l.thread ~ o.name, t.name]], l.at, l.chunk, length(l.text)
            FROM log l[[ ~  JOIN person o ON o.id = l.owner JOIN thread t ON t.id = l.thread]]
           WHERE [[l.space = $1 AND ]]l.seq IN (SELECT seq FROM earlier)
             AND [[l.seq != ALL($2::bigint[]) ~ l.seq NOT IN (SELECT value FROM json_each($2))]]
        """,
        lambda lookup: (lookup.space, list(lookup.seqs)),
        lambda _, found: [lookups.MessageToPurge(*row) for row in found],
    ),
    lookups.EntriesOfUsers: Select(
        f"""
        {_ENTRY} WHERE space = $1
           AND [[owner = ANY($2::text[]) ~ user IN (SELECT value FROM json_each($2))]]
        """,
        lambda lookup: (lookup.space, list(lookup.users)),
        lambda _, found: [records.entry(row) for row in found],
    ),
}
