"""Facts, settings and spending: what is written about a user apart from the log."""

from __future__ import annotations

import json
from typing import Final

from aforesaid.domain.change import PutFacts, PutSetting, Spend
from aforesaid.domain.checks import moment
from aforesaid.domain.clock import now
from aforesaid.domain.memory import Facts
from aforesaid.errors import SourcesChanged, quoted
from aforesaid.store.postgres.unit import Unit

_NEXT_VERSION: Final = "SELECT coalesce(max(version), 0) + 1 FROM facts WHERE space = $1 AND owner = $2"
_NEW_FACTS: Final = "INSERT INTO facts (space, owner, version, text, cause, created_at) VALUES ($1, $2, $3, $4, $5, $6)"
_SPEND: Final = """
INSERT INTO spending (space, day, owner, tokens) VALUES ($1, $2, $3, $4)
ON CONFLICT (space, day, owner) DO UPDATE SET tokens = spending.tokens + excluded.tokens
"""
_PUT_SETTING: Final = """
INSERT INTO setting (space, owner, key, value, updated_at) VALUES ($1, $2, $3, $4::json, $5)
ON CONFLICT (space, owner, key) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at
"""
_DROP_SETTING: Final = "DELETE FROM setting WHERE space = $1 AND owner = $2 AND key = $3"


async def put_facts(unit: Unit, step: PutFacts) -> Facts:
    """Store the next version of the facts."""
    scope, created = step.scope, now()
    unit.own(scope, created)
    version = await unit.value(_NEXT_VERSION, scope.space, scope.user)
    if step.instead_of is not None and version != step.instead_of + 1:
        raise SourcesChanged(f"the facts about {quoted(scope.user)} have changed since; read them again")
    unit.later(_NEW_FACTS, scope.space, scope.user, version, step.text, step.cause, created)
    unit.audit(scope, step.actor, "facts.put", f"version {version}")
    return Facts(scope.space, scope.user, step.text, version, moment(created), step.cause)


def spend(unit: Unit, step: Spend) -> None:
    """Count tokens, for the user and for all of the space together."""
    day = step.day.isoformat()
    payers = [("", "")] if step.scope is None else [(step.scope.space, ""), (step.scope.space, step.scope.user)]
    for space, user in payers:
        unit.later(_SPEND, space, day, user, step.tokens)


def put_setting(unit: Unit, step: PutSetting) -> None:
    """Set a setting, or take it back to its default."""
    scope, changed = step.scope, now()
    unit.own(scope, changed)
    if step.value is None:
        unit.later(_DROP_SETTING, scope.space, scope.user, step.key)
    else:
        value = json.dumps(step.value, ensure_ascii=False)
        unit.later(_PUT_SETTING, scope.space, scope.user, step.key, value, changed)
    unit.audit(scope, step.actor, "setting.put", step.key)
