"""What rules look up, over dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.report import AuditEntry
from aforesaid.domain.scope import Entry
from aforesaid.domain.summary import Summary
from aforesaid.domain.transfer import MemoryRow, purged_by
from aforesaid.store.ephemeral.erasing import OLD
from aforesaid.store.ephemeral.state import State, as_microseconds, person
from aforesaid.store.ephemeral.writes import in_chunk
from aforesaid.store.operations import performers
from aforesaid.store.questions import Question
from aforesaid.store.rules import writes

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


def _messages_up_to(work: Changes, lookup: writes.MessagesUpTo) -> int:
    return sum(seq <= lookup.seq for seq in work.state.numbers.owned(person(lookup.scope)))


def _covered(work: Changes, lookup: writes.MessagesCovered) -> writes.Coverage | None:
    found = [entry.message for entry in work.state.stretch(lookup.scope, lookup.first, lookup.last)]
    times = {
        message.seq: at
        for message in found
        if (not lookup.here or message.thread == lookup.scope.thread)
        and lookup.since <= (at := as_microseconds(message.at)) < lookup.until
    }
    if not times:
        return None
    shown = sum(message.seq in times and not message.replaced for message in found)
    return writes.Coverage(len(times), min(times), max(times), min(times.values()), max(times.values()), shown)


def _is_changed_since(work: Changes, lookup: writes.IsChangedSince) -> bool:
    replaced = {
        entry.message.seq
        for entry in work.state.stretch(lookup.scope, lookup.first, lookup.last)
        if entry.message.replaced
    }
    return bool(replaced) and any(
        entry.message.replaces in replaced and as_microseconds(entry.message.stored_at) > lookup.since
        for entry in work.state.log.values()
    )


def _chunk_messages(work: Changes, lookup: writes.ChunkMessages) -> list[tuple[int, str]]:
    found = in_chunk(work.state, lookup.scope, lookup.chunk)
    return [(seq, work.state.log[seq].message.role) for seq in found]


def _summaries_by_number(work: Changes, lookup: writes.SummariesByNumber) -> list[Summary]:
    found = [work.state.summaries.get(number) for number in sorted(set(lookup.numbers))]
    return [each for each in found if each is not None and (each.space, each.user) == person(lookup.scope)]


def _made_from(work: Changes, lookup: writes.SummariesMadeFrom) -> list[Summary]:
    wanted = set(lookup.numbers)
    return [
        summary
        for summary in work.state.summaries.values()
        if not summary.rolled_back and not wanted.isdisjoint(summary.sources)
    ]


def _first_stated(work: Changes, lookup: writes.MemoryFirstStated) -> MemoryRecord | None:
    for memory in work.state.memories.values():
        if (memory.space, memory.user) == person(lookup.scope) and (
            as_microseconds(memory.created_at) == lookup.created_at
        ):
            versions = work.state.versions.get(memory.id, ())
            if MemoryRow(memory, versions).first_text == lookup.text:
                return memory
    return None


def _planned(work: Changes, lookup: writes.PlannedEntries) -> list[Entry]:
    found = [work.state.agenda.get(subject) for subject in lookup.subjects]
    return [entry for entry in found if entry is not None]


def _messages_passed(work: Changes, lookup: writes.MessagesPassed) -> int:
    return sum(entry.message.seq <= lookup.up_to for entry in work.state.after(lookup.after))


def _was_purged(work: Changes, lookup: writes.WasPurged) -> bool:
    rows = work.state.audit.values()
    return any(row.action == "purge" and (row.space, row.user) == person(lookup.scope) for row in rows)


def _messages_to_purge(work: Changes, lookup: writes.MessagesToPurge) -> list[writes.MessageToPurge]:
    space, user = person(lookup.scope)
    return [
        _to_purge(each)
        for each in (entry.message for entry in work.state.log.values())
        if each.space == space and purged_by(user, each.user, each.author, each.role)
    ]


def _memories_to_purge(work: Changes, lookup: writes.MemoriesToPurge) -> list[writes.MemoryToPurge]:
    space, user = person(lookup.scope)
    state, seqs = work.state, set(lookup.seqs)

    def goes(memory: MemoryRecord) -> bool:
        every = (memory, *(version.before for version in state.versions.get(memory.id, ())))
        stated = any(each.speaker == user for each in every)
        return memory.user == user or stated or not seqs.isdisjoint(memory.sources)

    mine = [memory for memory in state.memories.values() if memory.space == space and goes(memory)]
    return [writes.MemoryToPurge(memory.id, memory.user) for memory in mine]


def _newest_memory(work: Changes, lookup: writes.NewestMemory) -> int:
    every, owner = work.state.memories.values(), person(lookup.scope)
    return max((memory.id for memory in every if (memory.space, memory.user) == owner), default=0)


def _memories_from(work: Changes, lookup: writes.MemoriesFrom) -> list[writes.MemoryToPurge]:
    seqs, every = set(lookup.seqs), work.state.memories.values()
    mine = [each for each in every if each.space == lookup.space and not seqs.isdisjoint(each.sources)]
    return [writes.MemoryToPurge(memory.id, memory.user) for memory in mine]


def _sources_of(work: Changes, lookup: writes.SourcesOf) -> list[writes.MessageToPurge]:
    memories, log = work.state.memories, work.state.log
    return [_to_purge(log[seq].message) for seq in {seq for each in lookup.memories for seq in memories[each].sources}]


def _taken_back_before(work: Changes, lookup: writes.TakenBackBefore) -> list[writes.MessageToPurge]:
    log, seqs = work.state.log, set(lookup.seqs)
    earlier: set[int] = set()
    for seq in seqs:
        message: Message | None = log[seq].message
        while message is not None and (message.taken_back or message.seq != seq) and message.replaces is not None:
            earlier.add(message.replaces)
            message = log[message.replaces].message
    return [_to_purge(log[seq].message) for seq in sorted(earlier - seqs)]


def _to_purge(message: Message) -> writes.MessageToPurge:
    at = as_microseconds(message.at)
    return writes.MessageToPurge(message.seq, message.user, message.thread, at, message.chunk, len(message.text))


def _summaries_of_users(work: Changes, lookup: writes.SummariesOfUsers) -> list[Summary]:
    return [
        summary
        for summary in work.state.summaries.values()
        if summary.space == lookup.space
        and (summary.user in lookup.users or (summary.kind == "day" and summary.day in lookup.days))
    ]


def _related(work: Changes, lookup: writes.RelatedSummaries) -> list[Summary]:
    every, wanted = work.state.summaries, set(lookup.numbers)
    before = {every[number].replaces for number in wanted}
    return [
        summary
        for summary in every.values()
        if summary.id in before or summary.replaces in wanted or not wanted.isdisjoint(summary.sources)
    ]


def _entries_of_users(work: Changes, lookup: writes.EntriesOfUsers) -> list[Entry]:
    wanted = set(lookup.users)
    entries = work.state.agenda.values()
    return [each for each in entries if each.subject.space == lookup.space and each.subject.user in wanted]


def _old_rows(work: Changes, lookup: writes.OldRows) -> list[writes.OldRow]:
    return list(islice(OLD[lookup.table](work.state, lookup.before), lookup.limit))


LOOKUPS: Final[Mapping[type, Callable[[Changes, Any], Any]]] = {
    writes.IsUser: lambda work, lookup: person(lookup.scope) in work.state.owners,
    writes.LastChunk: lambda work, lookup: work.state.chunks.get(person(lookup.scope), 0),
    writes.Extracted: lambda work, lookup: work.state.extracted.get(person(lookup.scope), 0),
    writes.SimilarSummaries: lambda work, lookup: work.index.similar(lookup.summary),
    writes.AuditIsKnown: lambda work, lookup: work.index.has_audit(lookup.entry),
    writes.Progress: lambda work, lookup: work.state.walks.get(lookup.policy, 0),
    **performers(Question, globals()),
}
