"""Facts, settings and spending: what is written about a user apart from the log."""

from __future__ import annotations

import json
from typing import Final

from aforesaid.domain.change import PutFacts, PutSetting, Spend
from aforesaid.domain.checks import moment
from aforesaid.domain.clock import now
from aforesaid.domain.memory import Facts
from aforesaid.errors import SourcesChanged, quoted
from aforesaid.store.sqlite.unit import Unit

_NEW_FACTS: Final = "INSERT INTO facts (owner, version, text, cause, created_at) VALUES (?, ?, ?, ?, ?)"
_SPEND: Final = """
INSERT INTO spending (day, space, user, tokens) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET tokens = tokens + ?4
"""
_PUT_SETTING: Final = """
INSERT INTO setting (owner, key, value, updated_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET value = ?3, updated_at = ?4
"""


def put_facts(unit: Unit, step: PutFacts) -> Facts:
    """Store the next version of the facts."""
    created = now()
    owner = unit.names.owner(step.scope.space, step.scope.user, created)
    version = unit.connection.execute("SELECT coalesce(max(version), 0) + 1 FROM facts WHERE owner = ?", (owner,)).get
    if step.instead_of is not None and version != step.instead_of + 1:
        raise SourcesChanged(f"the facts about {quoted(step.scope.user)} have changed since; read them again")
    unit.connection.execute(_NEW_FACTS, (owner, version, step.text, step.cause, created))
    unit.audit(step.scope, step.actor, "facts.put", f"version {version}")
    return Facts(step.scope.space, step.scope.user, step.text, version, moment(created), step.cause)


def spend(unit: Unit, step: Spend) -> None:
    """Count tokens, for the user and for all together."""
    payers = [("", "")] if step.scope is None else [("", ""), (step.scope.space, step.scope.user)]
    for space, user in payers:
        unit.connection.execute(_SPEND, (step.day.isoformat(), space, user, step.tokens))


def put_setting(unit: Unit, step: PutSetting) -> None:
    """Set a setting, or take it back to its default."""
    changed = now()
    owner = unit.names.owner(step.scope.space, step.scope.user, changed)
    if step.value is None:
        unit.connection.execute("DELETE FROM setting WHERE owner = ? AND key = ?", (owner, step.key))
    else:
        unit.connection.execute(_PUT_SETTING, (owner, step.key, json.dumps(step.value, ensure_ascii=False), changed))
    unit.audit(step.scope, step.actor, "setting.put", step.key)
