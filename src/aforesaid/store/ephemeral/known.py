"""Changes to what is known about users, on the store in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from aforesaid.domain.checks import moment
from aforesaid.domain.clock import now
from aforesaid.domain.literals import Timely
from aforesaid.domain.memory import Derived, MemoryRecord, MemoryVersion, Tombstone, Unextracted
from aforesaid.domain.memory_change import (
    SOURCES_KEPT,
    AddMemory,
    AuditAccess,
    ChangeMemory,
    CountMemory,
    Forget,
    MarkExtracted,
    MemoryChange,
    PutDerived,
    Superseded,
)
from aforesaid.domain.note import NoteKey
from aforesaid.domain.scope import Scope
from aforesaid.errors import NotFound, SourcesChanged, quoted
from aforesaid.store.ephemeral.state import State, person

if TYPE_CHECKING:
    from aforesaid.store.ephemeral.changes import Changes


def carry_out(work: Changes, state: State, change: MemoryChange) -> MemoryRecord | None:
    """Carry out one change."""
    match change:
        case AddMemory():
            return _add(work, state, change)
        case ChangeMemory():
            return _change(work, state, change)
        case CountMemory():
            _count(work, state, change)
        case Forget():
            _forget(work, state, change)
        case PutDerived():
            _put_derived(work, state, change)
        case MarkExtracted():
            _mark_extracted(work, state, change)
        case AuditAccess():
            work.note(change.scope, change.actor, change.action, change.subject)
    return None


def _add(work: Changes, state: State, change: AddMemory) -> MemoryRecord:
    draft, created = change.draft, moment(now())
    scope, sources = draft.scope, tuple(sorted(set(draft.sources)))
    work.own(scope)
    if any(seq not in state.log or state.log[seq].owner != person(scope) for seq in sources):
        raise NotFound("a source of the memory is not one of this user's messages")
    for old in change.supersedes:  # before the new one is there: it cannot take its own place
        _checked(state, scope, old)
    since = draft.valid_from or created
    memory = MemoryRecord(
        id=state.number("memories"),
        space=scope.space,
        user=scope.user,
        category=draft.category,
        text=draft.text,
        importance=draft.importance,
        tags=draft.tags,
        sources=sources,
        created_at=created,
        active=draft.state == "active",
        state=draft.state,
        priority=draft.priority,
        speaker=draft.speaker or scope.user,
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
    )
    state.memories[memory.id] = memory
    work.note(scope, change.actor, "memory.add", f"memory {memory.id}")
    for old in change.supersedes:
        _supersede(work, state, change, old, memory.id, since)
    return memory


def _supersede(work: Changes, state: State, change: AddMemory, old: Superseded, new: int, since: datetime) -> None:
    before = _checked(state, change.draft.scope, old)
    _keep_version(state, before, "supersede", change.actor)
    state.memories[before.id] = replace(
        before,
        state="superseded",
        active=False,
        valid_to=max(before.valid_from, since),
        superseded_by=new,
        reason="",
        revision=before.revision + 1,
    )
    work.note(change.draft.scope, change.actor, "memory.supersede", f"memory {before.id} by memory {new}")


def _change(work: Changes, state: State, change: ChangeMemory) -> MemoryRecord:
    memory = change.memory
    scope = Scope.of(memory.user, memory.space)
    work.known(scope)
    before = _checked(state, scope, Superseded(memory.id, memory.revision))
    _keep_version(state, before, change.action, change.actor)
    after = replace(memory, created_at=before.created_at, sources=before.sources, revision=before.revision + 1)
    state.memories[memory.id] = after
    if after.text != before.text:
        for embedder, key in list(state.note_vectors):
            if key == NoteKey("memory", memory.id):
                del state.note_vectors[embedder, key]
    work.note(scope, change.actor, f"memory.{change.action}", f"memory {memory.id}")
    return after


def _count(work: Changes, state: State, change: CountMemory) -> None:
    work.known(change.scope)
    memory = state.memory(change.scope, change.memory)
    mine = [seq for seq in change.sources if seq in state.log and state.log[seq].owner == person(change.scope)]
    new = sorted(set(mine) - set(memory.sources))[: max(0, SOURCES_KEPT - len(memory.sources))]
    state.memories[memory.id] = replace(
        memory,
        times=memory.times + change.times,
        seen_at=max(memory.seen_at, change.seen_at),
        sources=tuple(sorted((*memory.sources, *new))),
    )


def _forget(work: Changes, state: State, change: Forget) -> None:
    work.own(change.scope)
    last = state.last_of(change.scope)
    stones = tuple(Tombstone(words, last) for words in change.words)
    state.tombstones[person(change.scope)] = (*state.tombstones.get(person(change.scope), ()), *stones)
    work.note(change.scope, change.actor, "forget", f"{len(change.words)} things")


def _put_derived(work: Changes, state: State, change: PutDerived) -> None:
    work.own(change.scope)
    kept = state.derived.get((person(change.scope), change.kind))
    if change.instead_of is not None and ("" if kept is None else kept.key) != change.instead_of:
        raise SourcesChanged(f"the {change.kind} of {quoted(change.scope.user)} was computed by another process first")
    state.derived[person(change.scope), change.kind] = Derived(change.key, change.value, moment(now()))


def _mark_extracted(work: Changes, state: State, change: MarkExtracted) -> None:
    work.known(change.scope)
    if state.extracted.get(person(change.scope), 0) != change.after:
        raise SourcesChanged(f"the messages of {quoted(change.scope.user)} were processed by another process first")
    state.extracted[person(change.scope)] = change.up_to


def _checked(state: State, scope: Scope, old: Superseded) -> MemoryRecord:
    memory = state.memory(scope, old.memory)
    if memory.revision != old.revision:
        raise SourcesChanged(f"memory {old.memory} has changed since; read it again")
    return memory


def _keep_version(state: State, before: MemoryRecord, action: str, actor: str) -> None:
    version = MemoryVersion(before, action, actor, moment(now()))
    state.versions[before.id] = (*state.versions.get(before.id, ()), version)


def with_sources(newest: MemoryRecord, versions: tuple[MemoryVersion, ...]) -> tuple[MemoryVersion, ...]:
    """Return versions of a memory with the sources that it has by now: those belong to no version."""
    return tuple(replace(each, before=replace(each.before, sources=newest.sources)) for each in versions)


def due_memories(state: State, what: Timely, before: datetime) -> list[MemoryRecord]:
    """Return active memories, of all spaces, whose time has come, oldest first."""

    def changed_since(memory: MemoryRecord) -> bool:
        return any(each.at > before for each in state.versions.get(memory.id, ()))

    clocks: dict[Timely, Callable[[MemoryRecord], datetime | None]] = {
        "expiry": lambda memory: memory.expires_at,
        "reminder": lambda memory: memory.remind_at if memory.delivered_at is None else None,
        "unseen": lambda memory: None if changed_since(memory) else memory.seen_at,
    }
    times = {memory.id: clocks[what](memory) for memory in state.memories.values() if memory.active}
    due = sorted((at, number) for number, at in times.items() if at is not None and at <= before)
    return [state.memories[number] for _, number in due]


def unextracted_users(state: State, after: Scope | None) -> list[Unextracted]:
    """Return users of whom something was stored that nobody has looked through, in the order in which they came."""
    every = [
        Unextracted(Scope.of(name, space), state.extracted.get((space, name), 0), 0) for space, name in state.owners
    ]
    newest = [user._replace(last=state.last_of(user.scope)) for user in every]
    waiting = [user for user in newest if user.last > user.after]
    if after is None:
        return waiting
    order = list(state.owners)
    start = order.index(person(after)) if person(after) in order else -1
    return [user for user in waiting if order.index(person(user.scope)) > start]
