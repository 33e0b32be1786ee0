"""Threads and private chats: listed, counted by thread and by day, and cleared."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import aforesaid
from aforesaid.domain.scope import chat_name
from aforesaid.errors import InvalidInput, NotFound, TooLarge

QUIET: dict[str, object] = {"background": False}


@pytest.mark.parametrize("location", ["m.db", "json:m.json", "files:m", ":memory:"])
@pytest.mark.parametrize("erase", [False, True], ids=["taken back", "erased"])
async def test_clearing_a_thread_removes_the_users_messages_in_it_and_no_others(
    tmp_path: Path, location: str, *, erase: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with aforesaid.connect(location, embedder="none", settings=QUIET) as memory:
        ann, here = memory.user("ann"), memory.user("ann", thread="general")
        await ann.add("user", "a private boat")
        first = (
            await here.add_many([{"role": "user", "text": "the boat"}, {"role": "assistant", "text": "oh"}])
        ).messages
        await here.edit(first[0], "the blue boat")
        gone = (await here.add("user", "never mind the boat")).message
        await here.take_back(gone)
        await memory.user("bob", thread="general").add("user", "bob's boat")
        assert [(each.id, each.messages) for each in await ann.threads()] == [("general", 2), ("direct:ann", 1)]
        assert (await ann.count(), await here.count(within="thread")) == (3, 3)

        assert await ann.clear("general", erase=erase) == 2
        assert [each.id for each in await ann.threads()] == ["direct:ann"]
        assert (await ann.count(), await here.count(within="thread")) == (1, 1)
        assert [each.text for each in await ann.history()] == ["a private boat"]
        assert [hit.text for hit in await ann.search("boat", arms="keyword")] == ["a private boat"]
        assert [each.text for each in await here.history(within="thread")] == ["bob's boat"]
        assert any(each.thread == "general" for each in await ann.history(versions=True)) is not erase
        assert await here.clear(erase=erase) == 0
        assert (await memory.verify()).ok


async def test_threads_are_paged_by_a_thread_or_its_id() -> None:
    async with aforesaid.connect(":memory:", embedder="none", settings=QUIET) as memory:
        for name in ("one", "two", "three"):
            await memory.user("ann", thread=name).add("user", "hi")
        ann = memory.user("ann")
        newest, *_ = await ann.threads(1)
        assert newest.id == "three"
        assert [each.id for each in await ann.threads(before=newest)] == ["two", "one"]
        assert [each.id for each in await ann.threads(before=" two ")] == ["one"]
        with pytest.raises(NotFound):
            await ann.threads(before="four")
        with pytest.raises(InvalidInput):
            await ann.threads(before=1.5)  # type: ignore[arg-type]


@pytest.mark.every_store
async def test_paging_continues_after_a_thread_that_was_cleared(location: str) -> None:
    async with aforesaid.connect(location, embedder="none", settings=QUIET) as memory:
        for name in ("one", "two", "three"):
            await memory.user("ann", thread=name).add("user", "hi")
        ann = memory.user("ann")
        *_, second = await ann.threads(2)
        await ann.clear(second.id)
        assert [each.id for each in await ann.threads(before=second)] == ["one"]


@pytest.mark.parametrize("method", ["history", "count", "search"])
async def test_filters_are_checked(method: str) -> None:
    wrong: list[dict[str, object]] = [
        {"role": "robot"},
        {"since": "yesterday"},
        {"author": ""},
        {"metadata": ["a"]},
        {"metadata": {"a": [1]}},
        {"metadata": {"a": float("nan")}},
        {"metadata": {1: "a"}},
    ]
    async with aforesaid.connect(":memory:", embedder="none", settings=QUIET) as memory:
        ann = memory.user("ann")
        asked = ("boat",) if method == "search" else ()
        for where in wrong:
            with pytest.raises(InvalidInput):
                await getattr(ann, method)(*asked, **where)
        with pytest.raises(InvalidInput, match="limit messages"):
            await ann.search("boat", role="user", kinds=["memory"])


async def test_a_filtered_search_by_meaning_fills_its_limit_and_returns_no_notes(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "m.db", settings=QUIET) as memory:
        ann = memory.user("ann")
        said = [
            {"role": "assistant" if number % 20 else "user", "text": f"The boat number {number} is in the harbour."}
            for number in range(300)
        ]
        await ann.add_many(said)
        await ann.note("fact", "Ann owns a boat in the harbour.")
        await memory.upkeep()
        hits = await ann.search("Which boat is in the harbour?", 10, role="user", min_score=0)
        assert [hit.kind for hit in hits] == ["message"] * 10
        assert {hit.message.role for hit in hits if hit.message is not None} == {"user"}
        assert "memory" in {hit.kind for hit in await ann.search("Which boat is in the harbour?", 500, min_score=0)}


def test_what_was_said_in_one_chat_is_recalled_in_another_and_not_in_a_channel() -> None:
    with aforesaid.open(":memory:") as memory:
        ann = memory.user("ann")
        ann.chat("one").add("user", "My tortoise is called Rex.")
        question = "What is my tortoise called?"
        assert "Rex" in ann.chat("two").context(question).text
        assert "Rex" in ann.context(question).text
        assert "Rex" not in memory.user("ann", thread="general").context(question).text


def test_chats_of_two_users_with_the_same_name_are_two() -> None:
    with aforesaid.open(":memory:") as memory:
        memory.user("ann").chat("one").add("user", "I am Ann")
        memory.user("bob").chat("one").add("user", "I am Bob")
        assert [each.text for each in memory.user("ann").chat("one").history(within="thread")] == ["I am Ann"]


def test_a_chat_is_listed_among_the_threads_and_keeps_its_name() -> None:
    with aforesaid.open(":memory:") as memory:
        ann = memory.user("ann", space="home", session="evening")
        ann.chat(7).add("user", "Hello")
        (thread,) = ann.threads()
        assert chat_name(thread.id) == "7"
        assert ann.chat(7).scope == ann.scope._replace(thread=thread.id)


async def test_days_are_counted_by_space_and_person(location: str) -> None:
    noon = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    async with aforesaid.connect(location) as memory:
        for user, days in (("ann", (1, 1, 3, 9)), ("bob", (1, 40))):
            person = memory.user(user)
            for turn, day in enumerate(days):
                at = noon - timedelta(days=day) + timedelta(minutes=turn)
                await person.add("user", f"{user} {turn}", at=at)
                await person.add("assistant", f"to {user} {turn}", at=at)
        await memory.user("eve", space="other").add("user", "elsewhere", at=noon - timedelta(days=1))
        everybody = {each.day: each for each in await memory.activity(10)}
        ann = {each.day: each for each in await memory.activity(10, user="ann")}
        assert [each.messages for each in await memory.activity(3, space="nowhere")] == [0, 0, 0]
        for wrong, kind in ((0, InvalidInput), (10**6, TooLarge)):
            with pytest.raises(kind):
                await memory.activity(wrong)
    yesterday = noon.date() - timedelta(days=1)
    assert (everybody[yesterday].messages, everybody[yesterday].turns) == (6, 3)
    assert (ann[yesterday].messages, ann[yesterday].turns) == (4, 2)
    assert list(everybody) == sorted(everybody)
    assert len(everybody) == 10, "days without a word count too"
    assert sum(each.messages for each in everybody.values()) == 10, "what is older, or of another space, does not"
