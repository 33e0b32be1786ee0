"""The writes that delete, over dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from aforesaid.domain.change import Discardable
from aforesaid.domain.checks import moment
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.summary import Summary
from aforesaid.store import questions
from aforesaid.store.ephemeral.known_reads import below
from aforesaid.store.ephemeral.reader import Reader
from aforesaid.store.ephemeral.state import KeptSession, Name, Rows, State, as_microseconds, facts_table, person
from aforesaid.store.rules import writes
from aforesaid.store.rules.purging import OLD_TABLES
from aforesaid.store.rules.writes import OldRow, OldTable

if TYPE_CHECKING:
    from aforesaid.store.ephemeral.changes import Changes


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


K = TypeVar("K", bound=Hashable)


def _numbered(state: State, *tables: str) -> None:
    """Record the last numbers of tables from which rows are deleted: they are not given out again."""
    for table in tables:
        state.given[table] = state.last_number(table)


def _erase_messages(work: Changes, write: writes.EraseMessages) -> None:
    state = work.state
    _numbered(state, "log", "sessions")
    gone = {seq: state.log[seq].message for seq in write.seqs}
    for seq, message in gone.items():
        entry, place = state.log.pop(seq), (message.space, message.thread)
        if entry.given_id is not None:
            del state.by_given_id[place, entry.given_id]
        said_then = place, as_microseconds(message.at)
        left = tuple(other for other in state.by_time.pop(said_then, ()) if other not in gone)
        if left:
            state.by_time[said_then] = left
    state.numbers.remove(gone.keys())
    _part_versions(state, gone)
    _erase_vectors(state, gone)
    for number, memory in list(state.memories.items()):
        if not gone.keys().isdisjoint(memory.sources):
            sources = tuple(seq for seq in memory.sources if seq not in gone)
            state.memories[number] = replace(memory, sources=sources)
    for place in {(message.space, message.thread) for message in gone.values()}:
        _count_sessions(work, place)
        _drop_if_empty(state, place)


def _part_versions(state: State, gone: Mapping[int, Message]) -> None:
    """Bring versions to what is left: one whose newer version is gone counts again."""
    for message in gone.values():
        entry = None if message.replaces is None else state.log.get(message.replaces)
        if entry is not None and not entry.message.taken_back:
            state.log[entry.message.seq] = replace(entry, message=replace(entry.message, replaced=False))
    if any(message.replaced for message in gone.values()):
        owners = {(message.space, message.user) for message in gone.values()}
        for seq in [seq for owner in owners for seq in state.numbers.owned(owner)]:
            entry = state.log[seq]
            if entry.message.replaces in gone:
                state.log[seq] = replace(entry, message=replace(entry.message, replaces=None))


def _erase_vectors(state: State, messages: Collection[int]) -> None:
    _take_out(state.vectors, lambda key: key[1] in messages)
    for found in [found for found, seq in state.embedded.items() if seq in messages]:
        del state.embedded[found]
    for embedder, seq in state.vectors:
        state.embedded.setdefault((embedder, state.log[seq].message.text), seq)


def _count_sessions(work: Changes, place: Name) -> None:
    """Bring the sessions of a thread to what is left, and drop those that are empty."""
    state = work.state
    left: dict[str, list[Message]] = {}
    for seq in state.numbers.said(place):
        message = state.log[seq].message
        left.setdefault(message.session, []).append(message)
    for (where, name), key in list(state.session_names.items()):
        if where != place:
            continue
        kept = state.sessions[key]
        if name in left:
            times = [message.at for message in left[name]]
            session = replace(kept.session, started_at=min(times), last_activity=max(times), messages=len(times))
            work.keep_session(replace(kept, session=session))
        else:
            del state.sessions[key]
            del state.session_names[place, name]
            state.threads[place] = tuple(other for other in state.threads.get(place, ()) if other != key)


def _drop_if_empty(state: State, place: Name) -> None:
    """Drop a thread that has no sessions and no summaries."""
    if not any(where == place for where, _ in state.session_names) and not any(
        (summary.space, summary.thread) == place for summary in state.summaries.values()
    ):
        state.threads.pop(place, None)


def _erase_summaries(work: Changes, write: writes.EraseSummaries) -> None:
    state, gone = work.state, set(write.numbers)
    _numbered(state, "summaries")
    places = {(erased.space, erased.thread) for erased in [state.summaries.pop(number) for number in gone]}
    _take_out(state.note_vectors, lambda key: key[1].kind == "summary" and key[1].id in gone)
    for number, summary in list(state.summaries.items()):
        if summary.replaces in gone:
            state.summaries[number] = replace(summary, replaces=None)
    for place in places:
        _drop_if_empty(state, place)


def _erase_memories(work: Changes, write: writes.EraseMemories) -> None:
    state, gone = work.state, set(write.numbers)
    _numbered(state, "memories")
    for number in gone:
        del state.memories[number]
        state.versions.pop(number, None)
    _take_out(state.note_vectors, lambda key: key[1].kind == "memory" and key[1].id in gone)

    def freed(memory: MemoryRecord) -> MemoryRecord:
        return replace(memory, superseded_by=None) if memory.superseded_by in gone else memory

    for number, memory in list(state.memories.items()):
        if memory.superseded_by in gone:
            state.memories[number] = freed(memory)
        versions = state.versions.get(number, ())
        if any(version.before.superseded_by in gone for version in versions):
            state.versions[number] = tuple(replace(each, before=freed(each.before)) for each in versions)


def _erase_user(work: Changes, write: writes.EraseUser) -> None:
    state, who = work.state, person(write.scope)
    others = {(write.scope.space, name) for name in write.others}
    _numbered(state, "audit")
    for kept in [each for each in state.sessions.values() if (each.session.space, each.session.user) == who]:
        work.keep_session(replace(kept, session=replace(kept.session, user=_first_speaker(state, kept))))
    tables: tuple[Rows[Name, Any], ...] = (state.tombstones, state.extracted, state.owners, state.chunks)
    for table in tables:
        table.pop(who, None)
    state.given.pop(facts_table(who), None)
    _take_out(state.facts, lambda key: key[0] == who)
    _take_out(state.settings, lambda key: key[0] == who)
    _take_out(state.receipts, lambda key: key[0] == who)
    _take_out(state.spending, lambda key: key[1] == who)
    _take_out(state.derived, lambda key: key[0] == who or key[0] in others)
    _take_out(state.agenda, lambda subject: (subject.space, subject.user) == who)
    for number in [number for number, row in state.audit.items() if (row.space, row.user) == who]:
        del state.audit[number]


def _first_speaker(state: State, kept: KeptSession) -> str:
    numbers = state.numbers.said((kept.session.space, kept.session.thread))
    messages = (state.log[seq].message for seq in numbers)
    return next(message.user for message in messages if message.session == kept.session.id)


def _erase_derived(work: Changes, write: writes.EraseDerived) -> None:
    users = {(write.space, user) for user in write.users}
    _take_out(work.state.derived, lambda key: key[0] in users)


def _erase_facts(work: Changes, write: writes.EraseFacts) -> None:
    for row in write.rows:
        owner = (row.space, row.user)
        del work.state.facts[owner, row.number]
        work.state.given[facts_table(owner)] = row.number


def _erase_memory_versions(work: Changes, write: writes.EraseMemoryVersions) -> None:
    gone = {(row.number, row.revision) for row in write.rows}
    versions = work.state.versions
    for number in {number for number, _ in gone}:
        left = tuple(each for each in versions[number] if (number, each.before.revision) not in gone)
        if left:
            versions[number] = left
        else:
            del versions[number]


def _erase_old_rows(work: Changes, write: writes.EraseOldRows) -> int:
    table: Rows[Any, Any] = getattr(work.state, write.table)
    gone = old_keys(work.state, write.table, write.before)[: write.limit]
    if gone and write.table == "audit":
        _numbered(work.state, "audit")
    for key in gone:
        del table[key]
    return len(gone)


def _take_out(table: Rows[K, Any], goes: Callable[[K], bool]) -> None:
    for key in [key for key in table if goes(key)]:
        del table[key]
