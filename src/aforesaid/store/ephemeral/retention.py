"""Removing what has been there for long enough from the store in memory, and marks of the store itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from aforesaid.domain.checks import moment
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.note import NoteKey
from aforesaid.domain.retention import Discard, Discardable, Discarded
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary
from aforesaid.store.ephemeral import purging, summaries
from aforesaid.store.ephemeral.numbers import Name
from aforesaid.store.ephemeral.state import State, as_microseconds, facts_table

if TYPE_CHECKING:
    from aforesaid.store.ephemeral.changes import Changes


def discardable(state: State, what: Discardable, before: int) -> int:
    """Return how much is older than a moment."""
    if what == "messages":
        return sum(summary.messages for summary, _ in _archives(state, before))
    return sum(1 for _ in _OLD[what](state, before))


def discard(work: Changes, state: State, change: Discard) -> Discarded:
    """Remove some of what is older than a moment."""
    owners: list[Name] = []
    if not discardable(state, change.what, change.before):
        return Discarded(0)
    for table in ("log", "sessions", "summaries", "memories", "audit"):
        state.given[table] = state.last_number(table)
    if change.what == "messages":
        for summary, messages in list(_archives(state, change.before)):
            if len(owners) >= change.limit:
                break
            purging.erase_messages(work, state, {message.seq: message for message in messages})
            _without_sources(state, {message.seq for message in messages})
            owners += [(summary.space, summary.user)] * len(messages)
    else:
        found = list(islice(_OLD[change.what](state, change.before), change.limit))
        owners = [owner for owner, remove in found if _done(remove)]
    if change.what in {"messages", "summaries", "memories", "versions"}:
        until = moment(change.before).date().isoformat()
        for (space, user), count in Counter(owners).items():
            subject = f"{count} {change.what}, older than {until}"
            work.note(Scope.of(user, space), change.actor, "retention.purge", subject)
    return Discarded(len(owners))


Old = Iterator[tuple[Name, Callable[[], object]]]
"""Whose it is, and what removes it."""


def _done(remove: Callable[[], object]) -> bool:
    remove()
    return True


def _archives(state: State, before: int) -> Iterator[tuple[Summary, list[Message]]]:
    old = [
        summary
        for summary in state.summaries.values()
        if (summary.level, summary.reach) == (1, "chunks")
        and not (summary.rolled_back or summary.replaced)
        and as_microseconds(summary.ended_at) < before
    ]
    for summary in sorted(old, key=lambda summary: (summary.ended_at, summary.id)):
        if messages := summaries.below(state, summary):
            yield summary, messages


def _without_sources(state: State, gone: set[int]) -> None:
    for number, memory in list(state.memories.items()):
        if gone.intersection(memory.sources):
            left = tuple(seq for seq in memory.sources if seq not in gone)
            state.memories[number] = replace(memory, sources=left)


def _summaries(state: State, before: int) -> Old:
    stood_on = {source for summary in state.summaries.values() for source in summary.sources}
    for summary in list(state.summaries.values()):
        over = (summary.replaced or summary.rolled_back) and not summary.active
        if over and as_microseconds(summary.created_at) < before and summary.id not in stood_on:
            yield (summary.space, summary.user), lambda gone=summary.id: _remove_summary(state, gone)  # type: ignore[misc]


def _remove_summary(state: State, gone: int) -> None:
    del state.summaries[gone]
    _without_vectors(state, NoteKey("summary", gone))
    for number, summary in list(state.summaries.items()):
        if summary.replaces == gone:
            state.summaries[number] = replace(summary, replaces=None)


def _memories(state: State, before: int) -> Old:
    for memory in list(state.memories.values()):
        if memory.active or memory.state == "quarantined":
            continue
        versions = state.versions.get(memory.id, ())
        changed = max((version.at for version in versions), default=memory.created_at)
        if as_microseconds(changed) < before:
            yield (memory.space, memory.user), lambda gone=memory.id: _remove_memory(state, gone)  # type: ignore[misc]


def _remove_memory(state: State, gone: int) -> None:
    del state.memories[gone]
    state.versions.pop(gone, None)
    _without_vectors(state, NoteKey("memory", gone))

    def freed(memory: MemoryRecord) -> MemoryRecord:
        return replace(memory, superseded_by=None) if memory.superseded_by == gone else memory

    for number, memory in list(state.memories.items()):
        state.memories[number] = freed(memory)
        if versions := state.versions.get(number):
            state.versions[number] = tuple(replace(each, before=freed(each.before)) for each in versions)


def _without_vectors(state: State, note: NoteKey) -> None:
    for key in [key for key in state.note_vectors if key[1] == note]:
        del state.note_vectors[key]


def _versions(state: State, before: int) -> Old:
    replaced: dict[Name, int] = {}
    for (owner, version), facts in state.facts.items():
        if as_microseconds(facts.updated_at) < before:
            replaced[owner] = max(version, replaced.get(owner, 0))
    for owner, version in sorted(state.facts):
        if version < replaced.get(owner, 0):
            yield owner, lambda key=(owner, version): _remove_facts(state, *key)  # type: ignore[misc]
    for number, versions in list(state.versions.items()):
        old = max((place for place, each in enumerate(versions, 1) if as_microseconds(each.at) < before), default=0)
        memory = state.memories[number]
        for _ in range(old):
            yield (memory.space, memory.user), lambda key=number: _remove_version(state, key)  # type: ignore[misc]


def _remove_facts(state: State, owner: Name, version: int) -> None:
    del state.facts[owner, version]
    state.given[facts_table(owner)] = version


def _remove_version(state: State, number: int) -> None:
    """Remove the oldest version of a memory."""
    left = state.versions[number][1:]
    if left:
        state.versions[number] = left
    else:
        del state.versions[number]


def _derived(state: State, before: int) -> Old:
    for (owner, kind), derived in list(state.derived.items()):
        if as_microseconds(derived.at) < before:
            yield owner, lambda key=(owner, kind): state.derived.pop(key)  # type: ignore[misc]


def _audit(state: State, before: int) -> Old:
    for number, row in list(state.audit.items()):
        if as_microseconds(row.at) < before:
            yield (row.space, row.user), lambda key=number: state.audit.pop(key)  # type: ignore[misc]


def _spending(state: State, before: int) -> Old:
    until = moment(before).date()
    for day, payer in list(state.spending):
        if day < until:
            yield payer or ("", ""), lambda key=(day, payer): state.spending.pop(key)  # type: ignore[misc]


_OLD: dict[Discardable, Callable[[State, int], Iterable[tuple[Name, Callable[[], object]]]]] = {
    "summaries": _summaries,
    "memories": _memories,
    "versions": _versions,
    "derived": _derived,
    "audit": _audit,
    "spending": _spending,
}
