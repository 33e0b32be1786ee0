"""Archiving on every store: nothing is lost, everything can be taken back, everything is audited."""

from __future__ import annotations

import asyncio

import pytest

from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import SummaryDraft
from aforesaid.errors import AforesaidError, InvalidInput, NotFound, SourcesChanged
from aforesaid.store import Store
from aforesaid.store.messages import Messages, UserLedger
from aforesaid.store.people import AuditRows
from aforesaid.store.searches import SearchText
from aforesaid.store.summaries import Archive, CoveredMessages, RollBack, Summaries
from making import add, archive

ANN = Scope.of("ann")
BOB = Scope.of("bob")


@pytest.mark.req("A2")
async def test_archived_messages_get_a_chunk_and_stay_readable_and_searchable(store: Store) -> None:
    messages = await add(store, ANN, "I adopted a cat", "Her name is Miso", "It rains", "Good night")
    summary = await archive(store, ANN, messages[:3], "Ann adopted a cat named Miso.")
    assert (summary.level, summary.chunks, summary.messages, summary.active) == (1, (1,), 3, True)
    assert (summary.first, summary.last) == (messages[0].seq, messages[2].seq)
    everything = await store.read(Messages(ANN))
    assert [(message.active, message.chunk) for message in everything] == [(False, 1)] * 3 + [(True, None)]
    assert [message.text for message in everything] == [message.text for message in messages]
    assert [message.text for message in await store.read(Messages(ANN, archived=False))] == ["Good night"]
    assert [hit.text for hit in await store.read(SearchText(ANN, "Miso"))] == ["Her name is Miso"]
    assert [message.text for message in await store.read(CoveredMessages(ANN, summary.id))] == [
        m.text for m in messages[:3]
    ]
    assert (await store.verify()).ok


@pytest.mark.req("A2")
async def test_an_archive_can_be_rolled_back_and_is_audited(store: Store) -> None:
    messages = await add(store, ANN, "one", "two")
    summary = await archive(store, ANN, messages)
    assert (await store.read(UserLedger(ANN))).open_turns == 0
    rolled = (await store.apply([RollBack(ANN, summary.id, actor="operator")])).summary
    assert (rolled.id, rolled.active, rolled.rolled_back) == (summary.id, False, True)
    assert all(message.active and message.chunk is None for message in await store.read(Messages(ANN)))
    ledger = await store.read(UserLedger(ANN))
    assert (ledger.open_turns, ledger.archived, ledger.last_chunk, ledger.highest_level) == (2, 0, 1, 0)
    trail = [(entry.actor, entry.action, entry.subject) for entry in await store.read(AuditRows(ANN))]
    assert trail == [
        ("aforesaid", "archive", f"summary {summary.id}, level 1, chunks [1]"),
        ("operator", "roll_back", f"summary {summary.id}, level 1, chunks [1]"),
    ]
    assert not any(
        text in entry.subject for entry in await store.read(AuditRows(ANN)) for text in ("one", "two", "What was said")
    )
    assert (await store.verify()).ok


async def test_chunk_ids_follow_one_another_and_are_never_used_again(store: Store) -> None:
    first = await archive(store, ANN, await add(store, ANN, "a"))
    await store.apply([RollBack(ANN, first.id)])
    second = await archive(store, ANN, await store.read(Messages(ANN)))
    third = await archive(store, ANN, await add(store, ANN, "b"))
    of_bob = await archive(store, BOB, await add(store, BOB, "c"))
    assert [summary.chunks for summary in (first, second, third, of_bob)] == [(1,), (2,), (3,), (1,)]


async def test_summaries_are_archived_under_summaries(store: Store) -> None:
    below = [await archive(store, ANN, await add(store, ANN, f"a{n}", f"b{n}"), f"part {n}") for n in range(3)]
    top = (
        await store.apply([Archive(SummaryDraft(ANN, "all parts", summaries=tuple(part.id for part in below[:2])))])
    ).summary
    assert (top.level, top.chunks, top.messages, top.sources) == (2, (1, 2), 4, (below[0].id, below[1].id))
    assert [(summary.text, summary.level) for summary in await store.read(Summaries(ANN))] == [
        ("all parts", 2),
        ("part 2", 1),
    ]
    assert len(await store.read(Summaries(ANN, active=None))) == 4
    assert [message.text for message in await store.read(CoveredMessages(ANN, top.id))] == [
        "a0",
        "b0",
        "a1",
        "b1",
    ]
    ledger = await store.read(UserLedger(ANN))
    assert (ledger.active_summaries, ledger.highest_level) == (((1, 1), (2, 1)), 2)
    with pytest.raises(SourcesChanged, match=f"summary {top.id} stands on summary {below[0].id}"):
        await store.apply([RollBack(ANN, below[0].id)])
    await store.apply([RollBack(ANN, top.id)])
    assert [summary.text for summary in await store.read(Summaries(ANN))] == ["part 0", "part 1", "part 2"]
    await store.apply([RollBack(ANN, below[0].id)])
    assert [message.text for message in await store.read(Messages(ANN, archived=False))] == ["a0", "b0"]
    assert (await store.verify()).ok


async def test_only_what_is_active_and_ones_own_can_be_archived(store: Store) -> None:
    mine, theirs = await add(store, ANN, "mine"), await add(store, BOB, "theirs")
    with pytest.raises(NotFound):
        await archive(store, ANN, mine + theirs)
    with pytest.raises(NotFound):
        await archive(store, Scope.of("stranger"), mine)
    summary = await archive(store, ANN, mine)
    with pytest.raises(SourcesChanged):
        await archive(store, ANN, mine)
    with pytest.raises(NotFound):
        await store.apply([RollBack(BOB, summary.id)])
    with pytest.raises(NotFound):
        await store.apply([Archive(SummaryDraft(BOB, "stolen", summaries=(summary.id,)))])
    with pytest.raises(NotFound):
        await store.read(CoveredMessages(BOB, summary.id))
    await store.apply([RollBack(ANN, summary.id)])
    with pytest.raises(SourcesChanged, match="already"):
        await store.apply([RollBack(ANN, summary.id)])
    with pytest.raises(SourcesChanged):
        await store.apply([Archive(SummaryDraft(ANN, "of what is gone", summaries=(summary.id,)))])
    assert (await store.verify()).ok


async def test_two_workers_archive_the_same_messages_once(store: Store) -> None:
    messages = await add(store, ANN, "one", "two", "three")
    outcomes = await asyncio.gather(*[archive(store, ANN, messages) for _ in range(8)], return_exceptions=True)
    assert sum(isinstance(outcome, SourcesChanged) for outcome in outcomes) == 7
    assert len(await store.read(Summaries(ANN, active=None))) == 1
    assert (await store.verify()).ok


async def test_messages_and_their_archive_can_be_one_change_set(store: Store) -> None:
    (first,) = await add(store, ANN, "said before")
    with pytest.raises(AforesaidError):
        await store.apply([Archive(SummaryDraft(ANN, "x", messages=(first.seq,))), RollBack(ANN, 99)])
    assert (await store.read(Messages(ANN)))[0].active
    assert await store.read(AuditRows(ANN)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": "  ", "messages": (1,)},
        {"text": "nul \0", "messages": (1,)},
        {"text": "nothing below"},
        {"text": "both", "messages": (1,), "summaries": (1,)},
        {"text": "twice", "messages": (1, 1)},
    ],
)
def test_a_summary_that_says_or_covers_nothing_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        SummaryDraft(ANN, **wrong)  # type: ignore[arg-type]
