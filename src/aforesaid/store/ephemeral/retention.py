"""What is old enough to be deleted, in the store in memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Final

from aforesaid.domain.change import Discardable
from aforesaid.domain.checks import moment
from aforesaid.domain.summary import Summary
from aforesaid.store import questions
from aforesaid.store.ephemeral.known_reads import below
from aforesaid.store.ephemeral.reader import Reader
from aforesaid.store.ephemeral.state import Name, State, as_microseconds
from aforesaid.store.rules.lookups import OldRow, OldTable
from aforesaid.store.rules.retention import OLD_TABLES


def discardable(reader: Reader, question: questions.DiscardableCount) -> int:
    """Return how many rows are older than a moment."""
    state, what, before = reader.state, question.what, question.before
    if what == "messages":
        return sum(summary.covered for summary in _archiving(state, before))
    if what not in OLD_TABLES:
        return len(old_keys(state, what, before))
    return sum(1 for table in OLD_TABLES[what] for _ in OLD[table](state, before))


def old_keys(state: State, table: Discardable, before: int) -> list[Hashable]:
    """Return the keys of old rows of the tables that are deleted from without a word to the users."""
    if table == "spending":
        until = moment(before).date()
        return [key for key in state.spending if key[0] < until]
    rows: Mapping[Any, Any] = getattr(state, table)
    return [key for key, row in rows.items() if as_microseconds(row.at) < before]


def _archiving(state: State, before: int) -> list[Summary]:
    """Return the summaries of archives that still have messages, oldest first."""
    old = [
        summary
        for summary in state.summaries.values()
        if (summary.level, summary.reach) == (1, "chunks")
        and not (summary.rolled_back or summary.replaced)
        and as_microseconds(summary.ended_at) < before
    ]
    old.sort(key=lambda summary: (summary.ended_at, summary.id))
    return [summary for summary in old if below(state, summary)]


def _archives(state: State, before: int) -> Iterator[OldRow]:
    for summary in _archiving(state, before):
        yield OldRow(summary.space, summary.user, summary.chunks[0])


def _summaries(state: State, before: int) -> Iterator[OldRow]:
    stood_on = {source for summary in state.summaries.values() for source in summary.sources}
    for summary in state.summaries.values():
        over = (summary.replaced or summary.rolled_back) and not summary.active
        if over and as_microseconds(summary.created_at) < before and summary.id not in stood_on:
            yield OldRow(summary.space, summary.user, summary.id)


def _memories(state: State, before: int) -> Iterator[OldRow]:
    for memory in state.memories.values():
        if not memory.active and memory.state != "quarantined":
            versions = state.versions.get(memory.id, ())
            changed = max((version.at for version in versions), default=memory.created_at)
            if as_microseconds(changed) < before:
                yield OldRow(memory.space, memory.user, memory.id)


def _facts(state: State, before: int) -> Iterator[OldRow]:
    """Return the versions of facts up to one that had been replaced by then: what is left has no gaps."""
    replaced: dict[Name, int] = {}
    for (owner, version), facts in state.facts.items():
        if as_microseconds(facts.updated_at) < before:
            replaced[owner] = max(version, replaced.get(owner, 0))
    for owner, version in sorted(state.facts):
        if version < replaced.get(owner, 0):
            yield OldRow(*owner, version)


def _memory_versions(state: State, before: int) -> Iterator[OldRow]:
    for number, versions in state.versions.items():
        memory = state.memories[number]
        old = max((place for place, each in enumerate(versions, 1) if as_microseconds(each.at) < before), default=0)
        for version in versions[:old]:
            yield OldRow(memory.space, memory.user, number, version.before.revision)


OLD: Final[dict[OldTable, Callable[[State, int], Iterator[OldRow]]]] = {
    "archives": _archives,
    "summaries": _summaries,
    "memories": _memories,
    "facts": _facts,
    "memory_versions": _memory_versions,
}
