"""From a Pydantic model to a validated value, whatever the provider takes and writes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import date
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from aforesaid.errors import (
    ModelGarbled,
    ModelRefused,
)
from aforesaid.models.chat import RoutedChat, Said, open_chat, schema_of
from aforesaid.telemetry import Key
from aforesaid.testing import ScriptedModel, Writes, faults
from aforesaid.testing.faults import HttpResponse, failure

HELLO = [Said("system", "You are helpful."), Said("user", "Who is Ann?", "Bob"), Said("assistant", "A friend.")]


class Pet(BaseModel):
    kind: Literal["cat", "dog"]
    name: str = Field(max_length=20, description="what it is called")


class Person(BaseModel):
    name: str
    born: date | None = None
    pets: list[Pet] = Field(default_factory=list, max_length=3)
    title: str = "none"


ANN = {"name": "Ann", "born": "1990-05-01", "pets": [{"kind": "cat", "name": "Tom"}], "title": "Dr"}


@pytest.fixture
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel() as started:
        yield started


@pytest.fixture
async def chat(model: ScriptedModel) -> AsyncIterator[RoutedChat]:
    opened = open_chat(model.settings())
    yield opened
    await opened.close()


async def test_a_prompt_that_is_too_long_is_not_said_in_another_way(model: ScriptedModel, chat: RoutedChat) -> None:
    class TooLong(faults.Fault):
        def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002
            return failure(400, "This model has 8192 tokens, max_tokens included", "context_length_exceeded")

    model.fail(TooLong())
    with pytest.raises(ModelRefused, match="8192"):
        await chat.structure("extract", HELLO, Person)
    assert len(model.requests) == 1


async def test_a_structure_is_asked_for_with_a_strict_schema(model: ScriptedModel, chat: RoutedChat) -> None:
    model.say([ANN])
    answer = await chat.structure("extract", HELLO, Person)
    assert answer.value == Person.model_validate(ANN)
    assert answer.model == "scripted:scripted"
    form = model.requests[0].body["response_format"]["json_schema"]
    assert (form["name"], form["strict"]) == ("Person", True)
    assert form["schema"]["required"] == ["name", "born", "pets", "title"]
    assert form["schema"]["additionalProperties"] is False
    assert form["schema"]["$defs"]["Pet"]["properties"]["name"]["maxLength"] == 20
    assert model.requests[0].messages[0]["content"] == "You are helpful."


async def test_what_does_not_fit_goes_back_once_with_the_reason(model: ScriptedModel, chat: RoutedChat) -> None:
    model.say([{**ANN, "born": "in May", "pets": [{"kind": "fish", "name": "Bo"}]}, ANN])
    answer = await chat.structure("extract", HELLO, Person)
    assert answer.value.name == "Ann"
    again = model.requests[1].messages
    assert again[:3] == model.requests[0].messages
    assert again[3]["role"] == "assistant"
    assert json.loads(again[3]["content"])["born"] == "in May"
    assert again[4]["role"] == "user"
    assert "born: Input should be a valid date" in again[4]["content"]
    assert "pets.0.kind: Input should be 'cat' or 'dog'" in again[4]["content"]
    # Both rounds are paid for.
    counted = chat.metrics.snapshot()[Key("extract", "scripted:scripted")]
    assert (answer.prompt_tokens, answer.reply_tokens) == (counted.prompt_tokens, counted.reply_tokens)
    assert counted.calls == 2


@pytest.mark.parametrize(
    "written",
    [
        "I would say that Ann is 36.",
        'Here you are: {"name": "Ann", "title": "Dr", "born": null, "pets": []}',
        '{"name": "Ann", "title": "Dr", "born": null, "pets": []',
        '{"name": 5, "title": "Dr", "born": null, "pets": []}',
        "null",
        "[]",
    ],
)
async def test_nothing_is_guessed(model: ScriptedModel, chat: RoutedChat, written: str) -> None:
    model.say([written, written])
    with pytest.raises(ModelGarbled, match=r"did not answer with the JSON that was asked for \(Person\), also after "):
        await chat.structure("extract", HELLO, Person)
    assert len(model.requests) == 2


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```", "\n```JSON \n{}\n```\n", " {} \n"])
async def test_a_code_fence_around_it_is_taken_off(model: ScriptedModel, chat: RoutedChat, fence: str) -> None:
    model.say([fence.replace("{}", json.dumps(ANN, indent=1))])
    assert (await chat.structure("extract", HELLO, Person)).value.name == "Ann"


async def test_a_cut_reply_is_not_a_structure_even_where_it_parses(model: ScriptedModel, chat: RoutedChat) -> None:
    cut = Writes(json.dumps(ANN), finish="length")
    model.say([cut, cut])
    with pytest.raises(ModelGarbled, match="cut off because it was too long"):
        await chat.structure("extract", HELLO, Person)


async def test_a_schema_that_is_refused_goes_in_words_and_that_is_remembered(model: ScriptedModel) -> None:
    model.fail(faults.NoSchema())
    model.say(lambda _: ANN)
    chat = open_chat(model.settings())
    assert (await chat.structure("extract", HELLO, Person)).value.name == "Ann"
    # With all its limits, with types alone, in words.
    full, plain, words = model.requests
    assert '"maxLength"' in json.dumps(full.schema)
    assert '"maxLength"' not in json.dumps(plain.schema)
    assert words.schema is None
    assert words.messages[0]["content"].startswith("You are helpful.\n\nAnswer with one JSON value")
    assert '"maxLength"' in words.messages[0]["content"]
    assert (await chat.structure("extract", [Said("user", "Ann?")], Person)).value.name == "Ann"
    assert len(model.requests) == 4
    assert [message["role"] for message in model.requests[3].messages] == ["system", "user"]
    await chat.close()


async def test_a_provider_can_be_told_how_it_takes_schemas(model: ScriptedModel) -> None:
    model.say(lambda _: ANN)
    settings = model.settings()
    words = open_chat(replace(settings, providers={"scripted": model.provider(structured="instructed")}))
    await words.structure("extract", HELLO, Person)
    assert [request.schema for request in model.requests] == [None]
    await words.close()
    model.requests.clear()
    model.fail(faults.NoSchema())
    schema = open_chat(replace(settings, providers={"scripted": model.provider(structured="schema")}))
    with pytest.raises(ModelRefused, match="response_format type is unavailable"):
        await schema.structure("extract", HELLO, Person)
    assert all(request.schema for request in model.requests)
    await schema.close()


class Node(BaseModel):
    value: Annotated[int, Field(ge=1, le=9)] | None
    children: list[Node] = Field(default_factory=list, description="below it")


class Loose(BaseModel):
    anything: dict[str, int]


def test_a_schema_is_closed_and_says_its_limits_in_words_where_they_are_not_taken() -> None:
    schema = schema_of(Node)
    assert schema.strict
    full, plain = json.loads(schema.full), json.loads(schema.plain)
    assert full["type"] == "object"
    node = full["$defs"]["Node"]
    assert node["required"] == ["value", "children"]
    assert node["properties"]["value"]["anyOf"][0] == {"type": "integer", "minimum": 1, "maximum": 9}
    limited = plain["$defs"]["Node"]["properties"]["value"]["anyOf"][0]
    assert limited == {"type": "integer", "description": "(maximum 9, minimum 1)"}
    assert "default" not in schema.full
    # A field may have the name of a word that is dropped.
    assert "title" in json.loads(schema_of(Person).full)["properties"]


def test_a_schema_with_free_keys_is_not_strict() -> None:
    assert not schema_of(Loose).strict
