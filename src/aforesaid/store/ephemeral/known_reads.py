"""Reads of what is known about users, on the store in memory."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

from aforesaid.domain.checks import LARGEST
from aforesaid.domain.literals import Timely
from aforesaid.domain.memory import Derived, Facts, MemoryRecord, MemoryVersion, Tombstone, Unextracted
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.store.ephemeral.held import Held, locked
from aforesaid.store.ephemeral.known import due_memories, unextracted_users, with_sources
from aforesaid.store.ephemeral.state import person


class KnownReads(Held):
    """What is known about users."""

    @locked
    async def memories(self, scope: Scope, *, active: bool | None = True) -> list[MemoryRecord]:
        """Return the user's memories, most important first."""
        found = [
            memory
            for memory in self._open.memories.values()
            if (memory.space, memory.user) == person(scope) and active in (None, memory.active)
        ]
        return sorted(found, key=lambda memory: (-memory.importance, -memory.id))

    @locked
    async def facts(self, scope: Scope) -> Facts | None:
        """Return the newest version of the user's facts."""
        versions = [facts for (owner, _), facts in self._open.facts.items() if owner == person(scope)]
        return max(versions, key=lambda facts: facts.version, default=None)

    @locked
    async def memory(self, scope: Scope, memory: int) -> MemoryRecord:
        """Return one of the user's memories."""
        return self._open.memory(scope, memory)

    @locked
    async def memories_in(
        self,
        space: str,
        *,
        user: str | None = None,
        active: bool | None = None,
        category: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[MemoryRecord]:
        """Return the newest memories of a space, newest first."""
        found = [
            memory
            for memory in self._open.memories.values()
            if memory.space == space
            and user in (None, memory.user)
            and active in (None, memory.active)
            and category in (None, memory.category)
            and (before is None or memory.id < before)
        ]
        return sorted(found, key=lambda memory: -memory.id)[:limit]

    @locked
    async def memory_versions(self, scope: Scope, memory: int) -> list[MemoryVersion]:
        """Return what a memory was before each of its changes, oldest first."""
        newest = self._open.memory(scope, memory)
        return list(with_sources(newest, self._open.versions.get(memory, ())))

    @locked
    async def memories_due(self, what: Timely, before: datetime, limit: int) -> list[MemoryRecord]:
        """Return active memories, of all spaces, whose time has come, oldest first."""
        return due_memories(self._open, what, before)[:limit]

    @locked
    async def facts_versions(self, scope: Scope) -> list[Facts]:
        """Return all versions of the user's facts, oldest first."""
        return [facts for (owner, _), facts in self._open.facts.items() if owner == person(scope)]

    @locked
    async def forgotten(self, scope: Scope) -> list[Tombstone]:
        """Return what the user asked to forget."""
        return list(self._open.tombstones.get(person(scope), ()))

    @locked
    async def derived(self, scope: Scope, kind: str) -> Derived | None:
        """Return what was worked out for the user."""
        return self._open.derived.get((person(scope), kind))

    @locked
    async def unextracted(self, limit: int, after: Scope | None = None) -> list[Unextracted]:
        """Return users of whom something was stored that nobody has looked through."""
        return unextracted_users(self._open, after)[:limit]

    @locked
    async def following(
        self, scope: Scope, after: int, limit: int, *, here: bool = False, archived: bool = True
    ) -> list[Message]:
        """Return the user's messages after a sequence number, oldest first."""
        found = (
            entry.message
            for entry in self._open.stretch(scope, after + 1, LARGEST)
            if (not here or entry.message.thread == scope.thread) and (archived or entry.message.active)
        )
        return list(islice(found, limit))
