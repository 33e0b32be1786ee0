"""Which function answers which question, in SQL. Searches and vectors are in each store's own room."""

from __future__ import annotations

import json
from typing import Any, Final

from aforesaid.domain.checks import moment
from aforesaid.domain.memory import Derived, Facts, Tombstone
from aforesaid.domain.report import AuditEntry, Setting, Stats
from aforesaid.domain.setting import EVERYBODY
from aforesaid.store import questions, records
from aforesaid.store.operations import performers
from aforesaid.store.questions import OfScope, Question
from aforesaid.store.records import Row
from aforesaid.store.sql import messages, people, upkeep
from aforesaid.store.sql.appending import BY_NAME, ENTRY, OWNED
from aforesaid.store.sql.statements import Answers, Select

_FACTS: Final = f"SELECT text, version, created_at, cause FROM facts WHERE {OWNED} ORDER BY version"


def _whose(question: OfScope[Any]) -> tuple[str, str]:
    return question.scope[:2]


def _facts(question: OfScope[Any], found: list[Row]) -> list[Facts]:
    return [Facts(*_whose(question), text, version, moment(at), cause) for text, version, at, cause in found]


ANSWERS: Final[Answers] = {
    **performers(Question, *map(vars, (people, messages, upkeep))),
    questions.FactsVersions: Select(_FACTS, _whose, _facts),
    questions.NewestFacts: Select(
        f"{_FACTS} DESC LIMIT 1", _whose, lambda question, found: next(iter(_facts(question, found)), None)
    ),
    questions.Tombstones: Select(
        f"SELECT words, up_to FROM forgotten WHERE {OWNED} ORDER BY id",
        _whose,
        lambda _, found: [Tombstone(*row) for row in found],
    ),
    questions.DerivedText: Select(
        f"SELECT key, value, at FROM derived WHERE {OWNED} AND kind = $3",
        lambda question: (*_whose(question), question.kind),
        lambda _, found: next((Derived(key, value, moment(at)) for key, value, at in found), None),
    ),
    questions.PlannedEntry: Select(
        f"{ENTRY} WHERE {BY_NAME} AND policy = $3 AND thread = $4 AND day = $5",
        lambda question: (*question.subject[1:3], question.subject.policy, *question.subject[3:]),
        lambda _, found: next((records.entry(row) for row in found), None),
    ),
    questions.Settings: Select(
        f"SELECT key, [[value::text ~ value]], updated_at FROM setting WHERE {OWNED} ORDER BY key",
        _whose,
        lambda _, found: [Setting(key, json.loads(value), moment(at)) for key, value, at in found],
    ),
    questions.AuditRows: Select(
        f"""
        SELECT id, at, space, [[owner ~ user]], actor, action, subject FROM audit WHERE {BY_NAME}
         ORDER BY id DESC LIMIT $3
        """,
        lambda question: (*_whose(question), question.limit),
        lambda _, found: [AuditEntry(row[0], moment(row[1]), *row[2:]) for row in reversed(found)],
    ),
    questions.Totals: Select(people.TOTALS, lambda _: (EVERYBODY,), lambda _, found: Stats(*found[0])),
    questions.Marks: Select(
        "SELECT name, value FROM mark[[ WHERE space = '']]", lambda _: (), lambda _, found: dict(found)
    ),
}
