"""The context of an account, in its three parts, and what its items carry."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import aforesaid
from aforesaid.memory import connect
from aforesaid.store.columns import Roll
from aforesaid.store.messages import Messages
from aforesaid.store.operations import Question
from aforesaid.store.searches import MatchText
from aforesaid.store.summaries import Summaries
from intercepting import Read, intercept

if TYPE_CHECKING:
    from aforesaid._sync_types import SyncMemory, SyncUserMemory

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)


@contextmanager
def opened(tmp_path: Path) -> Iterator[SyncMemory]:
    with aforesaid.open(tmp_path / "memory.db", profile="account", embedder="deterministic") as memory:
        yield memory


def say(user: SyncUserMemory, texts: list[str], start: datetime = NOON) -> None:
    for number, text in enumerate(texts):
        user.add("user", text, at=start + timedelta(minutes=number))


def small_talk(count: int) -> list[str]:
    return [f"the weather in week {number} was as usual" for number in range(count)]


@pytest.mark.req("C11")
def test_an_account_has_its_last_ten_its_history_and_what_is_relevant(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        ann = memory.user("ann")
        say(ann, ["the red boat is in the harbour", *small_talk(60)])
        memory.upkeep()
        found = ann.account_context("the red boat is in the harbour")
        assert [message.text for message in found["recent"]] == small_talk(60)[-10:]
        assert found["history_summary"]
        assert [hit.text for hit in found["relevant_mid_term"]] == ["the red boat is in the harbour"]
        assert all((hit.similarity or 0) > 0.7 for hit in found["relevant_mid_term"])
        context = ann.context("the red boat is in the harbour")
        assert sum(item.section == "recent" for item in context.items) == 10
        assert [item.section for item in context.items if item.section != "recent"] == [
            "rules",
            "habits",
            "summaries",
            "snippets",
            "date",
            "current",
        ]


@pytest.mark.req("C11")
def test_what_lies_before_mid_term_is_not_brought_in(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        ann = memory.user("ann")
        say(ann, ["the red boat is in the harbour", *small_talk(230)])
        memory.upkeep()
        assert ann.account_context("the red boat is in the harbour")["relevant_mid_term"] == []
        assert ann.search("the red boat is in the harbour")[0].text == "the red boat is in the harbour"


@pytest.mark.req("C14")
def test_after_a_change_of_topic_what_was_said_about_it_before_is_there_again(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        ann = memory.user("ann")
        say(ann, ["my sourdough bread needs more salt", *[f"the tram line {n} was late" for n in range(30)]])
        memory.upkeep()
        on_topic = ann.context("the tram line was late again")
        changed = ann.context("my sourdough bread needs salt")
        bread = "my sourdough bread needs more salt"
        assert not any(bread in item.text for item in on_topic.items if item.section == "snippets")
        assert any(bread in item.text for item in changed.items if item.section == "snippets")
        recent = [item.text for item in changed.items if item.section == "recent"]
        assert recent == [item.text for item in on_topic.items if item.section == "recent"]


@pytest.mark.req("C12")
async def test_history_is_read_first_then_short_term_then_mid_term_if_there_is_one(tmp_path: Path) -> None:
    read: list[str] = []

    async def watched(ask: Read, question: Question[Any]) -> object:
        read.append(type(question).__name__)
        return await ask(question)

    profile = {"extends": "account", "summaries": "none", "extract": False}  # nothing else reads meanwhile
    async with connect(tmp_path / "memory.db", profile=profile, embedder="deterministic") as memory:
        ann = memory.user("ann")
        for text in small_talk(5):
            await ann.add("user", text)
        for kind in (Summaries, Messages, MatchText):
            intercept(memory.store, kind, watched)
        await ann.context("how was the weather?")
        assert read == ["Summaries", "Messages"]
        read.clear()
        for text in small_talk(20):
            await ann.add("user", f"{text}, again")
        await ann.context("how was the weather?")
        assert read[:3] == ["Summaries", "Messages", "MatchText"]


@pytest.mark.req("C16")
def test_items_carry_priority_relevance_tags_and_expiration(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", profile="companion", embedder="deterministic") as memory:
        ann = memory.user("ann")
        tomorrow = NOON + timedelta(days=1)
        ann.note("fact", "Ann is allergic to nuts", importance=10, priority=5, tags=["health"])
        ann.note("schedule", "Dentist at nine", importance=8, expires=tomorrow)
        before, after = ann.context("what is up?", at=NOON), ann.context("what is up?", at=tomorrow)
    allergic, dentist = (item for item in before.items if item.section == "memories")
    assert (allergic.priority, allergic.relevance, allergic.tags, allergic.expires) == (5, 1.0, ("health",), None)
    assert (dentist.relevance, dentist.expires) == (0.8, tomorrow)
    assert "priority 5 about health" in before.explain()
    assert "Dentist" not in after.text
    assert any(left.reason == "it has expired" for left in after.left_out)


@pytest.mark.req("C16")
def test_what_matters_less_is_trimmed_first(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", profile="companion", embedder="deterministic") as memory:
        ann = memory.user("ann")
        for number in range(30):
            ann.note("fact", f"a thing of some length that is known, number {number}", importance=5, priority=1)
        ann.note("fact", "the one thing that matters", importance=5, priority=5)
        for budget in range(256, 1_000, 64):
            shown = [item.text for item in ann.context("hello", budget).items if item.section == "memories"]
            assert not shown or any("the one thing that matters" in text for text in shown), budget


@pytest.mark.req("C20")
async def test_history_is_read_when_it_is_needed_kept_and_read_on_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    original = Roll.extend

    def watched(self: Roll, seq: Any, *others: Any, **more: Any) -> None:  # noqa: ANN401
        read.append(len(seq))
        original(self, seq, *others, **more)

    monkeypatch.setattr(Roll, "extend", watched)
    async with connect(tmp_path / "memory.db", profile="account", embedder="deterministic") as memory:
        ann = memory.user("ann")
        # Many callers at once share one transaction, and nothing of it waits for an analysis.
        await asyncio.gather(*[ann.add("user", text) for text in small_talk(20)])
        await memory.upkeep()
    async with connect(tmp_path / "memory.db", profile="account", embedder="deterministic") as memory:
        ann = memory.user("ann")
        assert read == []
        await ann.context("how was the weather?")
        assert read == [20]
        await ann.context("was the weather as usual?")
        assert read == [20]
        await ann.add("user", "it rains")
        await ann.context("how was the weather?")
        assert read == [20, 1]


@pytest.mark.req("C15")
@pytest.mark.parametrize("profile", ["account", "default"])
def test_how_somebody_likes_to_talk_is_learned_and_told_to_the_model(tmp_path: Path, profile: str) -> None:
    with aforesaid.open(tmp_path / "memory.db", profile=profile, embedder="deterministic") as memory:
        ann, bob = memory.user("ann"), memory.user("bob")
        for number in range(12):
            ann.add("user", f"lol the marathon training was hard, haha, take {number}! 😀")
            ann.add("assistant", "I can imagine how tired you are.")
        ann.add("user", "keep it short please, that is too long")
        bob.add("user", "Good evening.")
        memory.upkeep()
        context = ann.context("what next?", 2_000)
        (habits,) = [item.text for item in context.items if item.section == "habits"]
        assert "Replies they seem to like: short." in habits
        assert "marathon" in habits
        assert "casual" in habits
        assert "<habits>" in context.text
        assert not [item for item in bob.context("hello").items if item.section == "habits"]
