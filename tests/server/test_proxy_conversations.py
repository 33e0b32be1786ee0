"""Chats side by side, answers written anew and questions edited: through the official client, each turn stored once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from aforesaid.testing import Request
from server.talking import Chat, Talk, ask, log_of, talking


def chat_turn(chat: Chat, name: str, number: int) -> None:
    chat.say(f"{name} says line {number}")


@pytest.mark.defect("P2")
@pytest.mark.parametrize(("requests", "messages"), [(40, 80), (80, 160)])
def test_two_chats_that_alternate_store_one_question_and_one_answer_per_request(
    talk: Talk, request: pytest.FixtureRequest, requests: int, messages: int
) -> None:
    """40 requests are two chats of 40 messages each; 80 requests are two chats of 40 questions and 40 answers each."""
    with talk.client() as client:
        one, other = Chat(client), Chat(client)
        for number in range(requests // 2):
            chat_turn(one, "one", number)
            chat_turn(other, "other", number)
    stored = log_of(talk, request)
    assert Counter(stored) == Counter([*one.lines, *other.lines])
    assert len(stored) == len(set(stored)) == messages


@pytest.mark.defect("P2")
def test_each_chat_has_a_thread_of_its_own(talk: Talk, request: pytest.FixtureRequest) -> None:
    with talk.client() as client:
        one, other = Chat(client), Chat(client)
        for number in range(3):
            chat_turn(one, "one", number)
            chat_turn(other, "other", number)
    threads: dict[str, list[str]] = {}
    for message in talk.stored(space=request.node.name[:200]):
        threads.setdefault(message.thread, []).append(f"{message.role}: {message.text}")
    assert sorted(threads.values()) == sorted([one.lines, other.lines])


@pytest.mark.defect("P2")
def test_a_chat_that_rests_while_another_goes_on_is_recognised(talk: Talk, request: pytest.FixtureRequest) -> None:
    with talk.client() as client:
        one, other = Chat(client), Chat(client)
        for number in range(5):
            chat_turn(one, "one", number)
        chat_turn(other, "other", 0)
        for number in range(5, 35):
            chat_turn(one, "one", number)
    assert len(log_of(talk, request)) == 72


@pytest.mark.defect("P2")
def test_chats_are_recognised_after_a_restart_and_by_another_server(tmp_path: Path) -> None:
    place = tmp_path / "memory.db"
    with talking(location=place) as first, first.client() as client:
        chat = Chat(client)
        chat_turn(chat, "one", 0)
        chat_turn(chat, "one", 1)
        kept = chat.messages
        first.log()
        with talking(location=place) as second, second.client() as another:
            chat.client = another
            chat_turn(chat, "one", 2)
            assert second.log() == chat.lines
    with talking(location=place) as third, third.client() as client:
        again = Chat(client)
        again.messages = kept
        chat_turn(again, "one", 3)
        assert third.log() == again.lines


@pytest.mark.defect("P2")
@pytest.mark.parametrize("before", [0, 1, 3])
def test_an_answer_written_three_times_anew_leaves_one_question(
    talk: Talk, request: pytest.FixtureRequest, before: int
) -> None:
    answers = iter(range(100))
    talk.model.say(lambda _: f"Answer {next(answers)}.")
    with talk.client() as client:
        chat = Chat(client)
        for number in range(before):
            chat_turn(chat, "one", number)
        chat.say("Tell me a joke.")
        for _ in range(3):
            latest = chat.regenerate()
    questions = [line for line in log_of(talk, request) if line == "user: Tell me a joke."]
    assert questions == ["user: Tell me a joke."]
    assert json.dumps(talk.last).count("Tell me a joke.") == 1, "nothing of it is shown to the model again"
    assert "Answer " not in json.dumps([each for each in talk.last if each["role"] == "system"])
    assert log_of(talk, request) == [*chat.lines[:-1], f"assistant: {latest}"], "the newest answer counts"
    assert len(talk.versions(request)) == 2 * before + 5, "the older answers stay in the log"


@pytest.mark.defect("P2")
def test_an_edited_question_replaces_the_one_before_and_its_answer(talk: Talk, request: pytest.FixtureRequest) -> None:
    with talk.client() as client:
        chat = Chat(client)
        chat_turn(chat, "one", 0)
        chat.say("What is the capitol of France?")
        chat.edit("What is the capital of France?")
        assert log_of(talk, request) == chat.lines
        chat.say("And of Spain?")
        chat.edit("And of Portugal?")
        chat.edit("And of Spain?")
    assert log_of(talk, request) == chat.lines
    assert "user: What is the capitol of France?" in talk.versions(request)


@pytest.mark.defect("P2")
def test_an_answer_that_comes_again_counts_again(talk: Talk, request: pytest.FixtureRequest) -> None:
    answers = iter(["Heads.", "Tails.", "Heads.", "Heads."])
    talk.model.say(lambda _: next(answers))
    with talk.client() as client:
        chat = Chat(client)
        chat.say("Toss a coin.")
        for _ in range(3):
            chat.regenerate()
            assert log_of(talk, request) == chat.lines


@pytest.mark.defect("P2")
def test_a_changing_system_prompt_makes_no_new_chat(talk: Talk, request: pytest.FixtureRequest) -> None:
    with talk.client() as client:
        chat = Chat(client)
        for number in range(3):
            chat.system = f"It is {number} o'clock."
            chat_turn(chat, "one", number)
    assert log_of(talk, request) == chat.lines


@pytest.mark.defect("P2")
@pytest.mark.parametrize("window", [3, 5])
def test_a_client_that_sends_only_the_last_messages_doubles_nothing(
    talk: Talk, request: pytest.FixtureRequest, window: int
) -> None:
    with talk.client() as client:
        chat, other = Chat(client), Chat(client)
        for number in range(8):
            chat.messages.append({"role": "user", "content": f"line {number}"})
            chat.answer(last=window)
            chat_turn(other, "other", number)
    assert Counter(log_of(talk, request)) == Counter([*chat.lines, *other.lines])


@pytest.mark.defect("P2")
def test_a_client_that_sums_up_its_old_messages_doubles_nothing(talk: Talk, request: pytest.FixtureRequest) -> None:
    with talk.client() as client:
        chat = Chat(client)
        for number in range(4):
            chat_turn(chat, "one", number)
        said = chat.lines
        summary = [
            {"role": "user", "content": "So far: one said three lines."},
            {"role": "assistant", "content": "I see."},
        ]
        chat.messages = [*summary, *chat.messages[-4:]]
        chat_turn(chat, "one", 4)
        chat_turn(chat, "one", 5)
    counted = Counter(log_of(talk, request))
    assert counted == Counter([*said, *chat.lines[-4:], *chat.lines[:2]])


def test_clients_that_send_one_message_at_a_time_lose_none(talk: Talk, request: pytest.FixtureRequest) -> None:
    said = ["hello", "ok", "and then?", "ok"]
    with talk.client() as client:
        for text in said:
            ask(client, text)
    assert log_of(talk, request)[::2] == [f"user: {text}" for text in said]
    with talk.client(**{"X-Aforesaid-Thread": "work"}) as client:
        for text in said:
            ask(client, text)
    assert log_of(talk, request, thread="work")[::2] == [f"user: {text}" for text in said]


def test_a_question_that_was_tried_again_after_a_failure_is_stored_once(
    talk: Talk, request: pytest.FixtureRequest
) -> None:
    with talk.client() as client:
        chat = Chat(client)
        chat_turn(chat, "one", 0)
        talk.model.stop()
        with pytest.raises(Exception, match="cannot be reached"):
            chat_turn(chat, "one", 1)
        talk.model.start()
        chat.answer()
    assert log_of(talk, request) == chat.lines


def test_two_chats_with_the_same_first_question_are_told_apart_by_their_answers(
    talk: Talk, request: pytest.FixtureRequest
) -> None:
    answers = iter(["Good morning.", "First.", "Good evening.", "Second.", "Third."])
    talk.model.say(lambda _: next(answers))
    with talk.client() as client:
        one, other = Chat(client), Chat(client)
        one.say("hi")
        one.say("and now?")
        other.say("hi")
        one.say("go on")
        other.say("and now?")
    assert Counter(log_of(talk, request)) == Counter([*one.lines, *other.lines])


EXAMPLES = [
    pytest.param([{"role": "user", "content": "Today is Monday."}], id="a preamble"),
    pytest.param(
        [{"role": "user", "content": "Translate: Hund"}, {"role": "assistant", "content": "dog"}], id="an example"
    ),
]


@pytest.mark.parametrize("first", EXAMPLES)
def test_chats_that_begin_with_the_same_messages_of_a_program_are_different_chats(
    talk: Talk, request: pytest.FixtureRequest, first: list[dict[str, str]]
) -> None:
    with talk.client() as client:
        chats = []
        for name in ("one", "other", "third"):
            chats.append(chat := Chat(client))
            chat.messages = list(first)
            chat_turn(chat, name, 0)
            chat_turn(chat, name, 1)
        chats[0].edit("one says something else")
        chats[1].regenerate()
        chat_turn(chats[0], "one", 2)
    threads: dict[str, list[str]] = {}
    for message in talk.stored(space=request.node.name[:200]):
        threads.setdefault(message.thread, []).append(f"{message.role}: {message.text}")
    assert sorted(threads.values()) == sorted(chat.lines for chat in chats)


def test_a_preamble_in_a_named_thread_replaces_no_question(talk: Talk, request: pytest.FixtureRequest) -> None:
    with talk.client(**{"X-Aforesaid-Thread": "work"}) as client:
        for number in range(3):
            ask(client, "Today is Monday.", f"question {number}")
    asked = [line for line in log_of(talk, request, thread="work") if "user: question" in line]
    assert asked == ["user: question 0", "user: question 1", "user: question 2"]


@pytest.mark.parametrize("changed", ["You said: one", "line 0", "You said: one says line 0\n\nSources: none"])
def test_a_question_after_an_answer_that_the_client_cut_or_added_to_can_be_edited(
    talk: Talk, request: pytest.FixtureRequest, changed: str
) -> None:
    talk.model.say(lambda asked: f"You said: {asked.question}")
    with talk.client() as client:
        chat = Chat(client)
        chat_turn(chat, "one", 0)
        chat.messages[-1]["content"] = changed
        chat.say("What is the capitol?")
        chat.edit("What is the capital?")
    assert [line for line in log_of(talk, request) if "user:" in line] == [
        "user: one says line 0",
        "user: What is the capital?",
    ]


def test_what_is_said_in_another_chat_is_marked_as_such(talk: Talk) -> None:
    with talk.client() as client:
        Chat(client).say("Is the train late again?")
        Chat(client).say("What is new?")
    memory = next(each["content"] for each in talk.last if each["role"] == "system")
    assert "in other conversations" in memory
    assert "in this conversation" not in memory


def test_the_answer_to_a_tools_result_is_a_further_answer(talk: Talk, request: pytest.FixtureRequest) -> None:
    def script(asked: Request) -> str:
        return "It is 21 degrees." if asked.messages[-1]["role"] == "tool" else "Let me look."

    talk.model.say(script)
    question = {"role": "user", "content": "How warm is it?"}
    called = {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
    }
    result = {"role": "tool", "tool_call_id": "1", "content": "21"}
    with talk.client() as client:
        ask(client, question)
        ask(client, question, called, result)
        ask(client, question, called, result, {"role": "assistant", "content": "It is 21 degrees."}, "Thanks.")
    assert log_of(talk, request)[:4] == [
        "user: How warm is it?",
        "assistant: Let me look.",
        "assistant: It is 21 degrees.",
        "user: Thanks.",
    ]
