"""What is old enough can be removed for good: by its kind and age, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import get_args

import pytest

from aforesaid.domain.checks import microseconds
from aforesaid.domain.hit import VectorRow
from aforesaid.domain.memory import MemoryDraft, MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.receipt import Discarded
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, SourcesChanged
from aforesaid.store import Store
from aforesaid.store.memories import (
    AddMemory,
    ChangeMemory,
    DerivedText,
    DueMemories,
    FactsVersions,
    Memories,
    MemoryById,
    MemoryVersions,
    PutDerived,
    PutFacts,
)
from aforesaid.store.messages import Messages, Sessions, UserLedger
from aforesaid.store.people import AuditRows, Marks, PutMark, Spend, TokensSpent, Totals, Users
from aforesaid.store.retention import Discard, Discardable, DiscardableCount
from aforesaid.store.searches import AddVectors, MessageVectors, SearchNotes, SearchText
from aforesaid.store.summaries import CoveredMessages, Revise, RollBack, Summaries, SummaryById
from making import NOON, add, adding, archive, minutes

ANN, BOB = Scope.of("ann"), Scope.of("bob")
NEVER = microseconds(datetime(1980, 1, 1, tzinfo=UTC), "the time")
TOMORROW = microseconds(datetime.now(UTC) + timedelta(days=1), "the time")
LATER = microseconds(minutes(60), "the time")


async def discard(store: Store, what: Discardable, before: int = TOMORROW, limit: int = 500) -> int:
    (result,) = (await store.apply([Discard(what, before, limit)])).results
    assert isinstance(result, Discarded)
    return result.count


async def said(store: Store, scope: Scope, *texts: str, at: datetime = NOON) -> list[Message]:
    messages = []
    for number, text in enumerate(texts):
        when = at + timedelta(seconds=number)
        messages.append((await store.apply([adding(scope, text, at=when)])).message)
    return messages


async def found(store: Store, scope: Scope, word: str) -> list[str]:
    return [hit.text for hit in await store.read(SearchText(scope, word))]


async def test_marks_are_kept_in_mind_and_taken_away(store: Store) -> None:
    assert await store.read(Marks()) == {}
    await store.apply([PutMark("cleanup", "one"), PutMark("size 2026-03-01", "7")])
    await store.apply([PutMark("cleanup", "two")])
    assert await store.read(Marks()) == {"cleanup": "two", "size 2026-03-01": "7"}
    await store.apply([PutMark("cleanup", None), PutMark("nothing", None)])
    assert await store.read(Marks()) == {"size 2026-03-01": "7"}
    with pytest.raises(InvalidInput):
        PutMark("cleanup", "\0")


@pytest.mark.parametrize("what", get_args(Discardable))
async def test_nothing_goes_from_an_empty_store_nor_what_is_not_old_enough(store: Store, what: Discardable) -> None:
    assert await store.read(DiscardableCount(what, TOMORROW)) == 0
    assert await discard(store, what) == 0
    await archive(store, ANN, await said(store, ANN, "hello"))
    await a_changed_memory(store, ANN)
    await store.apply([PutFacts(ANN, "one", "why"), PutFacts(ANN, "two", "why"), PutDerived(ANN, "portrait", "k", "v")])
    await store.apply([Spend(date(2026, 3, 1), ANN, 5)])
    before = await store.read(Totals())
    assert await store.read(DiscardableCount(what, NEVER)) == 0
    assert await discard(store, what, NEVER) == 0
    # A database's size is what the system makes of it meanwhile.
    assert replace(await store.read(Totals()), bytes=0) == replace(before, bytes=0)


def test_only_what_can_go_can_be_named() -> None:
    with pytest.raises(InvalidInput, match="cannot be removed by age"):
        Discard("users", TOMORROW)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        Discard("audit", TOMORROW, 0)


@pytest.mark.req("A18", "B15", "D14")
async def test_old_archives_go_and_their_summaries_stay(store: Store) -> None:
    old = await said(store, ANN, "a walrus sang", "it sang loudly")
    summary = await archive(store, ANN, old, "About a walrus.")
    young = await said(store, ANN, "a walrus danced", at=minutes(120))
    newer = await archive(store, ANN, young, "About dancing.")
    await said(store, ANN, "an old walrus that nothing stands for")
    await archive(store, BOB, await said(store, BOB, "a walrus of Bob", at=minutes(120)))
    rows = tuple(VectorRow(message.seq, message.text, b"\0\0\0\0", message.space) for message in old)
    await store.apply([AddVectors("tiny", rows, old[-1].seq)])
    draft = MemoryDraft(ANN, "fact", "Likes walruses.", sources=(old[0].seq, young[0].seq))
    memory = (await store.apply([AddMemory(draft)])).memory
    assert await store.read(DiscardableCount("messages", LATER)) == 2
    assert await discard(store, "messages", LATER) == 2
    assert await discard(store, "messages", LATER) == 0
    assert await store.read(DiscardableCount("messages", LATER)) == 0
    assert [message.text for message in await store.read(Messages(ANN))] == [
        "an old walrus that nothing stands for",
        "a walrus danced",
    ]
    assert sorted(await found(store, ANN, "walrus")) == ["a walrus danced", "an old walrus that nothing stands for"]
    assert await found(store, BOB, "walrus") == ["a walrus of Bob"]
    assert await store.read(MessageVectors(ANN, "tiny", [message.seq for message in old])) == {}
    ledger = await store.read(UserLedger(ANN))
    assert (ledger.messages, ledger.archived, ledger.turns, ledger.last_chunk) == (2, 1, 2, 2)
    kept = await store.read(SummaryById(ANN, summary.id))
    assert (kept.text, kept.messages, kept.active) == ("About a walrus.", 2, True)
    assert await store.read(CoveredMessages(ANN, summary.id)) == []
    assert [message.text for message in await store.read(CoveredMessages(ANN, newer.id))] == ["a walrus danced"]
    assert (await store.read(MemoryById(ANN, memory.id))).sources == (young[0].seq,)
    with pytest.raises(SourcesChanged, match="have been removed"):
        await store.apply([RollBack(ANN, summary.id)])
    rows_of_ann = [(row.action, row.subject) for row in await store.read(AuditRows(ANN))]
    assert ("retention.purge", "2 messages, older than 2026-03-01") in rows_of_ann
    assert not [row for row in await store.read(AuditRows(BOB)) if row.action == "retention.purge"]
    assert (await store.verify()).ok


async def test_sessions_and_threads_are_brought_to_what_is_left(store: Store) -> None:
    channel = Scope.of("ann", thread="channel")
    old = await said(store, channel, "one", "two", "three")
    await archive(store, ANN, old[:2])
    other = Scope.of("ann", thread="other")
    await archive(store, ANN, await said(store, other, "alone here"))
    assert await discard(store, "messages", LATER) == 3
    (session,) = await store.read(Sessions(channel, within="thread"))
    assert (session.messages, session.started_at, session.last_activity) == (1, old[2].at, old[2].at)
    stats = await store.read(Totals())
    assert (stats.messages, stats.sessions, stats.threads) == (1, 1, 2), "the summaries stand in a thread of their own"
    assert await store.read(Sessions(other, within="thread")) == []
    again = await said(store, other, "here again", at=NOON)
    assert again[0].seq == 5, "no number is given out twice"
    assert (await store.verify()).ok


async def test_somebody_of_whom_nothing_is_left_goes_on_with_new_numbers(store: Store) -> None:
    await archive(store, ANN, await said(store, ANN, "one", "two"))
    assert await discard(store, "messages", LATER) == 2
    assert (await store.read(UserLedger(ANN))).last_seq == 0
    (user,) = await store.read(Users())
    assert (user.messages, user.last_activity) == (0, None)
    (message,) = await add(store, ANN, "three")
    assert message.seq == 3
    summary = await archive(store, ANN, [message])
    assert summary.chunks == (2,)
    assert [message.text for message in await store.read(Messages(ANN))] == ["three"]
    assert (await store.verify()).ok


async def test_so_much_at_once_and_whole_archives(store: Store) -> None:
    for number in range(4):
        await archive(store, ANN, await said(store, ANN, *[f"{number}{each}" for each in "abc"]))
    counts = []
    while count := await discard(store, "messages", LATER, limit=4):
        counts.append(count)
    assert counts == [6, 6]


async def test_an_edited_summary_of_an_old_archive_stays_and_its_old_version_can_go(store: Store) -> None:
    summary = await archive(store, ANN, await said(store, ANN, "one"), "first words")
    await store.apply([Revise(ANN, summary.id, "better words", edited_by="ann")])
    assert await discard(store, "messages", LATER) == 1
    assert await store.read(DiscardableCount("summaries", TOMORROW)) == 1
    assert await discard(store, "summaries") == 1
    (kept,) = await store.read(Summaries(ANN, active=None))
    assert (kept.text, kept.version, kept.replaces) == ("better words", 2, None)
    assert [note.key.id for note in await store.read(SearchNotes(ANN, "words", "", None))] == [kept.id]
    assert (await store.verify()).ok


async def test_summaries_that_were_rolled_back_go_and_those_that_stand_stay(store: Store) -> None:
    lower = [await archive(store, ANN, [message]) for message in await said(store, ANN, "one", "two", "three")]
    await store.apply([RollBack(ANN, lower[2].id)])
    assert await discard(store, "summaries") == 1
    assert [summary.id for summary in await store.read(Summaries(ANN, active=None))] == [
        lower[0].id,
        lower[1].id,
    ]
    assert (await store.verify()).ok


async def test_a_thread_goes_with_the_last_summary_in_it(store: Store) -> None:
    messages = await said(store, Scope.of("ann", thread="channel"), "one")
    summary = await archive(store, ANN, messages)
    await store.apply([RollBack(ANN, summary.id)])
    assert (await store.read(Totals())).threads == 2
    assert await discard(store, "summaries") == 1
    assert (await store.read(Totals())).threads == 1
    (message,) = await add(store, ANN, "the thread is there again")
    assert [each.text for each in await store.read(Messages(ANN, within="thread"))] == [message.text]
    assert (await store.verify()).ok


async def a_changed_memory(store: Store, scope: Scope, *, state: str = "deactivated") -> MemoryRecord:
    memory = (await store.apply([AddMemory(MemoryDraft(scope, "fact", "Likes tea."))])).memory
    changed = replace(memory, state=state, active=state == "active", text="Likes green tea.")  # type: ignore[arg-type]
    return (await store.apply([ChangeMemory(changed, "edit")])).memory


@pytest.mark.req("B15", "D14")
async def test_memories_that_are_not_active_go(store: Store) -> None:
    gone = await a_changed_memory(store, ANN)
    kept = await a_changed_memory(store, ANN, state="active")
    waiting = await a_changed_memory(store, ANN, state="quarantined")
    other = await a_changed_memory(store, BOB, state="active")
    assert await store.read(DiscardableCount("memories", TOMORROW)) == 1
    assert await discard(store, "memories") == 1
    assert {memory.id for memory in await store.read(Memories(ANN, active=None))} == {kept.id, waiting.id}
    assert [memory.id for memory in await store.read(Memories(BOB))] == [other.id]
    assert gone.id not in {note.key.id for note in await store.read(SearchNotes(ANN, "tea", "", None))}
    new = (await store.apply([AddMemory(MemoryDraft(ANN, "fact", "Likes jam."))])).memory
    assert new.id == other.id + 1, "no number is given out twice"
    assert (await store.verify()).ok


async def test_what_was_superseded_by_what_goes_names_nothing_any_more(store: Store) -> None:
    old = (await store.apply([AddMemory(MemoryDraft(ANN, "fact", "Lives in Rome."))])).memory
    new = (await store.apply([AddMemory(MemoryDraft(ANN, "fact", "Lives in Bonn."))])).memory
    replaced = replace(old, superseded_by=new.id, state="active", active=True)
    await store.apply([ChangeMemory(replaced, "edit")])
    await store.apply([ChangeMemory(replace(new, state="deactivated", active=False), "deactivate")])
    assert await discard(store, "memories") == 1
    (kept,) = await store.read(Memories(ANN, active=None))
    assert (kept.id, kept.superseded_by) == (old.id, None)
    assert (await store.verify()).ok


@pytest.mark.req("B15", "D14")
async def test_older_versions_of_facts_and_memories_go_and_the_newest_stays(store: Store) -> None:
    for text in ("one", "two", "three"):
        await store.apply([PutFacts(ANN, text, "why")])
    memory = await a_changed_memory(store, ANN)
    assert await store.read(DiscardableCount("versions", TOMORROW)) == 3
    assert await discard(store, "versions") == 3
    assert [(facts.text, facts.version) for facts in await store.read(FactsVersions(ANN))] == [("three", 3)]
    assert await store.read(MemoryVersions(ANN, memory.id)) == []
    assert (await store.read(MemoryById(ANN, memory.id))).text == "Likes green tea."
    await store.apply([PutFacts(ANN, "four", "why", instead_of=3)])
    assert [facts.version for facts in await store.read(FactsVersions(ANN))] == [3, 4]
    assert (await store.verify()).ok


async def test_what_was_worked_out_who_saw_what_and_what_was_spent_go(store: Store) -> None:
    await store.apply([PutDerived(ANN, "portrait", "key", "value"), Spend(date(2026, 3, 1), ANN, 5)])
    await add(store, ANN, "hello")
    await store.apply([PutFacts(ANN, "one", "why")])
    assert await discard(store, "derived") == 1
    assert await store.read(DerivedText(ANN, "portrait")) is None
    assert await discard(store, "spending") == 2, "the user's, and that of all"
    assert await store.read(TokensSpent(date(2026, 3, 1), None)) == 0
    assert await discard(store, "audit") == 1
    assert await store.read(AuditRows(ANN)) == []
    assert [message.text for message in await store.read(Messages(ANN))] == ["hello"]
    assert (await store.verify()).ok


async def test_memories_that_nobody_mentions_any_more_are_found(store: Store) -> None:
    memory = (await store.apply([AddMemory(MemoryDraft(ANN, "fact", "Likes tea."))])).memory
    await a_changed_memory(store, ANN)
    now = datetime.now(UTC)
    assert [found.id for found in await store.read(DueMemories("unseen", now, 10))] == [memory.id]
    assert await store.read(DueMemories("unseen", now - timedelta(days=1), 10)) == []


async def test_when_one_change_is_refused_nothing_goes(store: Store) -> None:
    await archive(store, ANN, await said(store, ANN, "a walrus"))
    with pytest.raises(SourcesChanged):
        await store.apply([Discard("messages", LATER), PutFacts(ANN, "x", "y", instead_of=7)])
    assert await found(store, ANN, "walrus") == ["a walrus"]
    assert (await store.read(UserLedger(ANN))).messages == 1
    assert (await store.verify()).ok
