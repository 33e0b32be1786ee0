"""Rules of what is known: facts, memories, the agenda."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from aforesaid.domain.change import KeepReceipt, PutFacts, PutMark, PutSetting, Spend
from aforesaid.domain.checks import EARLIEST, LATEST, microseconds, moment, now
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.memory import (
    SOURCES_KEPT,
    AddMemory,
    AuditAccess,
    ChangeMemory,
    CountMemory,
    Derived,
    Facts,
    Forget,
    MarkExtracted,
    MemoryDraft,
    MemoryRecord,
    MemoryVersion,
    NoteKey,
    PutDerived,
    Tombstone,
    about_in,
    kind_of,
)
from aforesaid.domain.message import Message
from aforesaid.domain.report import AuditEntry, Setting
from aforesaid.domain.scope import Entry, Scope, Subject, Touch
from aforesaid.domain.summary import Advance, FinishEntry
from aforesaid.domain.transfer import (
    DayRow,
    ForgottenRow,
    MemoryRow,
    Restored,
    SessionRow,
    SettingRow,
    SpendingRow,
    SuccessorRow,
    UserRow,
    VectorOf,
)
from aforesaid.errors import NotFound, SourcesChanged, quoted
from aforesaid.store.questions import (
    DerivedText,
    FactsVersions,
    Marks,
    Memories,
    MemoryById,
    MessagesByNumber,
    NewestFacts,
    PlannedEntry,
    Receipts,
    Settings,
    TokensSpent,
    Tombstones,
)
from aforesaid.store.rules.writes import (
    AddFacts,
    AddMemoryRow,
    AddMemorySources,
    AddMemoryVersion,
    AddTokens,
    AddTombstone,
    AuditIsKnown,
    DescribeSession,
    Extracted,
    IsUser,
    KeepUser,
    MemoryFirstStated,
    MergeUser,
    MessagesCovered,
    MessagesPassed,
    MessagesUpTo,
    NewestMemory,
    PlannedEntries,
    Progress,
    PutDerivedText,
    PutEntries,
    PutMemoryRow,
    PutReceipt,
    PutVector,
    RecordAudit,
    RemoveSetting,
    RenumberFacts,
    Rule,
    SetExtracted,
    SetMark,
    SetProgress,
    SetSuccessor,
    StoreSetting,
    SummariesByNumber,
    WasPurged,
    ask,
)


def expect_user(scope: Scope) -> Rule[None]:
    """Refuse a user who owns nothing."""
    if not (yield from ask(IsUser(scope))):
        raise NotFound(f"there is no user {quoted(scope.user)} in the space {quoted(scope.space)}")


def expect_newest(messages: Iterable[Message]) -> None:
    """Raise SourcesChanged if one of the messages has a newer version or was taken back."""
    for message in messages:
        if message.replaced:
            raise SourcesChanged(f"message {message.seq} was edited or taken back since; read it again")


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


def add(change: AddMemory) -> Rule[MemoryRecord]:
    """Store a memory with its sources, and mark those that it supersedes.

    Raises SourcesChanged if a source was edited or taken back: the memory was made from words that do not count now.
    """
    draft, scope, created = change.draft, change.draft.scope, now()
    yield KeepUser(scope, created)
    sources = sorted(set(draft.sources))
    if sources:
        messages = yield from ask(MessagesByNumber(scope, sources))
        if len(messages) != len(sources):
            raise NotFound("a source of the memory is not one of this user's messages")
        expect_newest(messages)
    superseded: dict[int, MemoryRecord] = {}
    for old in change.supersedes:
        # A memory that is named twice was changed by its first mention.
        revision = old.revision if old.memory not in superseded else None
        superseded[old.memory] = yield from _unchanged(scope, old.memory, revision)
    memory = _drafted(draft, tuple(sources), moment(created))
    memory = replace(memory, id=(yield from ask(AddMemoryRow(memory))))
    yield RecordAudit(scope, change.actor, "memory.add", f"memory {memory.id}")
    for before in superseded.values():
        yield AddMemoryVersion(MemoryVersion(before, "supersede", change.actor, moment(now())))
        after = replace(
            before,
            state="superseded",
            active=False,
            valid_to=max(before.valid_from, memory.valid_from),
            superseded_by=memory.id,
            reason="",
            revision=before.revision + 1,
        )
        yield PutMemoryRow(after, before.text)
        yield RecordAudit(scope, change.actor, "memory.supersede", f"memory {before.id} by memory {memory.id}")
    return memory


def change(change: ChangeMemory) -> Rule[MemoryRecord]:
    """Replace a memory; its earlier version is kept."""
    memory = change.memory
    scope = Scope.of(memory.user, memory.space)
    yield from expect_user(scope)
    before = yield from _unchanged(scope, memory.id, memory.revision)
    yield AddMemoryVersion(MemoryVersion(before, change.action, change.actor, moment(now())))
    after = replace(memory, created_at=before.created_at, sources=before.sources, revision=before.revision + 1)
    yield PutMemoryRow(after, before.text)
    yield RecordAudit(scope, change.actor, f"memory.{change.action}", f"memory {memory.id}")
    return after


def count(change: CountMemory) -> Rule[None]:
    """Count that a memory was stated again. Raises SourcesChanged if a source was edited or taken back."""
    scope = change.scope
    yield from expect_user(scope)
    memory = yield from ask(MemoryById(scope, change.memory))
    if change.sources:
        expect_newest((yield from ask(MessagesByNumber(scope, change.sources))))
    times, seen_at = memory.times + change.times, max(memory.seen_at, change.seen_at)
    yield PutMemoryRow(replace(memory, times=times, seen_at=seen_at), memory.text)
    yield AddMemorySources(scope, memory.id, change.sources, SOURCES_KEPT)


def restore(row: MemoryRow) -> Rule[Restored]:
    """Store a memory of a dump with its versions, or bring the one that is here to the state it got elsewhere."""
    new = replace(row.memory, revision=1 + len(row.versions))
    scope, created = Scope.of(new.user, new.space), microseconds(new.created_at, "the time")
    yield KeepUser(scope, created)
    known = yield from ask(MemoryFirstStated(scope, created, row.first_text))
    if known is None:
        number = yield from ask(AddMemoryRow(replace(new, sources=()), least=new.id))
        yield from _keep_versions(row, number, 0)
        yield AddMemorySources(scope, number, new.sources, max(SOURCES_KEPT, len(new.sources)))
        return Restored(number, True)
    if known.revision < new.revision:
        yield from _keep_versions(row, known.id, known.revision - 1)
        yield PutMemoryRow(replace(new, id=known.id), known.text)
    else:
        times, seen_at = max(known.times, new.times), max(known.seen_at, new.seen_at)
        yield PutMemoryRow(replace(known, times=times, seen_at=seen_at), known.text)
    yield AddMemorySources(scope, known.id, new.sources, SOURCES_KEPT)
    return Restored(known.id, False)


def restore_successor(row: SuccessorRow) -> Rule[Restored]:
    """Store which memory superseded another."""
    yield SetSuccessor(row.space, row.memory, row.revision, row.by)
    return Restored(row.memory, False)


def _keep_versions(row: MemoryRow, number: int, kept: int) -> Rule[None]:
    for revision, version in enumerate(row.versions[kept:], kept + 1):
        yield AddMemoryVersion(replace(version, before=replace(version.before, id=number, revision=revision)))


def _unchanged(scope: Scope, number: int, revision: int | None) -> Rule[MemoryRecord]:
    """Return a memory. Raises SourcesChanged if it has another revision than when something was decided about it."""
    memory = yield from ask(MemoryById(scope, number))
    if memory.revision != revision:
        raise SourcesChanged(f"memory {number} has changed since; read it again")
    return memory


def _drafted(draft: MemoryDraft, sources: tuple[int, ...], created: datetime) -> MemoryRecord:
    since = draft.valid_from or created
    return MemoryRecord(
        id=0,
        space=draft.scope.space,
        user=draft.scope.user,
        category=draft.category,
        text=draft.text,
        importance=draft.importance,
        tags=draft.tags,
        sources=sources,
        created_at=created,
        active=draft.state == "active",
        state=draft.state,
        priority=draft.priority,
        speaker=draft.speaker or draft.scope.user,
        subject=draft.subject,
        event=draft.event,
        remind_at=draft.remind_at,
        delivered_at=None,
        expires_at=draft.expires_at,
        valid_from=since,
        valid_to=draft.valid_to,
        superseded_by=draft.superseded_by,
        extractor=draft.extractor,
        trust=draft.trust,
        reason=draft.reason,
        times=draft.times,
        seen_at=since,
        revision=1,
        kind=draft.kind or kind_of(draft.category, draft.tags, draft.event, draft.subject),
        about=draft.about or about_in(draft.tags),
        said_at=draft.said_at or since,
        language=draft.language,
        confidence=draft.confidence,
    )


def advance(change: Advance) -> Rule[None]:
    """Update the agenda of a policy for new messages, and record that they were processed."""
    space = processed_space(change)
    if (yield from ask(Progress(space, change.policy))) != change.after:
        raise SourcesChanged(f"somebody else has walked past message {change.after}")
    if change.messages is not None:
        # Counted again, because the agenda would count erased messages forever, and name users who were purged.
        left = yield from ask(MessagesPassed(space, change.after, change.up_to))
        if left != change.messages:
            raise SourcesChanged(f"some of the messages {change.after + 1} to {change.up_to} were erased since")
    yield SetProgress(change.policy, space, change.up_to)
    if change.touched:
        found = yield from ask(PlannedEntries([touch.subject for touch in change.touched]))
        planned = {entry.subject: entry for entry in found}
        for touch in change.touched:
            planned[touch.subject] = _touched(planned.get(touch.subject), touch)
        yield PutEntries(list(planned.values()))


def processed_space(change: Advance) -> str:
    """Return the space whose messages were processed."""
    return change.space or next((touch.subject.space for touch in change.touched), "")


def finish_entry(change: FinishEntry) -> Rule[None]:
    """Record that a subject was processed, or why not."""
    entry = yield from ask(PlannedEntry(change.subject))
    if entry is None:
        return
    if change.error is not None:
        failed = replace(entry, failures=entry.failures + 1, error=change.error, due_at=change.due_at)
        yield PutEntries([failed])
        return
    unchanged = entry.last_seq == change.last_seq
    done = replace(
        entry,
        failures=0,
        error=None,
        done_at=entry.done_at if change.done_at is None else change.done_at,
        done_seq=entry.done_seq if change.done_at is None else change.last_seq,
        due_at=change.due_at if unchanged or entry.due_at is None else entry.due_at,
        waiting=0 if unchanged else entry.waiting,
    )
    yield PutEntries([done])


def restore_day(row: DayRow) -> Rule[Restored]:
    """Record that a day was summarised, unless there is something new of it here."""
    subject = Subject(row.policy, row.space, day=row.day)
    known = yield from ask(PlannedEntry(subject))
    entry = known or Entry(subject, messages=0, characters=0, waiting=0, last_seq=0, due_at=None)
    if known is not None and known.last_seq > known.done_seq:
        return Restored(0, False)
    done_at = max(row.done_at, entry.done_at or row.done_at)
    done = replace(entry, done_at=done_at, done_seq=max(row.done_seq, entry.done_seq))
    if done != known:
        yield PutEntries([done])
    return Restored(0, done != known)


def _touched(entry: Entry | None, touch: Touch) -> Entry:
    if entry is None:
        return Entry(touch.subject, touch.messages, touch.characters, touch.messages, touch.last_seq, touch.due_at)
    due_at = touch.due_at if entry.due_at is None else min(entry.due_at, touch.due_at)
    return replace(
        entry,
        messages=entry.messages + touch.messages,
        characters=entry.characters + touch.characters,
        waiting=entry.waiting + touch.messages,
        last_seq=touch.last_seq,
        due_at=entry.due_at if entry.failures else due_at,
    )
