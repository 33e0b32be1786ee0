"""Requests that are unlike the usual ones: several choices, long histories, parts, broken streams, strict models."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from aforesaid.store.messages import AddMessage, MessageById
from aforesaid.testing import Request, Writes, faults
from intercepting import Read, intercept
from pg import clean_database
from server.talking import Chat, Talk, ask, eventually, hang_up_after_two_words, log_of, talking

CHOICES = Writes("Rome is best in May.", more=("Take the train to Rome.", "Skip Rome in August."))


def message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


@pytest.mark.client("Chat Completions", "openai (Python)", "versions")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_several_choices_are_versions_of_one_turn(talk: Talk, request: pytest.FixtureRequest, stream: bool) -> None:  # noqa: FBT001
    talk.model.say(lambda _: CHOICES)
    asked: Any = {"model": "m", "messages": [message("user", "Rome?")], "user": "ann", "n": 3}
    with talk.client() as client:
        if stream:
            indexes = [chunk.choices[0].index for chunk in client.chat.completions.create(**asked, stream=True)]
            assert set(indexes) == {0, 1, 2}
        else:
            assert len(client.chat.completions.create(**asked).choices) == 3
    assert log_of(talk, request) == ["user: Rome?", f"assistant: {CHOICES.text}"], "the first choice counts"
    assert Counter(talk.versions(request)) == Counter(
        ["user: Rome?", *(f"assistant: {text}" for text in (CHOICES.text, *CHOICES.more))]
    )


def test_a_chat_that_goes_on_with_another_choice_stores_that_choice(talk: Talk, request: pytest.FixtureRequest) -> None:
    talk.model.say(lambda _: CHOICES)
    with talk.client() as client:
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Rome?"}], user="ann", n=3)
        talk.model.say(lambda _: "From Berlin at nine.")
        chat = Chat(client)
        chat.messages = [message("user", "Rome?"), message("assistant", CHOICES.more[0])]
        chat.say("When does it leave?")
        # Without an id, the first answer may be another chat's that began alike: it stays beside this chat.
        assert log_of(talk, request)[2:] == chat.lines
        chat.say("And back?")
    assert log_of(talk, request)[2:] == chat.lines


@pytest.mark.client("Chat Completions", "openai (Python)", "versions")
def test_a_chat_that_goes_on_with_an_earlier_answer_stores_that_answer(
    talk: Talk, request: pytest.FixtureRequest
) -> None:
    answers = iter(["Heads.", "Tails.", "You won.", "You lost."])
    talk.model.say(lambda _: next(answers))
    with talk.client() as client:
        chat = Chat(client)
        chat.say("Toss a coin.")
        chat.regenerate()
        chat.messages[-1] = message("assistant", "Heads.")
        chat.say("I had heads.")
        # Without an id, "Tails." may be another chat's that began alike: it stays beside this chat.
        assert log_of(talk, request) == ["user: Toss a coin.", "assistant: Tails.", *chat.lines]


def test_a_thousand_messages_are_stored_once_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    with talking() as talk, talk.client() as client:
        ann = talk.server.served.memory.user("ann")
        calls = _proxy_calls(talk, monkeypatch)
        first, second, messages = Counter[int](), Counter[int](), 0
        for size in (10, 1_000):
            chat = Chat(client)
            chat.messages = [
                message(("user", "assistant")[number % 2], f"This is line {number} of {size}.")
                for number in range(size - 2)
            ]
            calls.clear()
            chat.say("What was the first line?")
            assert talk.log()[-size:] == chat.lines
            first[size] = calls.total()
            calls.clear()
            chat.say("And the second?")
            talk.log()
            second[size] = calls.total()
            messages += size + 2
            assert talk.server.run(ann.status()).messages == messages, "only what is new was added"
        assert second[1_000] == second[10], "a further question costs as many calls of the store as in a short chat"
        assert first[1_000] <= 3 * first[10], "a long history is not stored message by message"


def _proxy_calls(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count what the proxy asks of the store: messages looked up by their ids, and transactions that add messages."""
    store, calls = talk.server.served.memory.store, Counter[str]()
    apply = store.apply

    async def look_up(read: Read, question: MessageById) -> object:
        calls["message"] += 1
        return await read(question)

    async def apply_(changes: Any) -> Any:  # noqa: ANN401
        calls["apply"] += any(isinstance(change, AddMessage) for change in changes)
        return await apply(changes)

    intercept(store, MessageById, look_up)
    monkeypatch.setattr(store, "apply", apply_)
    return calls


def test_parts_of_a_message_are_stored_once_and_passed_on(talk: Talk, request: pytest.FixtureRequest) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    question = {"role": "user", "content": [{"type": "text", "text": "Which bird is this?"}, image]}
    further = {
        "role": "user",
        "content": [{"type": "text", "text": "Where does it"}, {"type": "text", "text": "live?"}],
    }
    talk.model.say(lambda _: "A heron.")
    with talk.client() as client:
        ask(client, question)
        ask(client, question, message("assistant", "A heron."), further)
    assert [each for each in talk.last if each["role"] != "system"] == [
        question,
        message("assistant", "A heron."),
        further,
    ]
    assert log_of(talk, request) == [
        "user: Which bird is this?\n[image]",
        "assistant: A heron.",
        "user: Where does it\nlive?",
        "assistant: A heron.",
    ]


def test_an_answer_that_the_client_broke_off_is_replaced_by_the_next_try(
    talk: Talk, request: pytest.FixtureRequest
) -> None:
    talk.model.fail(faults.Stalls(after=4))
    with talk.client() as client:
        heard = hang_up_after_two_words(client, "Tell me a story.")
        eventually(lambda: len(log_of(talk, request)) == 2)
        partial = log_of(talk, request)[1]
        assert partial.startswith(f"assistant: {heard.strip()}")
        assert len(partial.split()) <= len(heard.split()) + 3, "no more than had come is stored"
        talk.model.heal()
        talk.model.say(lambda _: "Once upon a time there was a fox.")
        ask(client, "Tell me a story.")
    assert log_of(talk, request) == ["user: Tell me a story.", "assistant: Once upon a time there was a fox."]
    assert len(talk.versions(request)) == 3, "nothing is doubled; the part is an earlier version"


STRICT = {
    "one at the beginning": "System message must be at the beginning.",
    "alternation": "Conversation roles must alternate user/assistant/user/assistant/...",
    "none": "System role not supported",
}


def refuses(kind: str, asked: Request) -> bool:
    """Tell whether a strict chat template refuses a request."""
    roles = [each["role"] for each in asked.messages]
    allowed = [] if kind == "none" else roles[:1]
    return "system" in roles[len(allowed) :]


@pytest.mark.parametrize("prompt", [False, True], ids=["no system prompt", "system prompt"])
@pytest.mark.parametrize("kind", STRICT)
@pytest.mark.parametrize("status", [400, 500])
def test_a_model_that_refuses_a_system_message_gets_the_memory_in_the_question(
    talk: Talk,
    kind: str,
    prompt: bool,  # noqa: FBT001
    status: int,
) -> None:
    def strict(asked: Request) -> Any:  # noqa: ANN401 - what a script may return
        return faults.ServerError(status, STRICT[kind]) if refuses(kind, asked) else "Yes."

    talk.server.served.upstream.strict_models.clear()
    with talk.client() as client:
        ask(client, "My dog is called Bella.")
        talk.model.say(strict)
        chat = Chat(client, "Be brief." if prompt and kind != "none" else None)
        chat.say("Good morning.")
        assert chat.say("What is my dog called?") == "Yes."
        assert talk.last[-1]["role"] == "user"
        assert "Bella" in talk.last[-1]["content"]
        assert talk.last[-1]["content"].endswith("\n\nWhat is my dog called?"), "the question comes last"
        before = len(talk.model.requests)
        assert chat.say("And how old is she?") == "Yes."
        assert len(talk.model.requests) == before + 1, "the model is not asked in vain again"


def test_an_error_about_something_else_is_passed_on_once(talk: Talk) -> None:
    with talk.client() as client:
        ask(client, "My dog is called Bella.")
        talk.model.requests.clear()
        talk.model.say(lambda _: faults.ServerError(500, "The disk is full."))
        with pytest.raises(Exception, match="The disk is full"):
            ask(client, "What is my dog called?")
        assert len(talk.model.requests) == 1


def test_two_chats_that_alternate_on_postgresql_are_stored_once() -> None:
    with talking(location=clean_database("proxy")) as talk, talk.client() as client:
        one, other = Chat(client), Chat(client)
        for number in range(20):
            one.say(f"one says line {number}")
            other.say(f"other says line {number}")
        one.regenerate()
        other.edit("other says line 19, at last")
        stored = talk.log()
        assert Counter(stored) == Counter([*one.lines, *other.lines])
        assert len(stored) == len(set(stored)) == 80
