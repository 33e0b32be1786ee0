"""What a context reads, when, and what it does not know."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aforesaid import Memory, connect
from aforesaid.context.sections import ContextReads
from aforesaid.domain.message import Message, Position
from aforesaid.errors import InvalidInput
from aforesaid.store.memories import DerivedText
from aforesaid.store.messages import Messages, MessagesByNumber
from aforesaid.store.operations import Question
from aforesaid.store.people import Settings
from aforesaid.store.searches import MatchText
from intercepting import Read, intercept

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)


async def talk(memory: Memory, *texts: str, user: str = "ann") -> None:
    for number, text in enumerate(texts):
        await memory.user(user).add("user", text, at=NOON + timedelta(minutes=number))


def call_first(memory: Memory, kind: type[Question[Any]], first: Callable[[], Any]) -> None:
    """Call something before each read of one kind from the store."""

    async def reading(read: Read, question: Question[Any]) -> object:
        await first()
        return await read(question)

    intercept(memory.store, kind, reading)


@pytest.mark.parametrize("profile", ["default", "archive"])
async def test_what_is_stored_while_a_context_is_made_is_not_in_it(profile: str, tmp_path: Path) -> None:
    question = "Where did I park the green bicycle?"
    async with connect(tmp_path / "memory.db", profile=profile, embedder="deterministic") as memory:
        ann = memory.user("ann")
        await talk(memory, *(f"Message {number} about gardening." for number in range(30)), "The bicycle is green.")
        newest = await memory.store.read(Messages(ann.scope, limit=21))

        async def before(*_: object) -> object:
            return list(newest)

        intercept(memory.store, Messages, before)
        await ann.add("user", question)  # by whoever asks, at the same moment
        context = await ann.context(question)
    shown = [item for item in context.items if question in item.text]
    assert [item.section for item in shown] == ["current"], "it is there once, as what is to be answered"


async def test_a_question_is_looked_up_before_the_settings_are_known(tmp_path: Path) -> None:
    async with connect(tmp_path / "memory.db", embedder="deterministic") as memory:
        ann = memory.user("ann")
        await talk(memory, "I drink tea.", "My dog is Bella.")
        await ann.context("tea")
        order: list[str] = []

        async def told(name: str) -> None:
            order.append(name)

        call_first(memory, MatchText, lambda: told("words"))
        call_first(memory, Settings, lambda: told("settings"))
        memory._services.effective._kept.clear()
        await ann.context("What do I drink?")
    assert order[0] == "words"
    assert "settings" in order


async def test_settings_that_change_what_is_read_are_expected_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing that happens in the background changes what the contexts show.
    profile = {"summaries": "none", "extract": False}
    limits: list[int] = []
    read = ContextReads.messages

    async def messages(reads: ContextReads, limit: int, before: int | Position | None = None) -> list[Message]:
        limits.append(limit)
        return await read(reads, limit, before)

    monkeypatch.setattr(ContextReads, "messages", messages)
    async with connect(tmp_path / "memory.db", profile=profile, embedder="none") as memory:
        ann = memory.user("ann")
        await talk(memory, *(f"Message {number} about tea." for number in range(30)))
        await ann.set("short_term_memory_limit", 2)
        first = await ann.context("hello")
        assert limits == [21, 5], "the profile's number was expected, and was not right"
        limits.clear()
        second = await ann.context("hello")
        assert limits == [5]
        assert [item.key for item in first.items] == [item.key for item in second.items]
        assert sum(item.section == "recent" for item in second.items) == 4


def counted(memory: Memory, kind: type[Question[Any]]) -> list[Question[Any]]:
    """Return a list that grows with each read of one kind."""
    asked: list[Question[Any]] = []

    async def count(read: Read, question: Question[Any]) -> object:
        asked.append(question)
        return await read(question)

    intercept(memory.store, kind, count)
    return asked


async def test_what_follows_the_best_hits_is_read_together_with_them(tmp_path: Path) -> None:
    async with connect(tmp_path / "memory.db", embedder="deterministic") as memory:
        await talk(memory, *(f"The {word} is in bloom." for word in ("rose", "lily", "tulip")), "Since Monday.", "Yes.")
        asked = counted(memory, MessagesByNumber)
        context = await memory.user("ann").context("tulip", 1_000)
    assert len(asked) == 1
    assert any("Since Monday" in item.text for item in context.items)


async def test_sections_that_a_caller_leaves_out_are_neither_read_nor_shown(tmp_path: Path) -> None:
    async with connect(tmp_path / "memory.db", embedder="deterministic") as memory:
        await talk(memory, "I drink tea.")
        ann, asked = memory.user("ann"), counted(memory, DerivedText)
        whole = await ann.context("tea")
        assert asked
        asked.clear()
        context = await ann.context("tea", without=["rules", "habits"])
    assert not asked
    assert {item.section for item in whole.items} - {item.section for item in context.items} == {"rules"}


@pytest.mark.parametrize("name", ["current", "recents", ""])
async def test_the_question_and_unknown_sections_cannot_be_left_out(name: str, tmp_path: Path) -> None:
    async with connect(tmp_path / "memory.db", embedder="deterministic") as memory:
        with pytest.raises(InvalidInput, match="without"):
            await memory.user("ann").context("tea", without=[name])


async def test_an_erased_person_leaves_nothing_at_hand(tmp_path: Path) -> None:
    async with connect(tmp_path / "memory.db", embedder="deterministic") as memory:
        ann = memory.user("ann")
        await talk(memory, *(f"Zanzibar number {number}." for number in range(30)))
        await ann.context("Zanzibar?")
        builder = memory._services.builder
        assert any("Zanzibar" in str(list(kept.messages._new.values())) for kept in builder._rendered.values())
        await memory.purge("ann")
        assert not builder._rendered
