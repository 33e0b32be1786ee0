"""The tiers of an account, through the lifecycle of the document."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from aforesaid.digest.tiers import CleaningLedger, TiersLedger, TiersRules, Windows, clean, decide, windows
from aforesaid.digest.tree import Analyse, Decision, FoldMessages
from aforesaid.memory import UserMemory
from aforesaid.models.embed import DeterministicEmbedder
from digesting import MovingClock, Scribe, remembering

RULES = TiersRules()
DAY = 24 * 3_600_000_000


@pytest.mark.req("C4")
@pytest.mark.parametrize(
    ("total", "held"),
    [
        (0, Windows(0, 0)),
        (49, Windows(49, 0)),
        (50, Windows(50, 0)),
        (51, Windows(50, 1)),
        (200, Windows(50, 150)),
        (250, Windows(50, 200)),
        (260, Windows(50, 200)),
    ],
)
def test_what_short_term_has_no_room_for_moves_on(total: int, held: Windows) -> None:
    newest = range(1, total + 1)[-250:]
    assert windows(newest, 0, RULES) == held


@pytest.mark.defect("B12")
@pytest.mark.parametrize(
    ("total", "cleared", "held"),
    [(50, 50, Windows(0, 50)), (60, 50, Windows(10, 50)), (250, 240, Windows(10, 200)), (120, 50, Windows(50, 70))],
)
def test_cleared_messages_move_from_short_term_to_mid_term(total: int, cleared: int, held: Windows) -> None:
    assert windows(range(1, total + 1)[-250:], cleared, RULES) == held


@pytest.mark.defect("B12")
async def test_after_clear_short_term_holds_only_what_was_said_since(location: str) -> None:
    async with remembering(location, "account") as memory:
        ann = memory.user("ann")
        await say(ann, 1, 50, datetime(2026, 3, 1, 9, tzinfo=UTC))
        await ann.clear_window()
        tiers = await ann.tiers()
        assert (len(tiers.short_term), len(tiers.mid_term), tiers.messages) == (0, 50, 50)
        assert (await ann.health()).component("short_term").message_count == 0
        await ann.add("user", "Let us talk about boats.", at=datetime(2026, 3, 1, 10, tzinfo=UTC))
        assert [message.text for message in (await ann.tiers()).short_term] == ["Let us talk about boats."]


@pytest.mark.req("C5")
def test_the_history_context_is_made_anew_for_four_reasons() -> None:
    def plan(covered: int = 0, *, now: int = 1, topic_changed: bool = False, asked: bool = False) -> Analyse | None:
        decision = decide(TiersLedger(49, covered, now, 0, topic_changed), RULES, asked=asked)
        assert isinstance(decision.plan, Analyse | None)
        return decision.plan

    assert plan() is None
    assert decide(TiersLedger(50, 0, 1, 0), RULES).plan == Analyse(50)
    assert plan(asked=True) == Analyse(49)
    assert plan(now=DAY) == Analyse(49)
    assert plan(topic_changed=True) == Analyse(49)
    assert plan(49, now=DAY, asked=True) is None, "nothing was said since"
    assert decide(TiersLedger(49, 0, 1, 0), RULES).look_again_at == DAY


def analysis(text: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"summary": text, "topics": [], "preferences": [], "style": "", "items": [], **more}


async def say(user: UserMemory, first: int, last: int, at: datetime) -> None:
    for number in range(first, last + 1):
        await user.add("user" if number % 2 else "assistant", f"M{number} is about the garden.", at=at)


@pytest.mark.req("C1", "C4", "C5")
async def test_the_documents_lifecycle_through_50_200_and_260_messages(location: str) -> None:
    clock, scribe = MovingClock(), Scribe()
    async with remembering(location, "account", chat=scribe, clock=clock) as memory:
        ann = memory.user("ann")
        last = 0
        for total in (49, 50, 100, 150, 200, 250, 260):
            scribe.answers[:] = [analysis(f"What {total} messages were about.")]
            await say(ann, last + 1, total, clock.forward(minutes=10))
            await memory.upkeep()
            last = total
            tiers = await ann.tiers()
            assert [message.seq for message in tiers.short_term] == list(range(max(1, total - 49), total + 1))
            assert [message.seq for message in tiers.mid_term] == list(range(max(1, total - 249), max(1, total - 49)))
            assert tiers.messages == total
            assert tiers.context.covers == total // 50 * 50
        context = await ann.history_context()
        assert context.text == "What 250 messages were about."
        # Each time from the analysis before and the fifty messages after it.
        shown = scribe.asked[-1][1]
        assert "What 200 messages were about." in shown
        assert [f"M{number} " in shown for number in (200, 201, 250, 251)] == [False, True, True, False]
        assert len(await ann.summaries(active=None, kind="history")) == 5
        assert len(await ann.history(limit=1_000)) == 260
        assert (await memory.verify()).ok


@pytest.mark.req("C5")
async def test_it_is_made_anew_on_request_and_when_it_is_a_day_old(location: str) -> None:
    clock, scribe = MovingClock(), Scribe()
    async with remembering(location, "account", chat=scribe, clock=clock) as memory:
        ann = memory.user("ann")
        await say(ann, 1, 3, clock.time)
        assert (await memory.upkeep()).summarised == 0
        scribe.answers.append(analysis("On request."))
        assert [summary.text for summary in await ann.summarize()] == ["On request."]
        await say(ann, 4, 5, clock.time)
        assert (await memory.upkeep()).summarised == 0
        clock.forward(hours=23, minutes=59)
        assert (await memory.upkeep()).summarised == 0
        clock.forward(minutes=1)
        scribe.answers.append(analysis("A day later."))
        assert (await memory.upkeep()).summarised == 1
        assert (await ann.history_context()).text == "A day later."
        clock.forward(days=3)
        assert (await memory.upkeep()).summarised == 0, "nothing was said since"


@pytest.mark.req("C5")
async def test_it_is_made_anew_when_they_talk_about_something_else(location: str) -> None:
    clock = MovingClock()
    async with remembering(location, "account", clock=clock, embedder=DeterministicEmbedder()) as memory:
        ann = memory.user("ann")
        for number in range(12):
            await ann.add(
                "user", f"garden tulips roses planting watering {'again' * (number % 2)}", at=clock.forward(seconds=9)
            )
        await memory.upkeep()
        assert await ann.summaries() == []
        for number in range(12):
            await ann.add(
                "user", f"invoice lawyer contract payment deadline {'now' * (number % 2)}", at=clock.forward(seconds=9)
            )
        await memory.upkeep()
        (context,) = await ann.summaries()
        assert (context.kind, context.messages) == ("history", 24)
        assert (await memory.upkeep()).summarised == 0


@pytest.mark.req("C19")
async def test_where_there_is_none_there_is_a_default_at_once_and_then_the_real_one(location: str) -> None:
    clock, scribe = MovingClock(), Scribe()
    async with remembering(location, "account", chat=scribe, clock=clock) as memory:
        ann = memory.user("ann")
        await say(ann, 1, 50, clock.time)
        assert await ann.history_context() == await memory.user("nobody").history_context()
        scribe.answers.append(analysis("The garden."))
        await memory.upkeep()
        (made,) = await ann.summaries()
        assert (await ann.history_context()).text == "The garden."
        await ann.roll_back(made.id)
        assert (await ann.history_context()).made_at is None
        scribe.answers.append(analysis("The garden, again."))
        await ann.add("user", "Hello?", at=clock.time)
        await memory.upkeep()
        assert (await ann.history_context()).text == "The garden, again."


async def test_an_analysis_keeps_topics_preferences_and_what_has_not_expired(location: str) -> None:
    clock, scribe = MovingClock(), Scribe()
    items = [
        {"text": "Dentist", "priority": 5, "relevance": 0.9, "tags": ["health"], "expires": "2026-03-02"},
        {"text": "Likes tea", "priority": 2, "relevance": 0.5, "tags": [], "expires": None},
    ]
    async with remembering(location, "account", chat=scribe, clock=clock) as memory:
        ann = memory.user("ann")
        await say(ann, 1, 2, clock.time)
        scribe.answers.append(
            analysis("About Ann.", topics=["garden"], preferences=["tea"], style="brief", items=items)
        )
        await ann.summarize()
        context = await ann.history_context()
        assert (context.topics, context.preferences, context.style) == (("garden",), ("tea",), "brief")
        assert [(item.text, item.priority, item.expires) for item in context.items] == [
            ("Dentist", 5, date(2026, 3, 2)),
            ("Likes tea", 2, None),
        ]
        clock.forward(days=2)
        assert [item.text for item in (await ann.history_context()).items] == ["Likes tea"]


@pytest.mark.req("C18")
def test_what_mid_term_has_no_room_for_is_archived_daily_or_when_it_is_much() -> None:
    assert clean(CleaningLedger(0, DAY, 0), RULES).plan is None
    assert clean(CleaningLedger(49, 1, 0), RULES) == Decision(None, DAY)
    assert clean(CleaningLedger(49, DAY, 0), RULES).plan == FoldMessages(49)
    assert clean(CleaningLedger(50, 1, 0), RULES).plan == FoldMessages(50)


@pytest.mark.req("C18")
async def test_old_conversations_are_archived_and_the_history_is_compressed_daily(location: str) -> None:
    clock = MovingClock()
    profile = {"extends": "account", "short_term": 4, "mid_term": 6}
    async with remembering(location, profile, clock=clock) as memory:
        ann = memory.user("ann")
        await say(ann, 1, 12, clock.time)
        await memory.upkeep()
        assert await ann.summaries(kind="tree") == [], "too few yet"
        clock.forward(days=1)
        await memory.upkeep()
        (archive,) = await ann.summaries(kind="tree")
        assert (archive.first, archive.last) == (1, 2)
        for part in range(9):
            await say(ann, 13 + 4 * part, 16 + 4 * part, clock.forward(minutes=30))
            await memory.upkeep()
        active = await ann.summaries(kind="tree")
        assert active[0].level == 2
        assert sum(summary.messages for summary in active) == 38
        everything = await ann.history(limit=100)
        assert [message.active for message in everything] == [False] * 38 + [True] * 10
        assert len(await ann.summaries(kind="history")) == 1, "what newer contexts know is not kept twice"
        tiers = await ann.tiers()
        assert [message.seq for message in tiers.mid_term] == list(range(39, 45))
        assert (await memory.verify()).ok


@pytest.mark.req("C15", "C16")
async def test_an_analysis_without_a_model_lists_what_is_counted_and_remembered(location: str) -> None:
    clock = MovingClock(datetime.now(UTC))
    async with remembering(location, "account", clock=clock) as memory:
        ann = memory.user("ann")
        await say(ann, 1, 10, clock.time)
        await ann.note("preference", "Ann prefers tea over coffee")
        await ann.note("instruction", "Always answer in metric units")
        await ann.note("fact", "Ann is allergic to penicillin", importance=9)
        await ann.note("schedule", "Dentist", when=clock.time + timedelta(days=3), importance=6)
        await ann.preferences()
        found = await ann.analyze()
        assert found.topics
        assert found.preferences == ("Ann prefers tea over coffee",)
        assert found.style.startswith("Always answer in metric units")
        assert [(each.text, each.priority, each.expires is None) for each in found.items] == [
            ("Ann is allergic to penicillin", 4, True),
            ("Dentist", 3, False),
        ]
        assert await ann.history_context() == found
        clock.forward(days=5)
        assert [each.text for each in (await ann.history_context()).items] == ["Ann is allergic to penicillin"]
