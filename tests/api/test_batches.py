"""add_many: many messages in one commit, all or nothing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import aforesaid
from aforesaid import NewMessage, Part
from aforesaid.domain import checks
from aforesaid.domain import message as new_message
from aforesaid.errors import InvalidInput, TooLarge
from aforesaid.front import messages

QUIET: dict[str, object] = {"background": False}
MORNING = datetime(2026, 3, 1, 9, tzinfo=UTC)


async def test_a_batch_may_mix_values_and_mappings(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "m.db", embedder="none", settings=QUIET) as memory:
        ann = memory.user("ann", thread="general")
        receipt = await ann.add_many(
            [
                NewMessage("user", "I moved to Berlin.", at=MORNING, id="1", name="Ann"),
                {"role": "assistant", "text": "How do you like it?"},
                {"role": "user", "text": "I moved to Berlin.", "id": "1"},
                {"role": "user", "text": "It is cold.", "author": " bob "},
            ]
        )
        assert (receipt.durable, receipt.stored, receipt.duplicates) == (True, 3, 1)
        assert [each.id for each in receipt.messages] == ["1", "#2", "1", "#3"]
        first, _, third = await ann.history()
        assert (first.text, first.thread, first.at, first.name) == ("I moved to Berlin.", "general", MORNING, "Ann")
        assert third.author == "bob"
        (hit,) = await ann.search("berlin", arms="keyword")
        assert hit.id == "1"


async def test_an_empty_batch_stores_nothing(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "m.db", embedder="none", settings=QUIET) as memory:
        receipt = await memory.user("ann").add_many([])
        assert (receipt.durable, receipt.messages, receipt.stored, receipt.duplicates) == (True, [], 0, 0)
        assert await memory.users() == []


BAD: dict[str, Any] = {
    "role": {"role": "robot", "text": "x"},
    "text": {"role": "user", "text": ""},
    "at": {"role": "user", "text": "x", "at": "yesterday"},
    "unknown key": {"role": "user", "text": "x", "content": "y"},
    "no role": {"text": "x"},
    "no message": "hello",
    "nothing": None,
    "id": NewMessage("user", "x", id="#12"),
    "data": NewMessage("user", parts=[Part.of(b"abc", name="a.txt")]),
    "parts": NewMessage("user", "x", parts=5),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_one_bad_message_of_ten_thousand_refuses_the_batch_and_is_named(bad: Any) -> None:  # noqa: ANN401
    batch: list[Any] = [{"role": "user", "text": f"text {number}"} for number in range(10_000)]
    batch[7_777] = bad
    async with aforesaid.connect(":memory:", embedder="none", settings=QUIET) as memory:
        ann = memory.user("ann")
        with pytest.raises(InvalidInput, match=r"message 7777 of the batch") as refused:
            await ann.add_many(batch)
        assert (refused.value.field or "").startswith("messages.7777")
        assert await ann.count() == 0


@pytest.mark.parametrize("given", ["text", {"role": "user"}, 5, None], ids=type)
async def test_a_batch_that_is_no_list_of_messages_is_refused(given: Any) -> None:  # noqa: ANN401
    async with aforesaid.connect(":memory:", embedder="none", settings=QUIET) as memory:
        with pytest.raises(InvalidInput, match="messages must be a list"):
            await memory.user("ann").add_many(given)


async def test_a_generator_that_raises_stores_nothing() -> None:
    def broken() -> Iterator[NewMessage]:
        yield NewMessage("user", "one")
        raise LookupError("the source is gone")

    async with aforesaid.connect(":memory:", embedder="none", settings=QUIET) as memory:
        ann = memory.user("ann")
        with pytest.raises(LookupError):
            await ann.add_many(broken())
        assert await ann.count() == 0


async def test_a_batch_without_end_is_refused_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MOST_IN_BATCH", 1_000)
    taken = 0

    def endless() -> Iterator[NewMessage]:
        nonlocal taken
        while True:
            taken += 1
            yield NewMessage("user", "again")

    async with aforesaid.connect(":memory:", embedder="none", settings=QUIET) as memory:
        ann = memory.user("ann")
        with pytest.raises(TooLarge, match="at most 1,000 messages"):
            await ann.add_many(endless())
        assert taken == 1_001
        monkeypatch.setattr(messages, "BATCH_BYTES", 100)
        with pytest.raises(TooLarge, match="at most 100 characters"):
            await ann.add_many(endless())
        assert await ann.count() == 0


async def test_a_batch_that_is_cancelled_while_it_is_checked_stores_nothing() -> None:
    reading = asyncio.Event()

    def many() -> Iterator[NewMessage]:
        for number in range(5_000):
            if number == 2_000:
                reading.set()
            yield NewMessage("user", f"text {number}")

    async with aforesaid.connect(":memory:", embedder="none", settings=QUIET) as memory:
        ann = memory.user("ann")
        adding = asyncio.create_task(ann.add_many(many()))
        await reading.wait()
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert await ann.count() == 0


def test_the_blocking_api_reads_a_generator_in_the_callers_thread(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "m.db", embedder="none", settings=QUIET) as memory:
        bob, ann = memory.user("bob"), memory.user("ann")
        bob.add("user", "hello")

        def copied() -> Iterator[NewMessage]:
            for message in bob.history():
                yield NewMessage(message.role, message.text)

        reports: list[tuple[str, int, int]] = []
        assert ann.add_many(copied(), progress=lambda *report: reports.append(report)).stored == 1
        assert reports[-1] == ("stored", 1, 1)
        assert [each.text for each in ann.history()] == ["hello"]


async def test_equal_texts_of_a_batch_stay_apart_when_it_is_exported_and_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks, "now", lambda: 1_772_352_000_000_000)
    async with aforesaid.connect(tmp_path / "m.db", embedder="none", settings=QUIET) as memory:
        receipt = await memory.user("ann").add_many([NewMessage("user", "ok")] * 300)
        assert receipt.stored == 300
        await memory.export(tmp_path / "export.jsonl")
    async with aforesaid.connect(tmp_path / "other.db", embedder="none", settings=QUIET) as memory:
        await memory.load(tmp_path / "export.jsonl")
        assert await memory.user("ann").count() == 300


def test_a_new_message_has_the_arguments_of_add() -> None:
    parameters = [*inspect.signature(aforesaid.UserMemory.add).parameters][1:]
    assert list(new_message._FIELDS) == parameters


SENT_TO_A_MODEL: list[dict[str, Any]] = [
    {"role": "user", "content": "What is on this picture?"},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "This one"},
            {"type": "image_url", "image_url": {"url": "https://example.org/cat.png", "detail": "low"}},
        ],
    },
    {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "annotations": [],
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    },
    {
        "role": "tool",
        "tool_call_id": "c1",
        "content": [{"type": "text", "text": "a cat"}, {"type": "text", "text": "on a roof"}],
    },
]


@pytest.mark.defect("I5")
async def test_messages_of_openai_style_programs_are_stored_as_they_are() -> None:
    async with aforesaid.connect(":memory:") as memory:
        ann = memory.user("ann")
        await ann.add_many(SENT_TO_A_MODEL)
        for message in SENT_TO_A_MODEL[:2]:
            await ann.add(**message)
        await ann.add_many([NewMessage("user", content="hello")])
        found = await ann.history()
        assert [each.text for each in found] == [
            "What is on this picture?", "This one", "", "a cat\non a roof",
            "What is on this picture?", "This one", "hello",
        ]  # fmt: skip
        assert [part.url for part in found[1].parts] == [None, "https://example.org/cat.png"]
        assert found[1].parts == found[5].parts
        assert found[2].tool_calls[0].name == "look"
        assert (await ann.add_many([each.as_openai() for each in found[:4]])).stored == 4


@pytest.mark.defect("I5")
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"text": "a", "content": "b"}, "both text and content"),
        (
            {"content": [{"type": "image_url", "image_url": "u"}], "parts": [{"type": "text", "text": "t"}]},
            "both parts",
        ),
        ({"content": [{"type": "video"}]}, "give others as `parts`"),
        ({"content": [{"type": "image_url", "image_url": "data:image/png;base64,?"}]}, "must be base64"),
        ({"content": "a", "refusal": "no"}, "unknown key 'refusal'"),
    ],
)
async def test_content_that_cannot_be_taken_is_named(given: dict[str, Any], problem: str) -> None:
    async with aforesaid.connect(":memory:") as memory:
        with pytest.raises(InvalidInput, match=problem):
            await memory.user("ann").add_many([{"role": "user", **given}])
        assert await memory.user("ann").history() == []


@pytest.mark.defect("I5")
async def test_an_image_inside_its_address_is_attached_by_add() -> None:
    async with aforesaid.connect(":memory:") as memory:
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
        stored = (await memory.user("ann").add("user", content=[image])).message
        assert [(part.type, part.media_type, part.size) for part in stored.parts] == [("image", "image/png", 2)]
