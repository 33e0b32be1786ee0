"""Reads of what is known about users, on the store in memory."""

from __future__ import annotations

from collections import Counter
from datetime import UTC

from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.memory import Derived, Facts, MemoryRecord, MemoryVersion, Tombstone, Unextracted
from aforesaid.domain.report import MemoryCount
from aforesaid.store import questions
from aforesaid.store.ephemeral.known import due_memories, unextracted_users, with_sources
from aforesaid.store.ephemeral.reader import Reader
from aforesaid.store.ephemeral.state import as_microseconds, person


def memories(reader: Reader, question: questions.Memories) -> list[MemoryRecord]:
    """Return the user's memories, most important first."""
    found = [
        memory
        for memory in reader.state.memories.values()
        if (memory.space, memory.user) == person(question.scope) and question.active in (None, memory.active)
    ]
    return sorted(found, key=lambda memory: (-memory.importance, -memory.id))


def facts(reader: Reader, question: questions.NewestFacts) -> Facts | None:
    """Return the newest version of the user's facts."""
    versions = [facts for (owner, _), facts in reader.state.facts.items() if owner == person(question.scope)]
    return max(versions, key=lambda facts: facts.version, default=None)


def memory(reader: Reader, question: questions.MemoryById) -> MemoryRecord:
    """Return one of the user's memories."""
    return reader.state.memory(question.scope, question.memory)


def memories_in(reader: Reader, question: questions.MemoriesOfSpace) -> list[MemoryRecord]:
    """Return the newest memories of a space, newest first."""
    found = [
        memory
        for memory in reader.state.memories.values()
        if memory.space == question.space
        and question.user in (None, memory.user)
        and question.active in (None, memory.active)
        and question.category in (None, memory.category)
        and (question.before is None or memory.id < question.before)
    ]
    return sorted(found, key=lambda memory: -memory.id)[: question.limit]


def memory_counts(reader: Reader, question: questions.MemoryCounts) -> list[MemoryCount]:
    """Return the number of memories by the day on which they were said, category, importance and state."""
    counted = Counter(
        (memory.said_at.astimezone(UTC).date(), memory.category, memory.importance, memory.state)
        for memory in reader.state.memories.values()
        if memory.space == question.space and question.user in (None, memory.user)
    )
    return [MemoryCount(*key, count) for key, count in sorted(counted.items())]


def memory_versions(reader: Reader, question: questions.MemoryVersions) -> list[MemoryVersion]:
    """Return what a memory was before each of its changes, oldest first."""
    newest = reader.state.memory(question.scope, question.memory)
    return list(with_sources(newest, reader.state.versions.get(question.memory, ())))


def memories_due(reader: Reader, question: questions.DueMemories) -> list[MemoryRecord]:
    """Return active memories, of all spaces, whose time has come, oldest first."""
    return due_memories(reader.state, question.what, question.before)[: question.limit]


def facts_versions(reader: Reader, question: questions.FactsVersions) -> list[Facts]:
    """Return all versions of the user's facts, oldest first."""
    return [facts for (owner, _), facts in reader.state.facts.items() if owner == person(question.scope)]


def forgotten(reader: Reader, question: questions.Tombstones) -> list[Tombstone]:
    """Return what the user asked to forget."""
    return list(reader.state.tombstones.get(person(question.scope), ()))


def derived(reader: Reader, question: questions.DerivedText) -> Derived | None:
    """Return what was worked out for the user."""
    return reader.state.derived.get((person(question.scope), question.kind))


def receipts(reader: Reader, question: questions.Receipts) -> list[ContextReceipt]:
    """Return receipts of contexts, newest first."""
    whose, ids, replies = person(question.scope), question.ids, question.replies
    found = [
        receipt
        for (owner, name), receipt in reader.state.receipts.items()
        if owner == whose
        and (ids is None or name in ids)
        and (replies is None or receipt.reply in replies)
        and (question.since is None or as_microseconds(receipt.at) >= question.since)
        and (question.before is None or name < question.before)
    ]
    return sorted(found, key=lambda receipt: receipt.id, reverse=True)[: question.limit]


def unextracted(reader: Reader, question: questions.UnextractedUsers) -> list[Unextracted]:
    """Return users of whom something was stored that nobody has looked through."""
    return unextracted_users(reader.state, question.after)[: question.limit]
