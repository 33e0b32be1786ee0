"""The same flows as against the scripted model, against a real one: what comes back has the right shape."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import ClassVar, Literal

import numpy as np
import pytest
from pydantic import BaseModel, Field, field_validator

from aforesaid.errors import ModelGarbled
from aforesaid.models.chat import RoutedChat, Said, open_chat
from aforesaid.models.embed import choose_embedder
from aforesaid.settings import OPERATIONS, Choice, Provider, Resilience, Route, Settings
from aforesaid.telemetry import Key

MODEL = "llama:qwen"
QUESTION = [
    Said("system", "You help to remember things about people."),
    Said("user", "Ann is 36 years old, lives in Berlin and has a cat. Who is Ann?"),
]


class Person(BaseModel):
    name: str = Field(max_length=20)
    age: int = Field(ge=0, le=120)
    pet: Literal["cat", "dog", "none"]
    places: list[str] = Field(max_length=2)


@pytest.fixture
def settings(base_url: str) -> Settings:
    route = Route((Choice("llama", "qwen"),), temperature=0.0, max_tokens=200, timeout=300)
    return Settings(
        providers={"llama": Provider("llama", base_url, concurrency=1)},
        routes=dict.fromkeys(OPERATIONS, route),
        # A small machine may be silent for long.
        resilience=Resilience(stall_seconds=120),
    )


@pytest.fixture
async def chat(settings: Settings) -> AsyncIterator[RoutedChat]:
    opened = open_chat(settings)
    yield opened
    await opened.close()


def calls(chat: RoutedChat) -> int:
    return sum(counted.calls for counted in chat.metrics.snapshot().values())


async def test_it_writes_a_text(chat: RoutedChat) -> None:
    reply = await chat.text("chat", QUESTION)
    assert reply.text.strip()
    assert reply.model == MODEL
    assert reply.prompt_tokens > 20
    assert 0 < reply.reply_tokens <= 200


async def test_a_text_that_is_too_long_is_cut_and_says_so(settings: Settings) -> None:
    routes = {name: replace(route, max_tokens=3) for name, route in settings.routes.items()}
    chat = open_chat(replace(settings, routes=routes))
    reply = await chat.text("chat", QUESTION)
    await chat.close()
    assert reply.cut
    assert reply.reply_tokens == 3


async def test_it_writes_in_pieces(chat: RoutedChat) -> None:
    pieces = [piece async for piece in chat.stream("chat", QUESTION)]
    assert len(pieces) > 1
    assert "".join(pieces).strip()
    counted = chat.metrics.snapshot()[Key("chat", MODEL)]
    assert counted.reply_tokens > 1
    assert not counted.failures


async def test_it_fills_in_a_schema(chat: RoutedChat) -> None:
    answer = await chat.structure("extract", QUESTION, Person)
    assert answer.value.pet in {"cat", "dog", "none"}
    assert len(answer.value.name) <= 20
    assert calls(chat) == 1


class Stubborn(Person):
    """Accepts nothing the first time."""

    seen: ClassVar[int] = 0

    @field_validator("age")
    @classmethod
    def _not_yet(cls, age: int) -> int:
        cls.seen += 1
        if cls.seen == 1:
            raise ValueError("say it once more")
        return age


async def test_it_is_told_what_was_wrong_and_writes_again(chat: RoutedChat) -> None:
    answer = await chat.structure("extract", QUESTION, Stubborn)
    assert isinstance(answer.value.age, int)
    assert calls(chat) == Stubborn.seen == 2


async def test_asked_in_words_it_writes_what_fits_or_that_is_reported(settings: Settings) -> None:
    provider = replace(settings.providers["llama"], structured="instructed")
    chat = open_chat(replace(settings, providers={"llama": provider}))
    try:
        answer = await chat.structure("extract", QUESTION, Person)
    except ModelGarbled as error:
        assert "did not answer with the JSON that was asked for (Person)" in str(error)  # noqa: PT017 - either may happen
        assert calls(chat) == 2
    else:
        assert isinstance(answer.value, Person)
    await chat.close()


async def test_it_embeds(settings: Settings) -> None:
    embedder = choose_embedder(None, settings)
    assert embedder is not None
    vectors = await embedder.embed(["My sister has a dog", "My sister has a dog", "The invoice is due on Friday"])
    await embedder.close()
    assert len(vectors) == 3
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    assert vectors[0] @ vectors[1] == pytest.approx(1, abs=1e-3)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]
