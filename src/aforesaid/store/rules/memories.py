"""Rules for memories: stored, changed, stated again, superseded, and what a dump says of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from aforesaid.domain.checks import microseconds, moment, now
from aforesaid.domain.memory import (
    SOURCES_KEPT,
    AddMemory,
    ChangeMemory,
    CountMemory,
    MemoryDraft,
    MemoryRecord,
    MemoryVersion,
    about_in,
    kind_of,
)
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import MemoryRow, Restored, SuccessorRow
from aforesaid.errors import NotFound, SourcesChanged
from aforesaid.store.questions import MemoryById, MessagesByNumber
from aforesaid.store.rules.driving import Rule, ask
from aforesaid.store.rules.expected import expect_newest, expect_user
from aforesaid.store.rules.lookups import MemoryFirstStated
from aforesaid.store.rules.writes import (
    AddMemoryRow,
    AddMemorySources,
    AddMemoryVersion,
    KeepUser,
    PutMemoryRow,
    RecordAudit,
    SetSuccessor,
)


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
