"""What a message has beside its text: what is accepted, how it is written, and how providers get it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import aforesaid
from aforesaid import Part, ToolCall
from aforesaid.domain.details import MOST_PARTS, canonical_details, details_text, read_details
from aforesaid.domain.message import Message, draft, message_hash, stored_message
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, TooLarge

ANN = Scope.of("ann")
CALL = ToolCall("c1", "weather", '{"city": "Berlin"}')
OPENAI_CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Berlin"}'}}

itself: dict[str, Any] = {}
itself["again"] = itself
bomb: list[Any] = []
for _ in range(40):
    bomb = [bomb, bomb]


def message(role: str = "user", text: str = "", name: str | None = None, **details: Any) -> Message:  # noqa: ANN401
    new = draft(ANN, role, text, name=name, **details)
    return stored_message(new, 1, "s-1", new.hash)


def test_a_plain_message_has_no_details_and_the_hash_that_it_always_had() -> None:
    plain = message(text="hello")
    assert plain.details is None
    assert (plain.parts, plain.tool_calls, plain.tool_call_id, plain.metadata) == ((), (), None, {})
    assert (plain.reply_to, plain.kind, plain.language, plain.taken_back) == (None, None, None, False)
    assert message_hash("s", "u", "t", None, "user", "u", None, "hi", 1, 2).hex() == "be143553a764f4e6e0d6e479125e9255"


def test_details_are_part_of_the_hash() -> None:
    names = ("s", "u", "t", None, "user", "u", None, "hi", 1, 2)
    hashes = {message_hash(*names, details) for details in (None, "a", "b")}
    assert len(hashes) == 3


def test_details_are_written_alike_however_they_were_given() -> None:
    given = details_text(
        parts=[{"type": "image", "url": "https://x/a.png", "text": "a cat"}],
        tool_calls=[OPENAI_CALL],
        metadata={"b": (1, 2), "a": {"é": None}},
        reply_to=7,
    )
    values = details_text(
        reply_to="7",
        metadata={"a": {"é": None}, "b": [1, 2]},
        tool_calls=(CALL,),
        parts=(Part("image", "a cat", "https://x/a.png"),),
    )
    assert given == values
    assert given is not None
    found = read_details(given)
    assert found.parts == (Part("image", "a cat", "https://x/a.png"),)
    assert found.tool_calls == (CALL,)
    assert found.metadata == {"a": {"é": None}, "b": [1, 2]}
    assert found.reply_to == "7"


def test_details_come_back_from_a_file_as_they_were() -> None:
    text = details_text(metadata={"n": 1.5, "big": 2**62, "nested": [[{"x": False}]]}, kind="voice", language="de")
    assert text is not None
    assert canonical_details(json.loads(text)) == text
    assert canonical_details({"taken_back": True}) == '{"taken_back":true}'
    wrong: Any
    for wrong in ({}, [], "x", {"unknown": 1}, {"taken_back": True, "kind": "x"}):
        with pytest.raises(InvalidInput):
            canonical_details(wrong)


def test_without_a_text_the_text_of_the_parts_is_what_is_searched() -> None:
    parts = [Part("text", "Look!"), Part("image", "a cat on a roof"), Part("file", name="a.pdf")]
    assert message(parts=parts).text == "Look!\na cat on a roof"
    assert message(text="my own words", parts=parts).text == "my own words"
    assert message(parts=[Part("image")]).text == ""
    assert message("assistant", tool_calls=[CALL]).text == ""
    assert message("tool", tool_call_id="c1").text == ""


@pytest.mark.parametrize("details", [{}, {"metadata": {"a": 1}}, {"reply_to": "x"}, {"kind": "voice"}])
def test_a_message_with_nothing_to_show_is_refused(details: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match="the text is empty"):
        draft(ANN, "user", "", **details)


@pytest.mark.parametrize(
    ("details", "field"),
    [
        ({"parts": "text"}, "parts"),
        ({"parts": None}, "parts"),
        ({"parts": {"type": "text"}}, "parts"),
        ({"parts": [1]}, "parts"),
        ({"parts": [{}]}, "parts"),
        ({"parts": [{"type": "video"}]}, "parts"),
        ({"parts": [{"type": ["text"]}]}, "parts"),
        ({"parts": [{"type": "text"}]}, "parts"),
        ({"parts": [{"type": "text", "text": 7}]}, "parts"),
        ({"parts": [{"type": "text", "text": "a\0b"}]}, "parts"),
        ({"parts": [{"type": "text", "text": "\ud800"}]}, "parts"),
        ({"parts": [{"type": "image", "hash": "abc"}]}, "parts"),
        ({"parts": [{"type": "image", "size": -1}]}, "parts"),
        ({"parts": [{"type": "image", "size": True}]}, "parts"),
        ({"parts": [{"type": "image", "colour": "red"}]}, "parts"),
        ({"parts": [{"type": "image"}] * 10_000}, "parts"),
        ({"parts": ({"type": "text", "text": "x" * 40} for _ in range(MOST_PARTS + 1))}, "parts"),
        ({"parts": [{"type": "text", "text": "x" * 1_100_000}]}, "parts"),
        ({"tool_calls": [{"id": "a", "name": "b"}]}, "tool_calls"),
        ({"tool_calls": [{"id": "", "name": "b", "arguments": ""}]}, "tool_calls"),
        ({"tool_calls": [{"id": 5, "name": "b", "arguments": ""}]}, "tool_calls"),
        ({"tool_calls": [{"id": "a", "name": "b", "arguments": {}}]}, "tool_calls"),
        ({"tool_calls": [{"id": "a" * 300, "name": "b", "arguments": ""}]}, "tool_calls"),
        ({"tool_call_id": ""}, "tool_call_id"),
        ({"tool_call_id": 1.5}, "tool_call_id"),
        ({"reply_to": "a\nb"}, "reply_to"),
        ({"kind": b"voice"}, "kind"),
        ({"language": "x" * 256}, "language"),
        ({"metadata": [1]}, "metadata"),
        ({"metadata": {1: "a"}}, "metadata"),
        ({"metadata": {"a": {None: 1}}}, "metadata"),
        ({"metadata": {"a": float("nan")}}, "metadata"),
        ({"metadata": {"a": [float("inf")]}}, "metadata"),
        ({"metadata": {"a": b"bytes"}}, "metadata"),
        ({"metadata": {"a": {1, 2}}}, "metadata"),
        ({"metadata": {"a": object()}}, "metadata"),
        ({"metadata": {"a": "\ud800"}}, "metadata"),
        ({"metadata": {"\0": 1}}, "metadata"),
        ({"metadata": {"a": 10**5000}}, "metadata"),
        ({"metadata": {"a": "x" * 1_100_000}}, "metadata"),
        ({"metadata": itself}, "metadata"),
        ({"metadata": {"a": bomb}}, "metadata"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_named(details: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        draft(ANN, "user", "hello", **details)
    assert refused.value.field == field
    assert len(str(refused.value)) < 400


def test_details_may_be_longer_than_the_text() -> None:
    assert draft(ANN, "user", "hello", metadata={"a": "x" * 70_000}).details is not None
    assert draft(ANN, "user", "x" * 2_000_000, metadata={"a": "x" * 1_100_000}, limit=2_000_000).details is not None


def test_a_text_that_is_made_of_parts_has_the_limit_of_texts() -> None:
    with pytest.raises(TooLarge, match="at most 65,536") as refused:
        draft(ANN, "user", "", parts=[Part("text", "x" * 70_000)])
    assert refused.value.field == "parts"


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("Ann", "Ann"),
        ("Zoë B.", "Zoe_B"),
        ("a b\\c/<|d|>", "a_b_c_d"),
        ("Аня", None),
        ("🐢", None),
        ("x" * 99, "x" * 64),
    ],
)
def test_openai_gets_a_name_that_it_accepts(name: str, sent: str | None) -> None:
    assert message(text="hello", name=name).as_openai().get("name") == sent


def test_openai_gets_a_plain_message_as_a_text() -> None:
    assert message(text="hello", name="Ann").as_openai() == {"role": "user", "content": "hello", "name": "Ann"}


def test_openai_gets_tool_calls_and_results() -> None:
    called = message("assistant", tool_calls=[CALL]).as_openai()
    assert called == {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]}
    said = message("assistant", "One moment.", tool_calls=[CALL]).as_openai()
    assert said["content"] == "One moment."
    result = message("tool", "12 degrees", tool_call_id="c1").as_openai()
    assert result == {"role": "tool", "content": "12 degrees", "tool_call_id": "c1"}


def test_openai_gets_parts_that_it_understands_and_words_for_the_others() -> None:
    sound = "data:audio/mpeg;base64,AAAA"
    paper = "data:application/pdf;base64,BBBB"
    parts = [
        Part("image", "a cat", "https://x/a.png"),
        Part("image", "a dog", hash="0" * 64),
        Part("audio", "good morning", sound),
        Part("audio", "good night", "https://x/a.ogg"),
        Part("file", url=paper, name="a.pdf"),
        Part("file", name="b.pdf"),
        Part("file"),
    ]
    assert message(text="Look!", parts=parts).as_openai()["content"] == [
        {"type": "text", "text": "Look!"},
        {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
        {"type": "text", "text": "[image: a dog]"},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        {"type": "text", "text": "[audio: good night]"},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": paper}},
        {"type": "text", "text": "[file: b.pdf]"},
        {"type": "text", "text": "[file]"},
    ]
    both = message(parts=[Part("text", "Look!"), parts[0]]).as_openai()["content"]
    assert both == [{"type": "text", "text": "Look!"}, {"type": "image_url", "image_url": {"url": "https://x/a.png"}}]


async def test_the_front_door_refuses_wrong_details_and_stores_nothing() -> None:
    async with aforesaid.connect(":memory:") as memory:
        ann = memory.user("ann")
        for wrong in ({"parts": 5}, {"parts": "x"}, {"metadata": "x"}, {"kind": 5}, {"tool_calls": [5]}):
            with pytest.raises(InvalidInput) as refused:
                await ann.add("user", "hello", **wrong)
            assert refused.value.field in wrong
        assert await ann.history() == []
