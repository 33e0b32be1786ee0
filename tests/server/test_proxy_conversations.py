"""Chats side by side, answers written anew and questions edited: through the official client, each turn stored once."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest
from openai import OpenAI

from aforesaid.domain.scope import chat_thread
from aforesaid.server.proxy.conversations import Turn
from aforesaid.testing import Request
from server.talking import Chat, Talk, ask, log_of, talking

CHAT_ID = "X-OpenWebUI-Chat-Id"


def threads_of(talk: Talk, request: pytest.FixtureRequest) -> list[list[str]]:
    """The chats of the test's user, each as the lines that count in it."""
    threads: dict[str, list[str]] = {}
    for message in talk.stored(space=request.node.name[:200]):
        threads.setdefault(message.thread, []).append(f"{message.role}: {message.text}")
    return sorted(threads.values())


def found(talk: Talk, request: pytest.FixtureRequest, words: str) -> list[str]:
    person = talk.server.served.memory.user("ann", space=request.node.name[:200])
    return [hit.text for hit in talk.server.run(person.search(words, limit=20))]


def portrait(talk: Talk, request: pytest.FixtureRequest) -> str:
    talk.log()
    talk.server.run(talk.server.served.memory.upkeep())
    person = talk.server.served.memory.user("ann", space=request.node.name[:200])
    return talk.server.run(person.portrait()) or ""


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


@pytest.mark.defect("S3")
@pytest.mark.req("G16")
@pytest.mark.parametrize("greeting", [["Good day.", "Good evening."], ["Good day.", "Good day."]])
def test_two_chats_that_begin_alike_keep_all_that_was_said(
    talk: Talk, request: pytest.FixtureRequest, greeting: list[str]
) -> None:
    answers = iter([*greeting, "A fine city.", "Gladly.", "Lovely.", "Done."])
    talk.model.say(lambda _: next(answers))
    with talk.client() as client:
        one, other = Chat(client), Chat(client)
        one.say("Hello")
        other.say("Hello")
        one.say("I live in Rome with my wife Carla.")
        other.say("I need help with Python.")
        one.say("What shall we visit?")
        other.say("Write a loop.")
    threads = threads_of(talk, request)
    assert one.lines in threads
    assert other.lines in threads
    assert "I live in Rome with my wife Carla." in found(talk, request, "Rome Carla")
    assert "Rome" in portrait(talk, request)


class OtherChat(Chat):
    """A chat through Anthropic's Messages, or Ollama's chat."""

    def __init__(self, client: OpenAI, path: str) -> None:
        super().__init__(client)
        self.path = path

    def answer(self, last: int | None = None) -> str:
        assert last is None
        body = {"model": "gpt-4o-mini", "max_tokens": 100, "stream": False, "messages": self.messages}
        address = str(self.client.base_url).removesuffix("/v1/") + self.path
        headers = {"X-Aforesaid-User": "ann"}
        if self.path == "/v1/messages":
            headers["anthropic-version"] = "2023-06-01"
        answer = self.client.post(address, body=body, cast_to=dict[str, Any], options={"headers": headers})
        heard = str(answer["content"][0]["text"] if "content" in answer else answer["message"]["content"])
        self.messages.append({"role": "assistant", "content": heard})
        return heard


@pytest.mark.defect("S4")
@pytest.mark.req("G16")
@pytest.mark.parametrize("headers", [{}, {CHAT_ID: "trip"}], ids=["without a chat id", "with a chat id"])
@pytest.mark.parametrize("protocol", ["/v1/chat/completions", "/v1/messages", "/api/chat"])
def test_a_branch_that_is_returned_to_counts_again(
    talk: Talk, request: pytest.FixtureRequest, headers: dict[str, str], protocol: str
) -> None:
    with talk.client(**headers) as client:
        chat = Chat(client) if protocol == "/v1/chat/completions" else OtherChat(client, protocol)
        chat.say("Guess where I live now.")
        chat.say("I moved to Spain.")
        chat.say("What is the capital of Spain?")
        spain = list(chat.messages)
        del chat.messages[2:]
        chat.say("I moved to Portugal.")
        assert threads_of(talk, request) == [chat.lines]
        portugal = list(chat.messages)
        chat.messages = list(spain)
        chat.say("Where is the beach?")
        assert threads_of(talk, request) == [chat.lines]
        assert "Spain" in portrait(talk, request)
        assert "Portugal" not in portrait(talk, request)
        chat.messages = portugal
        chat.say("And the mountains?")
    assert threads_of(talk, request) == [chat.lines]
    for text in ("I moved to Spain.", "I moved to Portugal.", "Where is the beach?", "What is the capital of Spain?"):
        assert found(talk, request, text).count(text) == 1, "each branch is found, and each message once"


@pytest.mark.defect("S4")
@pytest.mark.req("G16")
def test_an_earlier_turn_that_is_edited_leaves_all_after_it_in_its_branch(
    talk: Talk, request: pytest.FixtureRequest
) -> None:
    with talk.client() as client:
        chat = Chat(client)
        for number in range(4):
            chat_turn(chat, "one", number)
        del chat.messages[3:]
        chat.answer()
        chat_turn(chat, "one", 9)
    assert threads_of(talk, request) == [chat.lines]
    assert "user: one says line 3" in talk.versions(request)
    assert "one says line 3" in found(talk, request, "one says line 3")


def test_a_request_that_is_sent_twice_at_once_is_stored_once(talk: Talk, request: pytest.FixtureRequest) -> None:
    with talk.client() as client, ThreadPoolExecutor(4) as pool:
        chat = Chat(client)
        chat_turn(chat, "one", 0)
        sent = [*chat.messages, {"role": "user", "content": "Once."}]
        list(pool.map(lambda _: ask(client, *sent), range(4)))
    assert log_of(talk, request).count("user: Once.") == 1
    assert [line for line in talk.versions(request) if line == "user: Once."] == ["user: Once."]


class Client:
    """A chat app at random: it begins as others do, edits, has answers written anew, and returns to older branches."""

    def __init__(self, openai: OpenAI, dice: Random, chat_id: str | None) -> None:
        self.openai, self.dice, self.chat_id = openai, dice, chat_id
        self.messages: list[dict[str, Any]] = []
        self.branches: list[list[dict[str, Any]]] = []

    def step(self, words: str) -> None:
        move = self.dice.random()
        asked = [place for place, each in enumerate(self.messages) if each["role"] == "user"]
        if asked and move < 0.5:
            self.branches.append(list(self.messages))
            if move < 0.2:  # an edit
                del self.messages[self.dice.choice(asked) :]
            elif move < 0.35:  # another answer
                del self.messages[self.dice.choice(asked) + 1 :]
            else:
                self.messages = list(self.dice.choice(self.branches))
        if not self.messages or self.messages[-1]["role"] == "assistant":
            same = self.dice.random() < (0.3 if self.messages else 0.8)
            self.messages.append({"role": "user", "content": "Hello" if same else words})
        headers = {} if self.chat_id is None else {CHAT_ID: self.chat_id}
        heard = ask(self.openai, *self.messages, extra_headers=headers)
        self.messages.append({"role": "assistant", "content": heard})

    @property
    def lines(self) -> list[str]:
        return [f"{each['role']}: {each['content']}" for each in self.messages]


def is_kept(
    client: Client, threads: dict[str, list[str]], clients: list[Client], began_last: dict[str, Client]
) -> bool:
    """Whether what a client holds is the history of a thread."""
    held = client.lines
    if client.chat_id is not None:
        return threads.get(chat_thread("ann", client.chat_id), []) == held
    if not held or held in threads.values():
        return True
    if len(held) == 2 and began_last[held[0]] is not client:
        return True
    others = [other.lines for other in clients if other.chat_id is None and other.lines != held]
    begun_alike = any(lines[: len(held)] == held for lines in others)
    return begun_alike and any(lines[: len(held)] == held for lines in threads.values())


@pytest.mark.defect("S3", "S4")
@pytest.mark.req("G16")
@pytest.mark.parametrize("block", range(2))
def test_chats_at_random_are_kept_as_their_clients_hold_them(
    talk: Talk, request: pytest.FixtureRequest, block: int
) -> None:
    """Up to six chats of one person that begin alike, in any order: 2 interleavings, or 1,000 with --torture.

    After each request, each client finds what it holds as the history of a thread. Two things cannot be known about
    chats without an id, until an answer is continued: whether a first question that is asked again begins another chat
    (it is taken for a new try, and the older answer for a version), and whether chats with the same questions and
    answers are two (the shorter one is the beginning of the longer one). In the end all that was said is found.
    """
    each = 500 if request.config.getoption("--torture") else 1
    for seed in range(block * 500, block * 500 + each):
        dice = Random(seed)
        space = f"{request.node.name}-{seed}"[:200]
        key = talk.server.key(space=space)
        said: set[str] = set()

        def script(_: Request, dice: Random = dice, said: set[str] = said, seed: int = seed) -> str:
            said.add(word := "Good day." if dice.random() < 0.4 else f"answer{seed}x{len(said)}")
            return word

        talk.model.say(script)
        with talk.client(key) as openai:
            ids = [f"chat {number}" if dice.random() < 0.4 else None for number in range(dice.randint(2, 6))]
            clients = [Client(openai, dice, chat_id) for chat_id in ids]
            began_last: dict[str, Client] = {}
            for number in range(25):
                said.add(words := f"question{seed}x{number}")
                client = dice.choice(clients)
                client.step(words)
                if client.chat_id is None and len(client.lines) == 2:
                    began_last[client.lines[0]] = client
                threads: dict[str, list[str]] = {}
                for message in talk.stored(space=space):
                    threads.setdefault(message.thread, []).append(f"{message.role}: {message.text}")
                for client in clients:
                    assert is_kept(client, threads, clients, began_last), (seed, number, client.lines)
        person = talk.server.served.memory.user("ann", space=space)
        sent = {message["content"] for client in clients for message in client.messages}
        for branch in (branch for client in clients for branch in client.branches):
            sent |= {message["content"] for message in branch}
        for text in sent | {word for word in said if word.startswith("answer")}:
            hits = talk.server.run(person.search(text, limit=5))
            assert any(hit.text == text for hit in hits), (seed, text)


@pytest.mark.defect("S3")
@pytest.mark.req("G16")
def test_a_question_that_two_chats_with_the_same_answers_ask_is_answered_in_both(
    talk: Talk, request: pytest.FixtureRequest
) -> None:
    answers = iter(["Good day.", "Good day.", "A fine city.", "Lovely."])
    talk.model.say(lambda _: next(answers))
    with talk.client() as client:
        one, other = Chat(client), Chat(client)
        one.say("Hello")
        other.say("Hello")
        one.say("Tell me of Rome.")
        other.say("Tell me of Rome.")
    threads = threads_of(talk, request)
    assert one.lines in threads
    assert other.lines in threads


@pytest.mark.defect("S12")
def test_a_long_chat_that_goes_on_costs_the_reads_of_a_short_one_and_the_words_of_its_new_turns(
    talk: Talk, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = talk.server.served.memory.store
    asked: list[str] = []
    normalised: list[str] = []
    read, words = store.read, vars(Turn)["words"].fget

    async def counted_read(question: Any, *more: Any, **named: Any) -> Any:  # noqa: ANN401
        asked.append(type(question).__name__)
        return await read(question, *more, **named)

    def counted_words(turn: Turn) -> str:
        normalised.append(turn.text)
        return str(words(turn))

    costs = []
    with talk.client() as client:
        for prior in (10, 200):
            chat = Chat(client)
            for number in range(prior):
                said = {"role": ("user", "assistant")[number % 2], "content": f"{prior}: line {number}"}
                chat.messages.append(said)
            for number in range(3):
                chat.say(f"{prior}: question {number}")
            log_of(talk, request)
            with monkeypatch.context() as patched:
                patched.setattr(store, "read", counted_read)
                patched.setattr(Turn, "words", property(counted_words))
                asked.clear()
                normalised.clear()
                chat.say(f"{prior}: one more question")
                log_of(talk, request)
                found_by = [name for name in asked if name in ("MessageById", "VersionsOf")]
                costs.append((len(found_by), sum(text.startswith(f"{prior}: line") for text in normalised)))
    assert costs[0][0] == costs[1][0] > 0
    assert max(costs[0][1], costs[1][1]) <= 10, "those of what is recalled alone"
