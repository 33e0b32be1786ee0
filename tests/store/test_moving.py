"""Moving house and erasing people, on every store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from aforesaid.domain.hit import VectorRow
from aforesaid.domain.memory import MemoryDraft
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope, Subject, Touch
from aforesaid.domain.summary import SummaryDraft, ViewDraft
from aforesaid.domain.transfer import DayRow, MemoryRow, Purged, Restored, SuccessorRow, SummaryRow, VectorOf
from aforesaid.errors import NotFound, SourcesChanged
from aforesaid.store import Store, open_store
from aforesaid.store.agenda import Advance, FinishEntry, PlannedEntry
from aforesaid.store.dumping import Restore
from aforesaid.store.memories import (
    AddMemory,
    ChangeMemory,
    CountMemory,
    DerivedText,
    Memories,
    PutFacts,
    UnextractedUsers,
)
from aforesaid.store.messages import Messages, MessagesByNumber, Sessions
from aforesaid.store.people import AuditRows, PutSetting, Users
from aforesaid.store.postgres import PostgresStore
from aforesaid.store.searches import AddVectors, MessageVectors, SearchText, SearchVector
from aforesaid.store.summaries import AddView, Archive, CoveredMessages, Revise, RollBack, Summaries
from copying import copy
from filling import ANN, ANN_AWAY, ANN_HERE, BOB, BOB_HERE, EMBEDDER, everything, fill_with_everything, shown
from making import NOON, add, adding, archive, minutes
from pg import clean_database

NUMBERED = (Message, SummaryRow, MemoryRow, SuccessorRow)


@pytest.fixture(params=["sqlite", "memory", "postgres"])
async def other(request: pytest.FixtureRequest, tmp_path: Any) -> AsyncIterator[Store]:  # noqa: ANN401
    """Another store, to move to."""
    if request.param == "postgres":
        place = clean_database("other")
    else:
        place = str(tmp_path / "other.db") if request.param == "sqlite" else ":memory:"
    opened = await open_store(place)
    yield opened
    await opened.close()


@pytest.mark.req("A18")
async def test_everything_moves_to_an_empty_store_as_it_is(store: Store, other: Store) -> None:
    await fill_with_everything(store)
    await copy(store.dump(vectors=True), other)
    for scope in (ANN, BOB, ANN_HERE):
        assert await shown(other, scope) == await shown(store, scope)
    numbered_alike = isinstance(store, PostgresStore) == isinstance(other, PostgresStore)
    if numbered_alike:
        assert await shown(other, ANN_AWAY) == await shown(store, ANN_AWAY)
        assert await everything(other, vectors=True) == await everything(store, vectors=True)
    assert [each.hash for each in await other.read(Messages(ANN_AWAY))] == [
        each.hash for each in await store.read(Messages(ANN_AWAY))
    ]
    assert (await other.verify()).ok
    assert await other.read(Users()) == await store.read(Users())
    seqs = [message.seq for message in await store.read(Messages(ANN))]
    assert await other.read(MessageVectors(ANN, EMBEDDER, seqs)) == await store.read(
        MessageVectors(ANN, EMBEDDER, seqs)
    )


async def test_twice_is_as_good_as_once(store: Store, other: Store) -> None:
    await fill_with_everything(store)
    await copy(store.dump(vectors=True), other)
    before = await everything(other, vectors=True)
    again = await copy(store.dump(vectors=True), other)
    assert await everything(other, vectors=True) == before
    assert not +again.fresh
    assert again.seen["message"] == 17


async def test_it_moves_in_with_others_and_gets_new_numbers(store: Store, other: Store) -> None:
    await fill_with_everything(store)
    dora = Scope.of("dora")
    messages = await add(other, dora, *[f"dora {number}" for number in range(30)])
    await archive(other, dora, messages[:5], "Dora.")
    await other.apply([AddMemory(MemoryDraft(dora, "fact", "is Dora"))])
    theirs = await shown(other, dora)
    await copy(store.dump(), other)
    await copy(store.dump(), other)
    assert await shown(other, dora) == theirs
    assert (await other.verify()).ok
    there, here = (
        await store.read(Messages(ANN, limit=99)),
        await other.read(Messages(ANN, limit=99)),
    )
    assert [(each.text, each.at, each.active, each.chunk) for each in here] == [
        (each.text, each.at, each.active, each.chunk) for each in there
    ]
    if isinstance(store, PostgresStore) or not isinstance(other, PostgresStore):
        assert [each.seq for each in here] == [each.seq + 30 for each in there]
    else:  # the message of another space leaves no gap where each space is numbered for itself
        assert min(each.seq for each in here) == 31
        assert [text for _, text in sorted((each.seq, each.text) for each in here)] == [
            text for _, text in sorted((each.seq, each.text) for each in there)
        ]
    for old, new in zip(
        await store.read(Summaries(ANN, active=None)),
        await other.read(Summaries(ANN, active=None)),
        strict=True,
    ):
        assert (new.text, new.active, new.rolled_back, new.id) == (old.text, old.active, old.rolled_back, old.id + 1)
        assert [each.text for each in await other.read(CoveredMessages(ANN, new.id))] == [
            each.text for each in await store.read(CoveredMessages(ANN, old.id))
        ]
    bonn, mitte = sorted(await other.read(Memories(ANN, active=None)), key=lambda memory: memory.id)
    assert (bonn.superseded_by, mitte.text) == (mitte.id, "lives in Berlin Mitte")
    assert [(await other.read(MessagesByNumber(ANN, memory.sources)))[0].text for memory in (bonn, mitte)] == [
        "I live in Berlin"
    ] * 2
    assert await other.read(UnextractedUsers(10, dora)) != []


async def test_a_later_dump_brings_what_changed(store: Store, other: Store) -> None:
    await fill_with_everything(store)
    await copy(store.dump(), other)
    mine = [message for message in await store.read(Messages(ANN, archived=False)) if message.thread == "general"]
    await archive(store, ANN, mine[:1], "More of Ann.")
    (memory,) = await store.read(Memories(ANN))
    await store.apply([ChangeMemory(replace(memory, text="moved to Rome", state="deactivated", active=False), "edit")])
    await store.apply([PutFacts(ANN, "Ann lives in Rome.", "Rome"), PutSetting(ANN, "summary_every_n", 3)])
    (top,) = [summary for summary in await store.read(Summaries(ANN)) if summary.level == 2]
    await store.apply([RollBack(ANN, top.id)])
    await copy(store.dump(), other)
    for scope in (ANN, BOB):
        assert await shown(other, scope) == await shown(store, scope)
    assert (await other.verify()).ok


async def test_a_later_dump_brings_the_newer_version_of_a_summary(store: Store, other: Store) -> None:
    summary = await archive(store, ANN, await add(store, ANN, "one", "two"))
    await copy(store.dump(), other)
    await store.apply([Revise(ANN, summary.id, "Better.", edited_by="ann")])
    await copy(store.dump(), other)
    assert await other.read(Summaries(ANN, active=None)) == await store.read(Summaries(ANN, active=None))
    assert [each.text for each in await other.read(Summaries(ANN))] == ["Better."]
    assert (await other.verify()).ok


async def test_a_later_dump_brings_what_was_said_again(store: Store, other: Store) -> None:
    (message,) = await add(store, ANN, "I like tea")
    draft = MemoryDraft(ANN, "preference", "likes tea", sources=(message.seq,))
    memory = (await store.apply([AddMemory(draft)])).memory
    await copy(store.dump(), other)
    await store.apply([CountMemory(ANN, memory.id, 3, memory.seen_at + timedelta(days=1))])
    await copy(store.dump(), other)
    assert [(each.times, each.seen_at) for each in await other.read(Memories(ANN))] == [
        (4, memory.seen_at + timedelta(days=1))
    ]
    await other.apply([CountMemory(ANN, memory.id, 1, memory.seen_at + timedelta(days=2))])
    await copy(store.dump(), other)
    assert [each.times for each in await other.read(Memories(ANN))] == [5], "what is here counts on"


async def test_what_was_archived_otherwise_meanwhile_stays_so(store: Store, other: Store) -> None:
    messages = await add(store, ANN, "one", "two", "three")
    await copy(store.dump(), other)
    await archive(store, ANN, messages[:2], "Here.")
    await archive(other, ANN, messages[1:], "There.")
    await copy(store.dump(), other)
    assert [(each.text, each.rolled_back) for each in await other.read(Summaries(ANN, active=None))] == [
        ("There.", False),
        ("Here.", True),
    ]
    assert (await other.verify()).ok


async def test_rows_without_numbers_come_back_with_none(store: Store, other: Store) -> None:
    await fill_with_everything(store)
    await copy(store.dump(), other)
    unnumbered = [row for row in await everything(store) if not isinstance(row, NUMBERED)]
    assert {type(row).__name__ for row in unnumbered} >= {
        "SessionRow",
        "Facts",
        "ForgottenRow",
        "ContextReceipt",
        "UserRow",
        "SettingRow",
    }
    results = [(await other.apply([Restore(row)])).results[0] for row in unnumbered]
    assert set(results) == {Restored(0, False)}


async def test_a_row_with_an_unexpected_number_is_refused(store: Store) -> None:
    await add(store, ANN, "here already")
    await fill_with_everything(store)
    rows = await everything(store)
    summary = next(row for row in rows if isinstance(row, SummaryRow))
    new = summary._replace(summary=replace(summary.summary, text="another", rolled_back=True))
    with pytest.raises(SourcesChanged):
        await store.apply([Restore(new, number=99)])
    assert await everything(store) == rows


async def test_a_dump_is_of_one_moment(store: Store) -> None:
    await add(store, ANN, *[f"message {number}" for number in range(20)])
    dumping = store.dump()
    page = list(await anext(dumping))
    await add(store, ANN, "later")
    rest = [row async for more in dumping for row in more]
    texts = [row.text for row in [*page, *rest] if isinstance(row, Message)]
    assert texts == [f"message {number}" for number in range(20)]


async def test_vectors_are_given_out_only_when_they_are_asked_for(store: Store) -> None:
    await fill_with_everything(store)
    kinds = [
        {type(row) for page in [page async for page in dump] for row in page}
        for dump in (store.dump(), store.dump(vectors=False), store.dump(vectors=True))
    ]
    assert [VectorOf in each for each in kinds] == [False, False, True]


async def test_days_that_were_summarised_are_not_summarised_again(store: Store, other: Store) -> None:
    await fill_with_everything(store)
    await copy(store.dump(), other)
    subject = Subject("calendar", "default", day="2026-03-01")
    planned = await other.read(PlannedEntry(subject))
    assert planned is not None
    days = [row for row in await everything(store) if isinstance(row, DayRow)]
    assert [(planned.done_at, planned.done_seq)] == [(row.done_at, row.done_seq) for row in days]


@pytest.mark.req("C18")
async def test_a_purge_takes_everything_of_a_user_and_nothing_of_others(store: Store) -> None:
    await fill_with_everything(store)
    away, bobs_messages = await shown(store, ANN_AWAY), await store.read(Messages(BOB, limit=99))
    done = await store.purge(ANN, "admin")
    assert done == Purged(messages=9, summaries=6, memories=2, of_others=1)
    (row,) = await store.read(AuditRows(ANN))
    assert (row.actor, row.action, row.subject) == ("admin", "purge", "9 messages, 6 summaries, 2 memories")
    await store.purge(ANN)
    assert [user.id for user in await store.read(Users("default"))] == ["bob"]
    assert await shown(store, ANN_AWAY) == away
    assert await store.read(Messages(BOB, limit=99)) == bobs_messages
    left = [row for row in await everything(store, vectors=True) if row not in await store.read(AuditRows(ANN))]
    said = repr([row for row in left if "elsewhere" not in repr(row)])
    assert "bob says" in said
    assert not [word for word in ("ann says", "direct:ann", "lives in", "Bob and Ann", "the cat") if word in said]
    assert (await store.read(DerivedText(BOB, "portrait"))) is None
    assert (await store.verify()).ok
    assert await store.read(SearchText(BOB_HERE, "ann", within="thread")) == []
    with pytest.raises(NotFound):
        await store.purge(Scope.of("nobody"))
    assert (await store.health()).status == "active", "a mistake of the caller is no trouble of the store"


async def test_no_number_is_given_twice_after_a_purge(store: Store) -> None:
    last = (await add(store, BOB, "one"))[0].seq
    messages = await add(store, ANN, "two", "three")
    summary = await archive(store, ANN, messages)
    memory = (await store.apply([AddMemory(MemoryDraft(ANN, "fact", "x"))])).memory
    await store.purge(ANN)
    (new,) = await add(store, BOB, "four")
    assert new.seq == last + 3
    assert (await archive(store, BOB, [new])).id > summary.id
    assert (await store.apply([AddMemory(MemoryDraft(BOB, "fact", "x"))])).memory.id > memory.id
    assert (await store.verify()).ok


async def test_mixed_summaries_are_erased_and_made_again(store: Store) -> None:
    await store.apply([adding(ANN_HERE, "Ann's secret", at=minutes(0))])
    for number in range(4):
        await store.apply([adding(BOB_HERE, f"bob {number}", at=minutes(number))])
    (seq, *_, last) = [message.seq for message in await store.read(Messages(BOB))]
    view = ViewDraft(BOB, "day", "Ann told Bob a secret.", seq, last, 4, day=NOON.date())
    old = replace(view, text="Long ago.", day=NOON.date() - timedelta(days=9))
    await store.apply([AddView(view), AddView(old)])
    subject = Subject("calendar", "default", day="2026-03-01")
    await store.apply(
        [Advance("calendar", 0, last, (Touch(subject, 5, 50, last, 7),)), FinishEntry(subject, last, None, 8)]
    )
    await store.purge(ANN)
    assert [summary.text for summary in await store.read(Summaries(BOB, active=None))] == ["Long ago."]
    planned = await store.read(PlannedEntry(subject))
    assert planned is not None
    assert (planned.done_seq, planned.done_at) == (0, None)
    assert planned.due_at is not None


async def test_what_stands_on_a_mixed_summary_is_erased_with_it(store: Store) -> None:
    await store.apply([adding(ANN_HERE, "Ann's secret", at=minutes(0))])
    (said,) = (await store.apply([adding(BOB_HERE, "oh!", at=minutes(1))])).results
    seq = said.seq  # type: ignore[union-attr]
    day = ViewDraft(BOB, "day", "Ann told Bob a secret.", seq, seq, 1, day=NOON.date())
    first = (await store.apply([AddView(day)])).summary
    # A week later than the day itself: only what it was made of says that Ann is in it.
    week = ViewDraft(BOB, "week", "A week with a secret.", seq, seq, 1, reach="sources", summaries=(first.id,))
    await store.apply([AddView(replace(week, day=NOON.date() + timedelta(days=7)))])
    assert (await store.purge(ANN)).of_others == 2
    assert await store.read(Summaries(BOB, active=None)) == []
    assert (await store.verify()).ok


async def test_a_conversation_that_goes_on_is_one_with_what_comes_back_of_it(store: Store, other: Store) -> None:
    await store.apply([adding(ANN, "before, elsewhere", at=minutes(0))])
    await other.apply([adding(ANN, "here", at=minutes(5))])
    await copy(store.dump(), other)
    await other.apply([adding(ANN, "here again", at=minutes(10))])
    assert sorted(message.text for message in await other.read(Messages(ANN))) == [
        "before, elsewhere",
        "here",
        "here again",
    ]
    (session,) = await other.read(Sessions(ANN))
    assert (session.started_at, session.last_activity, session.messages) == (minutes(0), minutes(10), 3)
    assert (await other.verify()).ok


async def test_what_a_user_said_in_anothers_memory_goes_with_its_summary(store: Store) -> None:
    said = [adding(BOB, "ann's words", at=minutes(1), author="ann"), adding(BOB, "bob's words", at=minutes(2))]
    messages = [result.message for result in (await store.apply(said)).results]  # type: ignore[union-attr]
    more = await add(store, BOB, "three", "four")
    first, second = await archive(store, BOB, messages, "Mixed."), await archive(store, BOB, more, "Bob's own.")
    await store.apply([Archive(SummaryDraft(BOB, "Above both.", summaries=(first.id, second.id)))])
    await store.apply([AddMemory(MemoryDraft(BOB, "fact", "told by ann", sources=(messages[0].seq,)))])
    subject = Subject("tree", "default", "bob")
    await store.apply([Advance("tree", 0, more[-1].seq, (Touch(subject, 4, 30, more[-1].seq, 7),))])
    assert await store.purge(ANN) == Purged(messages=1, summaries=2, memories=1, of_others=3)
    assert [(each.text, each.active) for each in await store.read(Messages(BOB))] == [
        ("bob's words", True),
        ("three", False),
        ("four", False),
    ]
    assert [summary.text for summary in await store.read(Summaries(BOB))] == ["Bob's own."]
    planned = await store.read(PlannedEntry(subject))
    assert planned is not None
    assert (planned.messages, planned.characters) == (3, 19)
    assert (await store.verify()).ok


async def test_the_assistants_words_stay_when_a_user_of_that_name_goes(store: Store) -> None:
    named = Scope.of("assistant")
    await add(store, named, "I am called that")
    await add(store, BOB, "hello", role="assistant")
    assert (await store.purge(named)).messages == 1
    assert [message.author for message in await store.read(Messages(BOB))] == ["assistant"]
    assert (await store.verify()).ok


async def test_searches_forget_what_was_erased(store: Store) -> None:
    import numpy as np  # noqa: PLC0415

    for scope, text in ((ANN_HERE, "secret"), (BOB_HERE, "open")):
        (message,) = await add(store, scope, text)
        value = np.ones(4, dtype=np.float16).tobytes()
        await store.apply([AddVectors(EMBEDDER, (VectorRow(message.seq, text, value, message.space),), message.seq)])
    similar = SearchVector(BOB_HERE, EMBEDDER, np.ones(4, dtype=np.float32), within="thread")
    found = await store.read(similar)
    assert found is not None
    assert len(found.seqs) == 2
    await store.purge(ANN)
    found = await store.read(similar)
    assert found is not None
    assert len(found.seqs) == 1
