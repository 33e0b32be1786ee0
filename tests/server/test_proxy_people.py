"""Whose memory a request is about: nobody's is ever shared, and what apps send for themselves is not remembered."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from openai import OpenAI

import aforesaid
from aforesaid.domain.scope import Scope, chat_thread
from aforesaid.errors import InvalidInput
from aforesaid.server.auth import Credential
from aforesaid.server.proxy.caller import Caller, caller_of
from aforesaid.testing import ScriptedModel
from server.serving import live
from server.talking import Talk, ask, eventually, log_of

OPEN_WEBUI = {
    "X-OpenWebUI-User-Id": "7f3c",
    "X-OpenWebUI-User-Name": "Ann%20M%C3%BCller",
    "X-OpenWebUI-User-Email": "ann@example.org",
    "X-OpenWebUI-User-Role": "user",
    "X-OpenWebUI-Chat-Id": "chat-1",
}
LIBRE_CHAT = {
    "X-LibreChat-User-Id": "66aa",
    "X-LibreChat-User-Name": "b64:QW5uIE3DvGxsZXI=",
    "X-LibreChat-Conversation-Id": "convo-1",
}
TITLE = (
    "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Chat History:\n"
    "<chat_history>\nUSER: I am vegetarian now.\n</chat_history>"
)
TASKS = {
    "title": TITLE,
    "tags": "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history, along with 1-3 more.",
    "follow-ups": "### Task:\nSuggest 3-5 relevant follow-up questions or prompts that the user might naturally ask.",
    "follow-ups of later versions": "### Task:\nPredict 3-5 useful messages this user might naturally send next.",
    "queries": "### Task:\nAnalyze the chat history to determine the necessity of generating search queries.",
    "autocompletion": "### Task:\nYou are an autocompletion system. Continue the text in `<text>`.",
    "emoji": "Your task is to reflect the speaker's likely facial expression through a fitting emoji. Message: hi",
    "LibreChat's title": (
        "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the "
        "title itself.\n\nConversation:\nUser: hi"
    ),
    "LibreChat's title with a language": (
        "Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A concise title in "
        "the detected language (5 words or less, no punctuation or quotation)\n\nUser: hi"
    ),
}


def raw(client: OpenAI, text: str, **more: Any) -> Any:  # noqa: ANN401
    return client.chat.completions.with_raw_response.create(
        model="m", messages=[{"role": "user", "content": text}], **more
    )


@pytest.mark.defect("P3")
def test_without_a_name_a_key_of_many_people_gets_no_memory(talk: Talk, request: pytest.FixtureRequest) -> None:
    with talk.client() as alice, talk.client() as bob:
        answer = raw(alice, "My secret word is zanzibar.")
        assert answer.headers["x-aforesaid-memory"] == "off"
        assert answer.headers["x-aforesaid-reason"].startswith("no user")
        raw(bob, "What is the secret word?")
    assert "zanzibar" not in json.dumps(talk.last)
    eventually(lambda: not talk.server.served._finishing)
    assert talk.server.run(talk.server.served.memory.users(request.node.name[:200])) == []


@pytest.mark.defect("P3")
def test_a_key_of_one_person_needs_no_name(talk: Talk, request: pytest.FixtureRequest) -> None:
    with talk.client(talk.server.key(space=request.node.name[:200], user="dora")) as client:
        assert raw(client, "by my key").headers["x-aforesaid-memory"] == "on"
        with pytest.raises(openai.NotFoundError, match="--people many"):
            raw(client, "as somebody else", user="ann")
    assert log_of(talk, request, "dora") == ["user: by my key", "assistant: You said: by my key"]


@pytest.mark.defect("P3")
@pytest.mark.parametrize(
    ("headers", "user", "chat"),
    [(OPEN_WEBUI, "7f3c", "chat-1"), (LIBRE_CHAT, "66aa", "convo-1")],
    ids=["Open WebUI", "LibreChat"],
)
def test_the_headers_of_apps_say_who_it_is_and_stay_here(
    talk: Talk, request: pytest.FixtureRequest, headers: dict[str, str], user: str, chat: str
) -> None:
    with talk.client(**headers) as client:
        raw(client, "I am vegetarian now.")
    eventually(lambda: not talk.server.served._finishing)
    question, _ = talk.stored(user, request.node.name[:200])
    assert question.thread == chat_thread(user, chat)
    assert question.name == "Ann Müller"
    passed = json.dumps(dict(talk.model.requests[-1].headers)).lower()
    assert not [name for name in ("openwebui", "librechat", "example.org") if name in passed]


def test_the_model_is_told_the_name_of_a_person_and_not_the_id(talk: Talk) -> None:
    with talk.client(**OPEN_WEBUI) as client:
        raw(client, "My sister Sinead plays the violin in Cork.")
    eventually(lambda: not talk.server.served._finishing)
    talk.server.run(talk.server.served.memory.upkeep())
    with talk.client(**{**OPEN_WEBUI, "X-OpenWebUI-Chat-Id": "chat-2"}) as client:
        raw(client, "Who plays the violin?")
    sent = json.dumps(talk.last, ensure_ascii=False)
    assert 'from=\\"Ann Müller\\"' in sent
    assert "<person>Ann Müller</person>" in sent
    assert "7f3c" not in sent


@pytest.mark.defect("P3")
@pytest.mark.parametrize("name", ["{{LIBRECHAT_USER_ID}}", ""])
def test_a_placeholder_that_was_not_filled_in_is_no_name(talk: Talk, name: str) -> None:
    with talk.client(**{"X-LibreChat-User-Id": name}) as client:
        assert raw(client, "hi").headers["x-aforesaid-memory"] == "off"


@pytest.mark.defect("P3")
@pytest.mark.parametrize("task", TASKS, ids=str)
def test_tasks_of_apps_pass_unstored_and_without_memory(talk: Talk, request: pytest.FixtureRequest, task: str) -> None:
    with talk.client() as client:
        ask(client, "I am vegetarian now.")
        answer = raw(client, TASKS[task], user="ann")
    assert answer.headers["x-aforesaid-memory"] == "off"
    assert "task" in answer.headers["x-aforesaid-reason"]
    assert talk.last == [{"role": "user", "content": TASKS[task]}]
    assert len(log_of(talk, request)) == 2


def test_a_persons_own_task_is_remembered(talk: Talk, request: pytest.FixtureRequest) -> None:
    with talk.client() as client:
        ask(client, "### Task:\nTranslate my letter to the landlord.")
    assert len(log_of(talk, request)) == 2


def test_of_a_question_about_files_the_question_is_stored(talk: Talk, request: pytest.FixtureRequest) -> None:
    framed = (
        "### Task:\nRespond to the user query using the provided context, incorporating inline citations.\n\n"
        "<context>\n<source>A lease.</source>\n</context>\n\nWhen does my lease end?"
    )
    with talk.client() as client:
        ask(client, framed)
        ask(client, "When does my lease end?", {"role": "assistant", "content": f"You said: {framed}"}, "Thanks.")
    assert [line for line in log_of(talk, request) if line.startswith("user")] == [
        "user: When does my lease end?",
        "user: Thanks.",
    ]


@pytest.mark.parametrize("chat", ["local", "local:abc", "temporary:abc"])
def test_temporary_chats_are_not_remembered(talk: Talk, request: pytest.FixtureRequest, chat: str) -> None:
    with talk.client(**{**OPEN_WEBUI, "X-OpenWebUI-Chat-Id": chat}) as client:
        assert raw(client, "hi").headers["x-aforesaid-reason"] == "temporary chat"
    assert log_of(talk, request, "7f3c") == []


def test_an_edited_first_question_of_a_named_chat_is_no_second_question(
    talk: Talk, request: pytest.FixtureRequest
) -> None:
    with talk.client(**OPEN_WEBUI) as client:
        raw(client, "What is the capitol of France?")
        raw(client, "What is the capital of France?")
        raw(client, "What is the capital of France?")
    lines = log_of(talk, request, "7f3c")
    assert lines.count("user: What is the capital of France?") == 1


def test_the_chat_of_another_person_cannot_be_named(talk: Talk) -> None:
    with pytest.raises(InvalidInput, match="another user's direct chat"):
        Scope.of("bob", thread=chat_thread("ann", "1"))
    with talk.client(**{"X-Aforesaid-Thread": chat_thread("ann", "1")}) as client, pytest.raises(openai.APIStatusError):
        ask(client, "hi", user="bob")


@pytest.mark.defect("P10")
def test_without_authentication_any_key_will_do() -> None:
    with ScriptedModel() as model, live(settings=model.settings(), auth=False) as server:
        client = OpenAI(api_key="sk-anything", base_url=f"{server.address}/v1", max_retries=0)
        with client:
            for _ in range(30):
                assert raw(client, "hi").headers["x-aforesaid-memory"] == "on"
            assert [each.id for each in client.models.list()] == ["scripted"]
        assert [each.id for each in server.run(server.served.memory.users())] == ["local"]


@pytest.mark.defect("P11")
async def test_both_spellings_of_a_name_are_one_person_with_the_same_chats() -> None:
    async with aforesaid.connect(":memory:") as memory:
        many = Credential("key:1", "app", "app")
        callers = [
            caller_of({"x-openwebui-user-id": name, "x-openwebui-chat-id": "chat-1"}, {}, many, memory)
            for name in ("Zo\u00eb", "Zoe\u0308")
        ]
    assert callers[0] == callers[1]
    assert isinstance(callers[0], Caller)
    assert callers[0].user == "Zo\u00eb"
