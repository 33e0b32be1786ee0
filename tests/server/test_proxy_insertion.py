"""What the proxy adds fits, stands where prompt caches need it, and leaves the client's messages as they are."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any

import pytest

from aforesaid.context.context import Context, Item
from aforesaid.models.tokens import counter_for
from aforesaid.server.proxy.insertion import ClientHas, MemoryText, insert, insert_in_question, write
from server.talking import Talk, ask, eventually, talking

BEGIN = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
COUNTER = counter_for(None)


def turn(number: int) -> Item:
    return Item(
        "recent",
        f"message #{number}",
        f"This is turn {number}, with <a tag> in it.",
        12,
        place=number,
        at=BEGIN + timedelta(minutes=number),
        shows=frozenset({number}),
    )


def context(*items: Item) -> Context:
    return Context([], str, 0, 10_000, (), items, (), "x", "ann")


def fitted(made: Context, known: frozenset[int], most: int) -> tuple[str, int]:
    text = write(made, ClientHas(known), COUNTER, most)
    return text.for_question, text.tokens


MEMORY = Item("memories", "memory 1", "[FACT] Ann has a dog.", 8)


def test_all_of_it_where_there_is_room() -> None:
    text, tokens = fitted(context(MEMORY, turn(1), turn(2)), frozenset(), 10_000)
    assert "Ann has a dog" in text
    assert text.index("turn 1,") < text.index("turn 2,")
    assert "&lt;a tag&gt;" in text
    assert tokens == COUNTER.count(text)


def test_what_the_client_sent_is_left_out() -> None:
    text, _ = fitted(context(turn(1), turn(2)), frozenset({2}), 10_000)
    assert "turn 1," in text
    assert "turn 2," not in text
    assert fitted(context(turn(1)), frozenset({1}), 10_000) == ("", 0)


@pytest.mark.parametrize("less", [1, 30, 100, 250])
def test_the_oldest_goes_first_and_lines_stay_whole(less: int) -> None:
    turns = [turn(number) for number in range(10)]
    whole, tokens = fitted(context(MEMORY, *turns), frozenset(), 10_000)
    text, fewer = fitted(context(MEMORY, *turns), frozenset(), tokens - less)
    assert fewer == COUNTER.count(text) <= tokens - less
    assert "Ann has a dog" in text
    kept = [number for number in range(10) if f"turn {number}," in text]
    assert kept == list(range(10 - len(kept), 10))
    assert kept
    assert set(text.splitlines()) < set(whole.splitlines()), "no line was cut"
    assert fewer > tokens - less - 2 * (tokens // 10), "no more than had to go went"


def test_messages_of_other_conversations_are_marked_as_such() -> None:
    made = write(context(turn(1), turn(2)), ClientHas(here=frozenset({2})), COUNTER, 10_000).for_question
    assert made.index("in other conversations") < made.index("turn 1,")
    assert made.index("turn 1,") < made.index("in this conversation") < made.index("turn 2,")


def test_the_question_is_not_repeated() -> None:
    client = ClientHas(question="This is turn 1, with <a tag> in it.")
    assert write(context(turn(1)), client, COUNTER, 10_000) == ("", "", 0, (), ())


def portrait(*lines: str) -> list[Item]:
    return [Item("portrait", f"portrait, line {number}", line, 8) for number, line in enumerate(lines)]


@pytest.mark.defect("P9")
def test_the_stable_part_stays_as_it_was_while_it_holds() -> None:
    before = write(context(*portrait("Ann has a dog."), MEMORY), ClientHas(), COUNTER, 10_000)
    assert "Ann has a dog." in before.stable
    more = context(*portrait("Ann is tall.", "Ann has a dog."))
    after = write(more, ClientHas(), COUNTER, 10_000, before.front)
    assert after.stable == before.stable
    assert "Ann is tall." in after.for_question
    less = context(*portrait("Ann is tall."))
    anew = write(less, ClientHas(), COUNTER, 10_000, before.front)
    assert "Ann has a dog." not in anew.stable, "what was forgotten is gone at once"
    assert "Ann is tall." in anew.stable


@pytest.mark.defect("P9")
def test_what_is_stable_goes_first_and_what_is_for_the_question_before_it() -> None:
    user, reply = {"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}
    memory = MemoryText("S", "Q", 2)
    assert insert([user, reply, user], memory) == [
        {"role": "system", "content": "S"},
        user,
        reply,
        {"role": "system", "content": "Q"},
        user,
    ]
    system = {"role": "system", "content": "P"}
    assert insert([system, user], memory) == [
        {"role": "system", "content": "P\n\nS"},
        {"role": "system", "content": "Q"},
        user,
    ]
    question = {"role": "user", "content": "Q\n\nhi"}
    assert insert_in_question([system, user, reply, user], memory) == [
        {"role": "system", "content": "P\n\nS"},
        user,
        reply,
        question,
    ]
    assert insert_in_question([user], memory) == [{"role": "user", "content": "S\n\nQ\n\nhi"}]
    parts = [{"type": "text", "text": "P"}]
    made = insert([{"role": "developer", "content": parts}, user], memory)
    assert made[0] == {"role": "developer", "content": [*parts, {"type": "text", "text": "S"}]}
    assert made[1] == {"role": "developer", "content": "Q"}
    assert parts == [{"type": "text", "text": "P"}], "what the client sent is not touched"


@pytest.mark.parametrize("content", [5, 0, True, {}, {"a": 1}])
def test_content_of_no_known_kind_is_left_for_the_provider_to_refuse(content: object) -> None:
    messages = [{"role": "system", "content": content}, {"role": "user", "content": content}]
    memory = MemoryText("stable", "for the question", 4)
    assert [each for each in insert(messages, memory) if each in messages] == messages
    assert insert_in_question(messages, memory) == messages


def test_what_is_known_is_cut_when_nothing_else_is_left() -> None:
    facts = [Item("memories", f"memory {number}", f"[FACT] Number {number}.", 8) for number in range(200)]
    text, tokens = fitted(context(*facts, turn(1)), frozenset(), 300)
    assert tokens == COUNTER.count(text) <= 300
    assert "Number 0." in text
    assert "turn 1," not in text


SYSTEM = {"role": "system", "content": "You are a patient teacher. " + "Explain things step by step. " * 10}
SUBJECTS = ("garden", "violin", "train to Lisbon", "parrot", "dentist", "island", "soup", "marathon", "novel", "roof")


def common_prefix(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> int:
    pairs = zip(json.dumps(one), json.dumps(other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def teach(talk: Talk, user: str = "ann") -> None:
    """Have something known of a person before the chat begins."""
    person = talk.server.served.memory.user(user)
    for subject in SUBJECTS:
        talk.server.run(person.add("user", f"I love my {subject} and I think of the {subject} every day."))
    talk.server.run(person.remember("prefers answers in metric units"))
    talk.server.run(talk.server.served.memory.upkeep())


@pytest.mark.defect("P9")
def test_at_least_80_percent_of_the_unchanged_history_stays_a_common_prefix() -> None:
    with talking(lambda asked: f"Let me explain the {asked.asked.split()[-1]} " * 20) as talk, talk.client() as client:
        teach(talk)
        messages: list[dict[str, Any]] = []
        shares = []
        for number in range(12):
            subject = SUBJECTS[number % len(SUBJECTS)]
            # It tells nothing new: what is learned meanwhile changes the description that stands before the history.
            text = f"What about my {subject} and the music of Orchestra{number}?"
            messages.append({"role": "user", "content": text})
            messages.append({"role": "assistant", "content": ask(client, SYSTEM, *messages)})
            eventually(lambda: not talk.server.served._finishing)
            if number < 3:
                continue
            before, after = (request.messages for request in talk.model.requests[-2:])
            assert any(each["role"] == "system" for each in after[1:]), "something is remembered for the question"
            history = len(json.dumps([SYSTEM, *messages[:-4]]))
            shares.append(common_prefix(before, after) / history)
    assert min(shares) >= 0.8, shares
