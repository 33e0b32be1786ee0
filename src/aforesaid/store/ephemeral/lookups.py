"""What rules look up, over dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Final

from aforesaid.domain.agenda import Entry
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.report import AuditEntry
from aforesaid.domain.summary import Summary
from aforesaid.domain.transfer import MemoryRow
from aforesaid.store.ephemeral.state import State, as_microseconds, person
from aforesaid.store.ephemeral.writes import in_chunk
from aforesaid.store.questions import Question
from aforesaid.store.rules import lookups

if TYPE_CHECKING:
    from aforesaid.store.ephemeral.changes import Changes


class RestoreIndex:
    """Finds what a dump may bring a second time. Made when it is first needed, for one change set."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._audit: set[Hashable] | None = None
        self._summaries: dict[Hashable, list[int]] | None = None

    def note_audit(self, entry: AuditEntry) -> None:
        """Add a new row of the audit log."""
        if self._audit is not None:
            self._audit.add(_what(entry))

    def note_summary(self, summary: Summary) -> None:
        """Add a new summary."""
        if self._summaries is not None:
            self._summaries.setdefault(_similarity(summary), []).append(summary.id)

    def has_audit(self, entry: AuditEntry) -> bool:
        """Return whether a row of the audit log is there."""
        if self._audit is None:
            self._audit = {_what(each) for each in self._state.audit.values()}
        return _what(entry) in self._audit

    def similar(self, summary: Summary) -> list[Summary]:
        """Return the summaries that are similar to one."""
        if self._summaries is None:
            self._summaries = {}
            for each in self._state.summaries.values():
                self._summaries.setdefault(_similarity(each), []).append(each.id)
        return [self._state.summaries[number] for number in self._summaries.get(_similarity(summary), ())]


def _what(entry: AuditEntry) -> Hashable:
    return entry.space, entry.user, entry.at, entry.actor, entry.action, entry.subject


def _similarity(summary: Summary) -> Hashable:
    whose = (summary.space, summary.user, summary.thread)
    covers = (summary.kind, summary.level, summary.first, summary.last)
    return *whose, *covers, summary.prompt, summary.day, summary.version


def _messages_up_to(work: Changes, lookup: lookups.MessagesUpTo) -> int:
    return sum(seq <= lookup.seq for seq in work.state.numbers.owned(person(lookup.scope)))


def _covered(work: Changes, lookup: lookups.MessagesCovered) -> lookups.Coverage | None:
    found = [entry.message for entry in work.state.stretch(lookup.scope, lookup.first, lookup.last)]
    times = {
        message.seq: at
        for message in found
        if (not lookup.here or message.thread == lookup.scope.thread)
        and lookup.since <= (at := as_microseconds(message.at)) < lookup.until
    }
    if not times:
        return None
    return lookups.Coverage(len(times), min(times), max(times), min(times.values()), max(times.values()))


def _chunk_size(work: Changes, lookup: lookups.ChunkSize) -> tuple[int, int]:
    messages = [work.state.log[seq].message for seq in in_chunk(work.state, lookup.scope, lookup.chunk)]
    return len(messages), sum(message.role == "user" for message in messages)


def _summaries_by_number(work: Changes, lookup: lookups.SummariesByNumber) -> list[Summary]:
    found = [work.state.summaries.get(number) for number in sorted(set(lookup.numbers))]
    return [each for each in found if each is not None and (each.space, each.user) == person(lookup.scope)]


def _made_from(work: Changes, lookup: lookups.SummariesMadeFrom) -> list[Summary]:
    wanted = set(lookup.numbers)
    return [
        summary
        for summary in work.state.summaries.values()
        if not summary.rolled_back and not wanted.isdisjoint(summary.sources)
    ]


def _first_stated(work: Changes, lookup: lookups.MemoryFirstStated) -> MemoryRecord | None:
    for memory in work.state.memories.values():
        if (memory.space, memory.user) == person(lookup.scope) and (
            as_microseconds(memory.created_at) == lookup.created_at
        ):
            versions = work.state.versions.get(memory.id, ())
            if MemoryRow(memory, versions).first_text == lookup.text:
                return memory
    return None


def _planned(work: Changes, lookup: lookups.PlannedEntries) -> list[Entry]:
    found = [work.state.agenda.get(subject) for subject in lookup.subjects]
    return [entry for entry in found if entry is not None]


LOOKUPS: Final[Mapping[type[Question[Any]], Callable[[Changes, Any], Any]]] = {
    lookups.IsUser: lambda work, lookup: person(lookup.scope) in work.state.owners,
    lookups.LastChunk: lambda work, lookup: work.state.chunks.get(person(lookup.scope), 0),
    lookups.Extracted: lambda work, lookup: work.state.extracted.get(person(lookup.scope), 0),
    lookups.MessagesUpTo: _messages_up_to,
    lookups.MessagesCovered: _covered,
    lookups.ChunkSize: _chunk_size,
    lookups.SummariesByNumber: _summaries_by_number,
    lookups.SummariesMadeFrom: _made_from,
    lookups.SimilarSummaries: lambda work, lookup: work.index.similar(lookup.summary),
    lookups.MemoryFirstStated: _first_stated,
    lookups.AuditIsKnown: lambda work, lookup: work.index.has_audit(lookup.entry),
    lookups.Progress: lambda work, lookup: work.state.walks.get(lookup.policy, 0),
    lookups.PlannedEntries: _planned,
}
