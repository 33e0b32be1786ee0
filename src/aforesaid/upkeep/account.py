"""The health of one user's memory."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from aforesaid.digest.calendar import subject_of_user
from aforesaid.digest.tiers import TiersRules, windows
from aforesaid.domain.checks import ComponentStatus, counted, moment, now
from aforesaid.domain.report import Component, Health, Ledger
from aforesaid.domain.scope import Scope, Subject
from aforesaid.domain.setting import cleared_up_to
from aforesaid.errors import AforesaidError
from aforesaid.profiles.effective import settings_of
from aforesaid.store import questions

if TYPE_CHECKING:
    from aforesaid.profiles import Profile
    from aforesaid.store import Store


async def account(store: Store, profile: Profile, scope: Scope) -> Health:
    """Return the parts of a user's memory.

    With the policy `tiers`: short-term, mid-term, whole history and history context. With other policies: the whole
    history, summaries, memories. An empty part is initializing. If the store does not answer, all of them are
    failing.
    """
    at = moment(now())
    names = _TIERS if profile.summaries == "tiers" else _OTHERS
    try:
        keeping = await store.health()
        parts = await (_tiers if profile.summaries == "tiers" else _others)(store, profile, scope, at)
    except AforesaidError as error:
        issue = f"the store does not answer: {error}"
        parts = [Component(name, "failing", None, (issue,), (), None, health_check=at) for name in names]
        return Health("failing", tuple(parts), checked_at=at)
    if keeping.status == "failing":
        parts = [_with_store(part, keeping) for part in parts]
    failing = any(part.status == "failing" for part in parts)
    empty = all(part.status == "initializing" for part in parts)
    return Health("failing" if failing else "initializing" if empty else "active", tuple(parts), checked_at=at)


_TIERS = ("short_term", "mid_term", "whole_history", "history_context")
_OTHERS = ("whole_history", "summaries", "memories")


async def _tiers(store: Store, profile: Profile, scope: Scope, at: datetime) -> list[Component]:
    ledger = await store.read(questions.UserLedger(scope))
    rules = TiersRules(profile.short_term, profile.mid_term)
    newest = await store.read(questions.Messages(scope, limit=rules.short_term + rules.mid_term))
    cleared = cleared_up_to(await settings_of(store, scope))
    held = windows([message.seq for message in newest], cleared, rules)
    updated = newest[-1].stored_at if newest else None
    return [
        _window("short_term", held.short_term, updated, at, rules.short_term),
        _window("mid_term", held.mid_term, updated if held.mid_term else None, at, rules.mid_term),
        _whole(ledger, updated, at),
        await _history_context(store, scope, at),
    ]


async def _others(store: Store, profile: Profile, scope: Scope, at: datetime) -> list[Component]:
    ledger = await store.read(questions.UserLedger(scope))
    newest = await store.read(questions.Messages(scope, limit=1))
    summaries = await store.read(questions.Summaries(scope))
    memories = await store.read(questions.Memories(scope))
    issues = await _failures(store, scope, profile)
    made = max((summary.created_at for summary in summaries), default=None)
    covered = max((summary.covered for summary in summaries), default=0)
    learned = max((memory.created_at for memory in memories), default=None)
    return [
        _whole(ledger, newest[0].stored_at if newest else None, at),
        Component(
            "summaries",
            _status(issues, begun=bool(summaries)),
            made,
            issues,
            (("policy", profile.summaries), ("active", f"{len(summaries):,}")),
            covered,
            health_check=at,
        ),
        Component(
            "memories",
            _status((), begun=bool(memories)),
            learned,
            (),
            (("learning", "on" if profile.extract else "off"), ("active", f"{len(memories):,}")),
            health_check=at,
        ),
    ]


def _window(name: str, count: int, updated: datetime | None, at: datetime, limit: int) -> Component:
    facts = (("room for", counted(limit, "message")),)
    return Component(name, _status((), begun=count > 0), updated, (), facts, count, health_check=at)


def _whole(ledger: Ledger, updated: datetime | None, at: datetime) -> Component:
    facts = (("archived", counted(ledger.archived, "message")),)
    begun = ledger.messages > 0
    return Component("whole_history", _status((), begun=begun), updated, (), facts, ledger.messages, health_check=at)


async def _history_context(store: Store, scope: Scope, at: datetime) -> Component:
    found = await store.read(questions.Summaries(scope, kind="history"))
    planned = await store.read(questions.PlannedEntry(Subject("tiers", scope.space, scope.user)))
    issues = () if planned is None or planned.error is None else (planned.error,)
    current = found[0] if found else None
    return Component(
        "history_context",
        _status(issues, begun=current is not None),
        None if current is None else current.created_at,
        issues,
        () if planned is None else (("waiting", counted(planned.waiting, "message")),),
        0 if current is None else current.messages,
        None if planned is None else planned.waiting,
        at,
    )


async def _failures(store: Store, scope: Scope, profile: Profile) -> tuple[str, ...]:
    subject = subject_of_user(profile.summaries, scope.space, scope.user, scope.thread)
    planned = None if subject is None else await store.read(questions.PlannedEntry(subject))
    return () if planned is None or planned.error is None else (planned.error,)


def _status(issues: tuple[str, ...], *, begun: bool) -> ComponentStatus:
    return "failing" if issues else "active" if begun else "initializing"


def _with_store(part: Component, keeping: Component) -> Component:
    return replace(part, status="failing", issues=(*part.issues, *keeping.issues))
