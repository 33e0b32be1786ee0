"""Reads of memories, summaries and what is due, on the store in memory: one function for each question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

from aforesaid.domain.checks import Timely
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.memory import Derived, Facts, MemoryRecord, MemoryVersion, Tombstone, Unextracted
from aforesaid.domain.message import Message, in_time_order
from aforesaid.domain.report import MemoryCount
from aforesaid.domain.scope import Ahead, Backlog, Entry, Passed, Scope
from aforesaid.domain.summary import Summary
from aforesaid.errors import NotFound, quoted
from aforesaid.store import questions
from aforesaid.store.ephemeral.reader import Reader
from aforesaid.store.ephemeral.state import State, as_microseconds, person


def memories(reader: Reader, question: questions.Memories) -> list[MemoryRecord]:
    """Return the user's memories, most important first."""
    found = [
        memory
        for memory in reader.state.memories.values()
        if (memory.space, memory.user) == person(question.scope) and question.active in (None, memory.active)
    ]
    if question.messages is not None:
        first, last = question.messages
        found = [memory for memory in found if any(first <= seq <= last for seq in memory.sources)]
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
        and question.kind in (None, memory.kind)
        and question.state in (None, memory.state)
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


def summary(reader: Reader, question: questions.SummaryById) -> Summary:
    """Return one of the user's summaries."""
    return reader.state.summary(question.scope, question.summary)


def summaries_of(reader: Reader, question: questions.Summaries) -> list[Summary]:
    """Return the user's summaries, highest level first."""
    found = [
        summary
        for summary in reader.state.summaries.values()
        if (summary.space, summary.user) == person(question.scope)
        and question.active in (None, summary.active)
        and question.kind in (None, summary.kind)
        and question.day in (None, summary.day)
        and (not question.here or summary.thread == question.scope.thread)
    ]
    return sorted(found, key=lambda summary: (-summary.level, summary.id))


def without_model(reader: Reader, question: questions.SummariesWithoutModel) -> list[Summary]:
    """Return active summaries that no model and no person wrote, oldest first."""
    return [
        summary
        for summary in reader.state.summaries.values()
        if summary.active
        and (summary.kind, summary.prompt) == (question.kind, question.prompt)
        and summary.id > question.after
        and summary.model is None
        and summary.edited_by is None
    ][: question.limit]


def below(state: State, summary: Summary) -> list[Message]:
    """Return the messages below a summary."""
    scope = Scope(summary.space, summary.user, summary.thread)
    if summary.reach == "chunks":
        entries = state.stretch(scope, summary.first, summary.last)
        return [entry.message for entry in entries if entry.message.chunk in summary.chunks]
    if summary.reach == "sources":
        every = {each.seq: each for source in summary.sources for each in below(state, state.summaries[source])}
        return [every[seq] for seq in sorted(every)]
    found = [entry.message for entry in state.stretch(scope, summary.first, summary.last)]
    return [
        message
        for message in found
        if summary.began_at <= message.at <= summary.ended_at
        and (summary.reach != "thread" or message.thread == summary.thread)
    ]


def covered(reader: Reader, question: questions.CoveredMessages) -> list[Message]:
    """Return the messages below a summary."""
    return in_time_order(below(reader.state, reader.state.summary(question.scope, question.summary)))


def above(reader: Reader, question: questions.SummariesAbove) -> list[Summary]:
    """Return the summaries that a message lies below."""
    state, owner, entry = reader.state, person(question.scope), reader.state.log.get(question.seq)
    if entry is None or entry.owner != owner:
        raise NotFound(f"{quoted(question.scope.user)} has no message with the number {question.seq}")
    found = [
        summary
        for summary in state.summaries.values()
        if (summary.space, summary.user) == owner
        and not summary.rolled_back
        and not summary.replaced
        and entry.message in below(state, summary)
    ]
    return sorted(found, key=lambda summary: (summary.kind, summary.level, summary.id))


def ahead(reader: Reader, question: questions.Unprocessed) -> Ahead:
    """Return the oldest messages that a policy has not processed."""
    up_to = reader.state.walks.get(question.policy, 0)
    oldest = (entry.message for entry in islice(reader.state.after(up_to), question.limit))
    return Ahead(
        up_to,
        tuple(
            Passed(each.seq, each.space, each.user, each.thread, each.role, as_microseconds(each.at), len(each.text))
            for each in oldest
        ),
    )


def due_entries(reader: Reader, question: questions.DueEntries) -> list[Entry]:
    """Return what is due, longest waiting first; with `failing` also what is tried again later."""
    planned = sorted(_scheduled(reader, question.policy), key=lambda pair: (pair[0], pair[1].subject))
    due = [entry for at, entry in planned if at <= question.due_by]
    later = [entry for at, entry in planned if question.failing and at > question.due_by and entry.failures]
    return [*due, *later][: question.limit]


def planned(reader: Reader, question: questions.PlannedEntry) -> Entry | None:
    """Return what is planned for a subject."""
    return reader.state.agenda.get(question.subject)


def backlog(reader: Reader, question: questions.PolicyBacklog) -> Backlog:
    """Return how much is due."""
    planned = _scheduled(reader, question.policy)
    due = [entry for at, entry in planned if at <= question.due_by]
    failing = sorted((at, entry.subject, entry) for at, entry in planned if entry.failures)
    error = failing[-1][2].error if failing else None
    return Backlog(len(due), sum(entry.waiting for entry in due), len(failing), error)


def _scheduled(reader: Reader, policy: str) -> list[tuple[int, Entry]]:
    return [
        (entry.due_at, entry)
        for entry in reader.state.agenda.values()
        if entry.subject.policy == policy and entry.due_at is not None
    ]


def with_sources(newest: MemoryRecord, versions: tuple[MemoryVersion, ...]) -> tuple[MemoryVersion, ...]:
    """Return versions of a memory with the sources that it has by now: those belong to no version."""
    return tuple(replace(each, before=replace(each.before, sources=newest.sources)) for each in versions)


def memories_due(reader: Reader, question: questions.DueMemories) -> list[MemoryRecord]:
    """Return active memories, of all spaces, whose time has come, oldest first."""
    state, before = reader.state, question.before

    def changed_since(memory: MemoryRecord) -> bool:
        return any(each.at > before for each in state.versions.get(memory.id, ()))

    clocks: dict[Timely, Callable[[MemoryRecord], datetime | None]] = {
        "expiry": lambda memory: memory.expires_at,
        "reminder": lambda memory: memory.remind_at if memory.delivered_at is None else None,
        "unseen": lambda memory: None if changed_since(memory) else memory.seen_at,
    }
    times = {memory.id: clocks[question.what](memory) for memory in state.memories.values() if memory.active}
    due = sorted((at, number) for number, at in times.items() if at is not None and at <= before)
    return [state.memories[number] for _, number in due[: question.limit]]


def unextracted(reader: Reader, question: questions.UnextractedUsers) -> list[Unextracted]:
    """Return users of whom something was stored that nobody has looked through, in the order in which they came."""
    state, after = reader.state, question.after
    users = list(state.owners)
    start = 0 if after is None or person(after) not in users else users.index(person(after)) + 1
    every = [(Scope.of(name, space), state.extracted.get((space, name), 0)) for space, name in users[start:]]
    newest = [Unextracted(scope, extracted, state.last_of(scope)) for scope, extracted in every]
    return [user for user in newest if user.last > user.after][: question.limit]
