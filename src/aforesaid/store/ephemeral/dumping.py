"""Giving out everything that the store in memory holds."""

from __future__ import annotations

from collections.abc import Iterator

from aforesaid.domain.message import Message
from aforesaid.domain.summary import Summary
from aforesaid.domain.transfer import (
    DayRow,
    ForgottenRow,
    MemoryRow,
    Row,
    SessionRow,
    SettingRow,
    SpendingRow,
    SummaryRow,
    UserRow,
    VectorOf,
)
from aforesaid.store.ephemeral.known_reads import with_sources
from aforesaid.store.ephemeral.state import Name, State


def rows(state: State, *, vectors: bool) -> Iterator[Row]:
    """Give out the rows of a state that nobody changes any more."""
    yield from (entry.message for entry in state.log.values())
    for kept in state.sessions.values():
        yield SessionRow(kept.session, kept.automatic)
    yield from _summaries(state)
    for memory in state.memories.values():
        yield MemoryRow(memory, with_sources(memory, state.versions.get(memory.id, ())))
    yield from (facts for _, facts in sorted(state.facts.items(), key=lambda item: item[0]))
    for (space, user), stones in state.tombstones.items():
        yield from (ForgottenRow(space, user, stone.words, stone.up_to) for stone in stones)
    for ((space, user), _), setting in state.settings.items():
        yield SettingRow(space, user, setting)
    yield from _users(state)
    yield from _days(state)
    for (day, payer), tokens in state.spending.items():
        yield SpendingRow(day, *(payer or ("", "")), tokens)
    yield from (receipt for _, receipt in sorted(state.receipts.items()))
    yield from state.audit.values()
    if vectors:
        for (embedder, seq), value in state.vectors.items():
            yield VectorOf(embedder, state.log[seq].message.space, seq, value)


def _summaries(state: State) -> Iterator[SummaryRow]:
    archives: dict[tuple[Name, int], list[int]] = {}
    for seq, entry in state.log.items():
        if entry.message.chunk is not None:
            archives.setdefault((entry.owner, entry.message.chunk), []).append(seq)
    for summary in state.summaries.values():
        yield SummaryRow(summary, _archived(summary, archives))


def _days(state: State) -> Iterator[DayRow]:
    for subject, planned in state.agenda.items():
        if subject.day and planned.done_at is not None:
            yield DayRow(subject.policy, subject.space, subject.day, planned.done_at, planned.done_seq)


def _archived(summary: Summary, archives: dict[tuple[Name, int], list[int]]) -> tuple[int, ...]:
    if summary.rolled_back or summary.reach != "chunks" or summary.level != 1:
        return ()
    return tuple(archives.get(((summary.space, summary.user), summary.chunks[0]), ()))


def _users(state: State) -> Iterator[UserRow]:
    owned: dict[Name, list[Message]] = {}
    for entry in state.log.values():
        owned.setdefault(entry.owner, []).append(entry.message)
    for (space, user), created in state.owners.items():
        extracted = state.extracted.get((space, user), 0)
        looked_through = sum(message.seq <= extracted for message in owned.get((space, user), ()))
        yield UserRow(space, user, created, state.chunks.get((space, user), 0), extracted, looked_through)
