"""Turns of a request: what counts as one, and which are found in the log by their text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.domain.message import Message
from aforesaid.server.proxy.conversations import Turn, align, turns_of
from making import NOON


def log(*turns: str) -> list[Message]:
    """A log of turns such as `u:hello`."""
    return [
        Message(n, f"#{n}", "default", "ann", "direct:ann", "s-1", *_role(turn), NOON, NOON, True, None, b"")  # type: ignore[arg-type]
        for n, turn in enumerate(turns, 1)
    ]


def _role(turn: str) -> tuple[str, str, None, str]:
    kind, _, text = turn.partition(":")
    role = {"u": "user", "a": "assistant"}[kind]
    return role, role, None, text


def sent(*turns: str) -> list[Turn]:
    return [Turn(_role(turn)[0], _role(turn)[3]) for turn in turns]  # type: ignore[arg-type]


def new(client: Sequence[Turn], stored: Sequence[Message], *, whole: bool = True) -> list[str]:
    found = align(client, stored, whole=whole)
    return [f"{turn.role[0]}:{turn.text}" for turn in (*client[: found.first], *client[found.end :])]


@pytest.mark.parametrize(
    ("stored", "client", "expected"),
    [
        ([], ["u:hi"], ["u:hi"]),
        (["u:hi", "a:hello"], ["u:hi", "a:hello", "u:how are you?"], ["u:how are you?"]),
        (["u:1", "a:2", "u:3", "a:4"], ["u:3", "a:4", "u:5"], ["u:5"]),
        (["u:1", "a:2"], ["u:next"], ["u:next"]),
        (["u:1", "a:2", "u:try"], ["u:1", "a:2", "u:try"], []),
        (["u:try"], ["u:try"], []),
        (["u:hi", "a:hello"], ["u:hi"], ["u:hi"]),
        (["u:1", "a:2", "u:3", "a:4"], ["u:1", "a:2", "u:edited"], ["u:edited"]),
        (["u:1", "a:Hello th"], ["u:1", "u:3"], ["u:3"]),
        (["u:1", "a:Hello there, Ann"], ["u:1", "a:Hello th", "u:3"], ["u:3"]),
        (["u:1", "a:Hello th"], ["u:1", "a:Hello there, Ann", "u:3"], ["u:3"]),
        (["u:a  b", "a:c\nd"], ["u:a b", "a:c d", "u:e"], ["u:e"]),
        ([], ["u:1", "a:2", "u:3"], ["u:1", "a:2", "u:3"]),
        (["u:3"], ["u:1", "a:2", "u:3"], ["u:1", "a:2", "u:3"]),
        (["u:ok", "a:ok", "u:ok", "a:ok"], ["u:ok", "a:ok", "u:ok", "a:ok", "u:ok"], ["u:ok"]),
        (["u:1", "a:2", "u:3", "a:4"], ["u:1", "a:2", "u:3"], []),
        (["u:0", "u:1", "a:2"], ["u:0", "u:1"], []),
        (["u:1", "a:2", "u:3", "a:4"], ["u:so far", "a:yes", "u:3", "a:4", "u:5"], ["u:so far", "a:yes", "u:5"]),
        (["u:1", "a:2", "u:3"], ["u:so far", "u:3", "u:4"], ["u:so far", "u:3", "u:4"]),
    ],
    ids=str,
)
def test_what_was_sent_before_is_not_new(stored: list[str], client: list[str], expected: list[str]) -> None:
    assert new(sent(*client), log(*stored)) == expected


def test_of_a_conversation_longer_than_what_is_compared_the_end_counts() -> None:
    turns = [f"{'ua'[n % 2]}:{n}" for n in range(20)]
    assert new(sent(*turns, "u:new"), log(*turns)[-6:], whole=False) == ["u:new"]


words = st.lists(st.sampled_from(["a", "b", "c"]), max_size=8)


@given(words, st.integers(0, 8), st.lists(st.sampled_from("xyz"), min_size=1, max_size=3))
def test_whatever_end_of_the_log_a_client_resends_only_the_rest_is_stored(
    said: list[str], kept: int, fresh: list[str]
) -> None:
    history = [f"{'ua'[n % 2]}:{word}{n}" for n, word in enumerate(said)]
    client = [*history[len(history) - min(kept, len(history)) :], *(f"u:{word}!" for word in fresh)]
    assert new(sent(*client), log(*history)) == [f"u:{word}!" for word in fresh]


def test_only_what_was_said_is_a_turn() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    messages: list[object] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is this?"}, image]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
        {"role": "tool", "tool_call_id": "1", "content": "a cat"},
        {"role": "assistant", "content": "A cat.\0\ud800"},
        {"role": "user", "content": ""},
        "nonsense",
        {"role": "user", "content": 7},
    ]
    assert turns_of(messages, 1_000) == [("user", "What is this?\n[image]"), ("assistant", "A cat.?")]
    assert turns_of([{"role": "user", "content": "ä" * 10}], 7) == [("user", "äää")]
