"""Rules for facts, requests to forget, derived texts, settings, receipts, spending and marks."""

from __future__ import annotations

from aforesaid.domain.change import KeepReceipt, PutFacts, PutMark, PutSetting, Spend
from aforesaid.domain.checks import EARLIEST, LATEST, microseconds, moment, now
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.memory import AuditAccess, Derived, Facts, Forget, MarkExtracted, NoteKey, PutDerived, Tombstone
from aforesaid.domain.report import AuditEntry, Setting
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import ForgottenRow, Restored, SessionRow, SettingRow, SpendingRow, UserRow, VectorOf
from aforesaid.errors import SourcesChanged, quoted
from aforesaid.store.questions import (
    DerivedText,
    FactsVersions,
    Marks,
    Memories,
    NewestFacts,
    Receipts,
    Settings,
    TokensSpent,
    Tombstones,
)
from aforesaid.store.rules.driving import Rule, ask
from aforesaid.store.rules.expected import expect_user
from aforesaid.store.rules.lookups import (
    AuditIsKnown,
    Extracted,
    IsUser,
    MessagesCovered,
    MessagesUpTo,
    NewestMemory,
    SummariesByNumber,
    WasPurged,
)
from aforesaid.store.rules.writes import (
    AddFacts,
    AddTokens,
    AddTombstone,
    DescribeSession,
    KeepUser,
    MergeUser,
    PutDerivedText,
    PutReceipt,
    PutVector,
    RecordAudit,
    RemoveSetting,
    RenumberFacts,
    SetExtracted,
    SetMark,
    StoreSetting,
)

_NOTHING_NUMBERED = 0


def put_facts(change: PutFacts) -> Rule[Facts]:
    """Store the next version of a user's facts."""
    scope, created = change.scope, now()
    yield KeepUser(scope, created)
    newest = yield from ask(NewestFacts(scope))
    version = 1 if newest is None else newest.version + 1
    if change.instead_of is not None and version != change.instead_of + 1:
        raise SourcesChanged(f"the facts about {quoted(scope.user)} have changed since; read them again")
    facts = Facts(scope.space, scope.user, change.text, version, moment(created), change.cause)
    yield AddFacts(facts)
    yield RecordAudit(scope, change.actor, "facts.put", f"version {version}")
    return facts


def restore_facts(row: Facts) -> Rule[Restored]:
    """Put a version of facts where it belongs by its time, unless it is here."""
    scope = Scope.of(row.user, row.space)
    yield KeepUser(scope, microseconds(row.updated_at, "the time"))
    known = yield from ask(FactsVersions(scope))
    if any((each.text, each.updated_at, each.cause) == (row.text, row.updated_at, row.cause) for each in known):
        return Restored(_NOTHING_NUMBERED, False)
    later = [facts for facts in known if facts.updated_at > row.updated_at]
    version = later[0].version if later else known[-1].version + 1 if known else 1
    for facts in reversed(later):
        yield RenumberFacts(facts)
    yield AddFacts(Facts(row.space, row.user, row.text, version, row.updated_at, row.cause))
    return Restored(_NOTHING_NUMBERED, True)


def forget(change: Forget) -> Rule[None]:
    """Store requests to forget. Raises SourcesChanged if a memory was stored since they were worked out."""
    yield KeepUser(change.scope, now())
    if change.newest is not None and (yield from ask(NewestMemory(change.scope))) != change.newest:
        raise SourcesChanged(f"a memory of {quoted(change.scope.user)} was stored since; read the memories again")
    for words in change.words:
        yield AddTombstone(change.scope, words)
    yield RecordAudit(change.scope, change.actor, "forget", f"{len(change.words)} things")


def restore_forgotten(row: ForgottenRow) -> Rule[Restored]:
    """Store a request to forget, unless it is here."""
    scope = Scope.of(row.user, row.space)
    yield KeepUser(scope, now())
    fresh = Tombstone(row.words, row.up_to) not in (yield from ask(Tombstones(scope)))
    if fresh:
        yield AddTombstone(scope, row.words, row.up_to)
    return Restored(_NOTHING_NUMBERED, fresh)


def put_derived(change: PutDerived) -> Rule[None]:
    """Store what was derived for a user, in the place of what was there."""
    scope = change.scope
    if not change.known_user:
        yield KeepUser(scope, now())
    elif not (yield from ask(IsUser(scope))):
        return
    if change.instead_of is not None:
        kept = yield from ask(DerivedText(scope, change.kind))
        if ("" if kept is None else kept.key) != change.instead_of:
            raise SourcesChanged(f"the {change.kind} of {quoted(scope.user)} was computed by another process first")
    if not (yield from _still_there(change)):
        raise SourcesChanged(f"what the {change.kind} of {quoted(scope.user)} was computed from was erased since")
    yield PutDerivedText(scope, change.kind, Derived(change.key, change.value, moment(now())))


def _still_there(change: PutDerived) -> Rule[bool]:
    scope, wanted = change.scope, set(change.notes)
    if change.messages is not None:
        first, last, count = change.messages
        left = yield from ask(MessagesCovered(scope, first, last, EARLIEST, LATEST + 1, here=False))
        if left is None or left.messages != count:
            return False
    summaries = [each.id for each in wanted if each.kind == "summary"]
    found = {NoteKey("summary", each.id) for each in (yield from ask(SummariesByNumber(scope, summaries)))}
    if len(summaries) < len(wanted):
        found |= {NoteKey("memory", each.id) for each in (yield from ask(Memories(scope, active=None)))}
    return wanted <= found


def mark_extracted(change: MarkExtracted) -> Rule[None]:
    """Record up to where memories were extracted from a user's messages.

    Raises SourcesChanged if another process extracted from them, or if the user asked to forget something since.
    """
    yield from expect_user(change.scope)
    if (yield from ask(Extracted(change.scope))) != change.after:
        raise SourcesChanged(f"the messages of {quoted(change.scope.user)} were processed by another process first")
    if change.requests is not None and len((yield from ask(Tombstones(change.scope)))) != change.requests:
        raise SourcesChanged(f"{quoted(change.scope.user)} asked to forget something since; extract again")
    yield SetExtracted(change.scope, change.up_to)


def audit_access(change: AuditAccess) -> Rule[None]:
    """Record who viewed a user's data."""
    yield RecordAudit(change.scope, change.actor, change.action, change.subject)


def restore_audit(row: AuditEntry) -> Rule[Restored]:
    """Store a row of the audit log, unless it is here."""
    fresh = not (yield from ask(AuditIsKnown(row)))
    if fresh:
        at = microseconds(row.at, "the time")
        yield RecordAudit(Scope(row.space, row.user, ""), row.actor, row.action, row.subject, at)
    return Restored(_NOTHING_NUMBERED, fresh)


def put_setting(change: PutSetting) -> Rule[None]:
    """Store a setting of a user, or remove it."""
    scope, changed = change.scope, now()
    yield KeepUser(scope, changed)
    if change.value is None:
        yield RemoveSetting(scope, change.key)
    else:
        yield StoreSetting(scope, Setting(change.key, change.value, moment(changed)))
    yield RecordAudit(scope, change.actor, "setting.put", change.key)


def restore_setting(row: SettingRow) -> Rule[Restored]:
    """Store a setting, unless there is a later one."""
    scope, setting = Scope.of(row.user, row.space), row.setting
    yield KeepUser(scope, microseconds(setting.updated_at, "the time"))
    known = yield from ask(Settings(scope))
    fresh = not any(each.key == setting.key and each.updated_at >= setting.updated_at for each in known)
    if fresh:
        yield StoreSetting(scope, setting)
    return Restored(_NOTHING_NUMBERED, fresh)


def restore_user(row: UserRow) -> Rule[Restored]:
    """Bring a user together with the one of the same name here."""
    scope, created = Scope.of(row.user, row.space), microseconds(row.created_at, "the time")
    fresh = not (yield from ask(IsUser(scope)))
    yield KeepUser(scope, created)
    # If their numbers differ, there are messages here that nothing was extracted from there.
    same = (yield from ask(MessagesUpTo(scope, row.extracted))) == row.looked_through
    yield MergeUser(scope, created, row.last_chunk, row.extracted if same else 0)
    return Restored(_NOTHING_NUMBERED, fresh)


def restore_session(row: SessionRow) -> Rule[Restored]:
    """Store what a session's messages do not say of it."""
    yield DescribeSession(row)
    return Restored(_NOTHING_NUMBERED, False)


def restore_vector(row: VectorOf) -> Rule[Restored]:
    """Store the vector of a message, unless it has one."""
    return Restored(_NOTHING_NUMBERED, (yield from ask(PutVector(row))))


def keep_receipt(change: KeepReceipt) -> Rule[None]:
    """Store the receipt of a context, if anything else is stored of its user."""
    if (yield from ask(IsUser(change.scope))):
        yield PutReceipt(change.receipt)


def restore_receipt(row: ContextReceipt) -> Rule[Restored]:
    """Store the receipt of a context, unless it is here."""
    yield KeepUser(row.scope, microseconds(row.at, "the time"))
    fresh = not (yield from ask(Receipts(row.scope, limit=1, ids=[row.id])))
    if fresh:
        yield PutReceipt(row)
    return Restored(_NOTHING_NUMBERED, fresh)


def spend(change: Spend) -> Rule[None]:
    """Count tokens, for all users together and for one of them, unless that one was purged meanwhile."""
    scope = change.scope
    space = "" if scope is None else scope.space
    yield AddTokens(change.day, space, None, change.tokens)
    if scope is not None and ((yield from ask(IsUser(scope))) or not (yield from ask(WasPurged(scope)))):
        yield AddTokens(change.day, space, scope.user, change.tokens)


def restore_spending(row: SpendingRow) -> Rule[Restored]:
    """Count the tokens that are missing here."""
    scope = Scope(row.space, row.user, "") if row.user else None
    missing = row.tokens - (yield from ask(TokensSpent(row.day, scope)))
    if missing > 0:
        yield AddTokens(row.day, row.space, row.user or None, missing)
    return Restored(_NOTHING_NUMBERED, missing > 0)


def put_mark(change: PutMark) -> Rule[None]:
    """Store or remove a small text about the store itself."""
    if change.only_if is not ...:
        change.check((yield from ask(Marks())).get(change.name))
    yield SetMark(change.name, change.value)
