"""What is known about users, on the store in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from aforesaid.domain.literals import Timely
from aforesaid.domain.memory import MemoryRecord, MemoryVersion, Unextracted
from aforesaid.domain.scope import Scope
from aforesaid.store.ephemeral.state import State, person


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
