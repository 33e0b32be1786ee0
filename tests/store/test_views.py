"""Summaries that archive nothing, newer versions, and the agenda, on every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from aforesaid.domain.checks import EARLIEST, LATEST, microseconds
from aforesaid.domain.report import Activity
from aforesaid.domain.scope import Scope, Subject, Touch
from aforesaid.domain.summary import Quality, Summary, SummaryDraft, ViewDraft
from aforesaid.errors import InvalidInput, NotFound, SourcesChanged
from aforesaid.store import Store
from aforesaid.store.agenda import Advance, DueEntries, FinishEntry, PlannedEntry, PolicyBacklog, Unprocessed
from aforesaid.store.messages import ActivityPerDay, Messages, MessagesAfter, MessagesBetween, UserLedger
from aforesaid.store.people import AuditRows
from aforesaid.store.searches import SearchNotes
from aforesaid.store.summaries import (
    AddView,
    Archive,
    CoveredMessages,
    Revise,
    RollBack,
    Summaries,
    SummariesAbove,
    SummariesWithoutModel,
    SummaryById,
)
from making import add, adding, archive, minutes

pytestmark = pytest.mark.distributed

ANN = Scope.of("ann")
CHANNEL = Scope.of("ann", thread="general")
BOB = Scope.of("bob")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rolling(first: int, last: int, text: str = "So far.", **more: Any) -> ViewDraft:  # noqa: ANN401
    count = more.pop("messages", last - first + 1)
    return ViewDraft(more.pop("scope", ANN), "rolling", text, first, last, count, reach="thread", **more)


async def view(store: Store, draft: ViewDraft) -> Summary:
    return (await store.apply([AddView(draft)])).summary


async def test_messages_from_before_1970_count_on_their_own_day(store: Store) -> None:
    last_moment = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    await store.apply([adding(ANN, "said in 1969", at=last_moment), adding(ANN, "said in 1970", at=_EPOCH)])
    found = await store.read(ActivityPerDay("default", EARLIEST, LATEST))
    assert found == [Activity(date(1969, 12, 31), 1, 1), Activity(date(1970, 1, 1), 1, 1)]


async def test_a_view_hides_nothing_and_the_next_one_goes_on_from_it(store: Store) -> None:
    await add(store, ANN, "one", "two", "three", "four", "five")
    first = await view(
        store, rolling(1, 2, "One and two.", quality=Quality(0.5, None, 1.0, ("X",)), model="m", prompt="p/1")
    )
    assert (first.messages, first.active, first.chunks, first.level, first.reach) == (2, True, (), 1, "thread")
    assert first.quality == Quality(0.5, None, 1.0, ("X",))
    second = await view(store, rolling(3, 4, "Up to four.", previous=first.id))
    assert (second.first, second.last, second.fresh, second.messages, second.sources) == (1, 4, 3, 4, (first.id,))
    assert await store.read(Summaries(ANN)) == [second]
    assert [message.text for message in await store.read(CoveredMessages(ANN, second.id))] == [
        "one",
        "two",
        "three",
        "four",
    ]
    assert all(message.active for message in await store.read(Messages(ANN)))
    assert (await store.read(UserLedger(ANN))).active_summaries == (), "it is no part of the tree"
    assert [each.id for each in await store.read(SummariesAbove(ANN, 2))] == [first.id, second.id]
    assert await store.read(SummariesAbove(ANN, 5)) == []
    (match,) = await store.read(SearchNotes(ANN, "four", "m", None))
    assert match.sources == ("#3", "#4"), "what it added itself"
    assert (await store.verify()).ok


async def test_only_one_of_two_workers_goes_on(store: Store) -> None:
    await add(store, ANN, "one", "two", "three")
    outcomes = await asyncio.gather(*[view(store, rolling(1, 2)) for _ in range(6)], return_exceptions=True)
    assert sum(isinstance(outcome, SourcesChanged) for outcome in outcomes) == 5
    (current,) = await store.read(Summaries(ANN))
    with pytest.raises(SourcesChanged, match="another rolling summary"):
        await view(store, rolling(3, 3))
    with pytest.raises(SourcesChanged, match="covers some of these"):
        await view(store, rolling(2, 3, previous=current.id))
    with pytest.raises(SourcesChanged, match="does not cover"):
        await view(store, rolling(3, 4, previous=current.id))
    with pytest.raises(SourcesChanged, match="does not cover"):
        await view(store, rolling(3, 3, previous=current.id, messages=2))
    assert len(await store.read(Summaries(ANN, active=None))) == 1
    assert (await store.verify()).ok


async def test_threads_and_users_have_their_own(store: Store) -> None:
    await add(store, ANN, "alone")
    await add(store, CHANNEL, "among others")
    await add(store, Scope.of("bob", thread="general"), "me too")
    here = await view(store, rolling(1, 1))
    there = await view(store, rolling(2, 2, scope=CHANNEL))
    assert await store.read(Summaries(ANN, kind="rolling", here=True)) == [here]
    assert await store.read(Summaries(CHANNEL, kind="rolling", here=True)) == [there]
    assert len(await store.read(Summaries(ANN))) == 2
    with pytest.raises(SourcesChanged):
        await view(store, rolling(3, 3, scope=CHANNEL))
    with pytest.raises(NotFound):
        await view(store, rolling(1, 1, scope=Scope.of("stranger")))
    with pytest.raises(NotFound):
        await store.read(SummaryById(BOB, here.id))
    with pytest.raises(NotFound):
        await store.read(SummariesAbove(BOB, 1))


async def test_a_day_has_what_was_said_on_it_whenever_that_was_stored(store: Store) -> None:
    for text, at in (("morning", 0), ("the day before", -1440), ("evening", 300)):
        await store.apply([adding(ANN, text, at=minutes(at))])
    day = date(2026, 3, 1)
    since, until = microseconds(minutes(-720), "at"), microseconds(minutes(720), "at")
    draft = ViewDraft(ANN, "day", "A day.", 1, 3, 2, day=day, since=since, until=until)
    made = await view(store, draft)
    assert [message.text for message in await store.read(CoveredMessages(ANN, made.id))] == [
        "morning",
        "evening",
    ]
    assert (made.day, made.began_at, made.ended_at) == (day, minutes(0), minutes(300))
    with pytest.raises(SourcesChanged):
        await view(store, draft)
    await store.apply([adding(ANN, "late", at=minutes(100))])
    again = await view(store, replace(draft, text="A longer day.", last=4, messages=3, previous=made.id))
    assert (again.version, again.replaces, again.messages) == (2, made.id, 3)
    assert await store.read(Summaries(ANN, day=day)) == [again]
    week = ViewDraft(ANN, "week", "A week.", 1, 4, 3, reach="sources", summaries=(again.id,), day=day)
    made_week = await view(store, week)
    assert [each.kind for each in await store.read(Summaries(ANN))] == ["day", "week"], "the day stays as it is"
    assert [each.seq for each in await store.read(CoveredMessages(ANN, made_week.id))] == [1, 4, 3], (
        "by when it was said"
    )
    assert [each.kind for each in await store.read(SummariesAbove(ANN, 4))] == ["day", "week"]
    assert [each.text for each in await store.read(MessagesBetween("default", since, until))] == [
        "morning",
        "late",
        "evening",
    ]
    assert await store.read(MessagesBetween("elsewhere", since, until)) == []
    assert await store.read(ActivityPerDay("default", since, until)) == [Activity(day, 3, 3)]
    assert await store.read(ActivityPerDay("default", since, until, "nobody")) == []
    await store.apply([RollBack(ANN, made_week.id)])
    await store.apply([RollBack(ANN, again.id)])
    assert [each.text for each in await store.read(Summaries(ANN))] == ["A day."]
    assert (await store.verify()).ok


async def test_a_revision_covers_the_same_and_can_be_taken_back(store: Store) -> None:
    summary = await archive(store, ANN, await add(store, ANN, "one", "two"))
    change = Revise(ANN, summary.id, "Better.", edited_by="ann", prompt="edited")
    revised = (await store.apply([change])).summary
    assert (revised.chunks, revised.first, revised.last, revised.version) == ((1,), 1, 2, 2)
    noted = [(entry.action, entry.subject) for entry in await store.read(AuditRows(ANN))]
    assert ("summary.revise", f"summary {revised.id} in the place of {summary.id}") in noted
    with pytest.raises(SourcesChanged, match="not active"):
        await store.apply([change])
    with pytest.raises(NotFound):
        await store.apply([Revise(BOB, revised.id, "Mine.")])
    top = (await store.apply([Archive(SummaryDraft(ANN, "Top.", summaries=(revised.id,)))])).summary
    assert top.sources == (revised.id,)
    with pytest.raises(SourcesChanged, match="stands on"):
        await store.apply([RollBack(ANN, revised.id)])
    await store.apply([RollBack(ANN, top.id)])
    await store.apply([RollBack(ANN, revised.id)])
    assert [each.id for each in await store.read(Summaries(ANN))] == [summary.id]
    await store.apply([RollBack(ANN, summary.id)])
    assert all(message.active for message in await store.read(Messages(ANN)))
    assert (await store.verify()).ok


async def test_a_view_cannot_be_folded_into_the_tree(store: Store) -> None:
    await add(store, ANN, "one")
    made = await view(store, rolling(1, 1))
    with pytest.raises(SourcesChanged):
        await store.apply([Archive(SummaryDraft(ANN, "x", summaries=(made.id,)))])
    await store.apply([RollBack(ANN, made.id)])
    assert await store.read(Summaries(ANN)) == []
    assert await view(store, rolling(1, 1)) in await store.read(Summaries(ANN)), "what was taken back can be made again"


@pytest.mark.parametrize(
    "wrong",
    [
        {"text": " "},
        {"first": 0},
        {"messages": 0},
        {"last": 1, "first": 2},
        {"summaries": (1, 1)},
        {"kind": "month"},
        {"kind": "tree"},
    ],
    ids=["empty", "no first", "no messages", "backwards", "twice", "unknown kind", "no view"],
)
def test_a_view_that_covers_nothing_is_refused(wrong: dict[str, Any]) -> None:
    fields: dict[str, Any] = {"scope": ANN, "kind": "day", "text": "x", "first": 1, "last": 2, "messages": 2}
    with pytest.raises(InvalidInput):
        ViewDraft(**{**fields, **wrong})


async def test_a_second_view_of_the_same_days_says_what_to_give(store: Store) -> None:
    await add(store, ANN, "one")
    week = ViewDraft(ANN, "week", "x", 1, 1, 1)
    first = await view(store, week)
    with pytest.raises(SourcesChanged, match=f"read summary {first.id} again.*as `previous`, or the `day`"):
        await view(store, week)
    with pytest.raises(SourcesChanged, match=r"99 is no active day summary of 2026-03-01; leave out `previous`"):
        await view(store, replace(week, kind="day", day=date(2026, 3, 1), previous=99))
    assert (await view(store, replace(week, previous=first.id))).version == 2
    assert (await view(store, replace(week, day=date(2026, 3, 1)))).version == 1


async def test_what_no_model_wrote_is_found_again(store: Store) -> None:
    await archive(store, ANN, await add(store, ANN, "one"))
    written = SummaryDraft(ANN, "Written.", messages=(2,), model="m", prompt="p")
    await add(store, ANN, "two")
    await store.apply([Archive(written)])
    assert [each.id for each in await store.read(SummariesWithoutModel("tree", "", 0, 10))] == [1]
    assert await store.read(SummariesWithoutModel("tree", "p", 0, 10)) == []
    assert await store.read(SummariesWithoutModel("rolling", "", 0, 10)) == []
    await store.apply([Revise(ANN, 1, "Edited.", edited_by="ann")])
    assert await store.read(SummariesWithoutModel("tree", "", 0, 10)) == []


SUBJECT = Subject("tree", "default", "ann")


async def walk(store: Store, due_at: int = 5) -> None:
    after, page = await store.read(Unprocessed("tree", 100))
    touch = Touch(SUBJECT, len(page), sum(each.characters for each in page), page[-1].seq, due_at)
    await store.apply([Advance("tree", after, page[-1].seq, (touch,), page[-1].space)])


async def test_the_log_is_walked_along_once(store: Store) -> None:
    await add(store, ANN, "one", "two")
    after, page = await store.read(Unprocessed("tree", 1))
    assert (after, [each.seq for each in page], page[0].characters, page[0].user) == (0, [1], 3, "ann")
    await walk(store)
    with pytest.raises(SourcesChanged, match="walked past"):
        await store.apply([Advance("tree", 0, 2, (), "default")])
    assert (await store.read(Unprocessed("tree", 10))).passed == ()
    assert len((await store.read(Unprocessed("rolling", 10))).passed) == 2, "each policy has its own mark"
    (entry,) = await store.read(DueEntries("tree", 5, 10))
    assert (entry.messages, entry.characters, entry.waiting, entry.last_seq, entry.due_at) == (2, 6, 2, 2, 5)
    assert await store.read(DueEntries("tree", 4, 10)) == []
    assert await store.read(DueEntries("rolling", 5, 10)) == []
    backlog = await store.read(PolicyBacklog("tree", 5))
    assert (backlog.entries, backlog.messages, backlog.failing, backlog.error) == (1, 2, 0, None)


async def test_what_was_looked_at_is_off_the_agenda_unless_something_came_in(store: Store) -> None:
    await add(store, ANN, "one")
    await walk(store)
    (entry,) = await store.read(DueEntries("tree", 5, 10))
    await add(store, ANN, "two")
    await walk(store, due_at=7)
    await store.apply([FinishEntry(SUBJECT, entry.last_seq, None)])
    (entry,) = await store.read(DueEntries("tree", 5, 10))
    assert (entry.waiting, entry.due_at) == (2, 5)
    await store.apply([FinishEntry(SUBJECT, entry.last_seq, 90, done_at=6)])
    assert await store.read(DueEntries("tree", 89, 10)) == []
    planned = await store.read(PlannedEntry(SUBJECT))
    assert planned is not None
    assert (planned.waiting, planned.due_at, planned.done_at, planned.done_seq) == (0, 90, 6, 2)
    assert await store.read(PlannedEntry(Subject("tree", "default", "bob"))) is None


async def test_failures_are_counted_and_new_messages_do_not_hurry_them(store: Store) -> None:
    await add(store, ANN, "one")
    await walk(store)
    for number in (1, 2):
        await store.apply([FinishEntry(SUBJECT, 1, 100 * number, error=f"failure {number}")])
    await add(store, ANN, "two")
    await walk(store, due_at=6)
    assert await store.read(DueEntries("tree", 199, 10)) == []
    (entry,) = await store.read(DueEntries("tree", 6, 10, failing=True))
    assert (entry.failures, entry.error, entry.due_at, entry.messages) == (2, "failure 2", 200, 2)
    backlog = await store.read(PolicyBacklog("tree", 6))
    assert (backlog.entries, backlog.failing, backlog.error) == (0, 1, "failure 2")
    await store.apply([FinishEntry(SUBJECT, 2, None)])
    assert (await store.read(PolicyBacklog("tree", 999))).failing == 0


async def test_messages_are_read_onwards_in_a_thread_or_in_all(store: Store) -> None:
    await add(store, ANN, "one")
    await add(store, CHANNEL, "two")
    await add(store, ANN, "three")
    await archive(store, ANN, (await store.read(Messages(ANN)))[:1])
    texts = [
        [each.text for each in await store.read(MessagesAfter(ANN, 0, 10, here=here, archived=archived))]
        for here in (False, True)
        for archived in (True, False)
    ]
    assert texts == [["one", "two", "three"], ["two", "three"], ["one", "three"], ["three"]]
    assert [each.text for each in await store.read(MessagesAfter(ANN, 1, 1))] == ["two"]


async def test_what_is_due_and_what_is_tried_again_later_are_no_more_than_was_asked_for(store: Store) -> None:
    (message,) = await add(store, ANN, "hello")
    subjects = [Subject("tree", "default", f"user {number}") for number in range(5)]
    await store.apply([Advance("tree", 0, message.seq, tuple(Touch(each, 1, 5, message.seq, 1) for each in subjects))])
    for subject in subjects[1:]:
        await store.apply([FinishEntry(subject, message.seq, 100, error="the model is away")])
    for limit in range(1, 7):
        found = await store.read(DueEntries("tree", 50, limit, failing=True))
        assert [entry.subject for entry in found][:1] == subjects[:1], "what is due comes first"
        assert len(found) == min(limit, 5)
