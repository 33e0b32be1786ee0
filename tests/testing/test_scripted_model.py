"""The scripted model, asked through the real client as anybody would."""

from __future__ import annotations

import io
import json
import urllib.error
import urllib.request
import wave
from collections.abc import Iterator
from pathlib import Path

import pytest
from openai import (
    APIConnectionError,
    AsyncOpenAI,
    AuthenticationError,
    BadRequestError,
    NotFoundError,
    OpenAI,
    RateLimitError,
)
from pydantic import BaseModel, Field

from aforesaid import testing
from aforesaid.testing import Fault, Request, ScriptedModel, Writes, faults
from aforesaid.testing.script import example


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as started:
        yield started


@pytest.fixture
def client(model: ScriptedModel) -> Iterator[OpenAI]:
    with OpenAI(base_url=model.base_url, api_key="none", max_retries=0, timeout=10) as opened:
        yield opened


def say(client: OpenAI, text: str = "Hi") -> str | None:
    made = client.chat.completions.create(model="scripted", messages=[{"role": "user", "content": text}])
    return made.choices[0].message.content


def test_replies_come_in_the_order_of_the_script(model: ScriptedModel, client: OpenAI) -> None:
    model.say(["one", {"two": 2}, Writes("three")])
    assert [say(client), say(client), say(client)] == ["one", '{"two": 2}', "three"]
    with pytest.raises(BadRequestError, match="the script has ended after 3 replies"):
        say(client)


def test_a_script_can_depend_on_what_is_asked(model: ScriptedModel, client: OpenAI) -> None:
    def answer(request: Request) -> str:
        return request.asked.upper()

    model.say(answer)
    assert [say(client, "hi"), say(client, "ho")] == ["HI", "HO"]


def test_without_a_script_it_repeats_what_it_was_told(client: OpenAI) -> None:
    assert say(client, "good morning") == "You said: good morning"


def test_requests_are_remembered(model: ScriptedModel, client: OpenAI) -> None:
    say(client, "hi")
    (request,) = model.requests
    assert (request.method, request.path, request.asked) == ("POST", "/v1/chat/completions", "hi")
    assert request.headers["authorization"] == "Bearer none"
    assert request.schema is None


async def test_it_streams_and_says_what_it_cost() -> None:
    async with (
        ScriptedModel(["She is  a friend.\n"]) as model,
        AsyncOpenAI(base_url=model.base_url, api_key="none", max_retries=0) as client,
    ):
        stream = await client.chat.completions.create(
            model="scripted",
            messages=[{"role": "user", "content": "Who?"}],
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [chunk async for chunk in stream]
    pieces = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert "".join(piece or "" for piece in pieces) == "She is  a friend.\n"
    assert len(pieces) > 4
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 5


class Pet(BaseModel):
    name: str = Field(min_length=6, max_length=8)
    legs: int = Field(ge=4)


class Owner(BaseModel):
    pets: list[Pet] = Field(min_length=2)
    nickname: str | None


def test_it_fills_in_schemas_by_example(client: OpenAI) -> None:
    made = client.chat.completions.parse(
        model="scripted", messages=[{"role": "user", "content": "Who?"}], response_format=Owner
    )
    assert made.choices[0].message.parsed == Owner.model_validate(example(Owner.model_json_schema()))


def test_vectors_are_the_same_every_time_and_similar_for_similar_texts(client: OpenAI) -> None:
    texts = ["a small dog", "a small cat", "the invoice is due", "a small dog"]
    # Asked for in numbers, and in the packed form that the client asks for by itself.
    plain = client.embeddings.create(model="scripted", input=texts, encoding_format="float")
    packed = client.embeddings.create(model="scripted", input=texts)
    dog, cat, invoice, again = (item.embedding for item in plain.data)
    assert dog == again
    assert packed.data[0].embedding == pytest.approx(dog, abs=1e-6)
    assert sum(value * value for value in dog) == pytest.approx(1)

    def similar(one: list[float], other: list[float]) -> float:
        return sum(a * b for a, b in zip(one, other, strict=True))

    assert similar(dog, cat) > similar(dog, invoice)


def test_models_are_listed() -> None:
    with ScriptedModel(models=("tiny", "huge")) as model, OpenAI(base_url=model.base_url, api_key="none") as client:
        assert [each.id for each in client.models.list()] == ["tiny", "huge"]


def test_what_is_spoken_can_be_heard_again(client: OpenAI) -> None:
    sound = client.audio.speech.create(model="tts", voice="alloy", input="Guten Morgen, Ann!").read()
    with wave.open(io.BytesIO(sound)) as file:
        assert (file.getnchannels(), file.getframerate(), file.getnframes()) == (1, 16_000, 4_800)
    heard = client.audio.transcriptions.create(model="stt", file=("said.wav", sound))
    assert heard.text == "Guten Morgen, Ann!"
    other = client.audio.transcriptions.create(model="stt", file=("other.wav", b"RIFF"))
    assert other.text == "4 bytes of sound"


def test_a_key_can_be_required() -> None:
    with ScriptedModel(api_key="secret") as model:
        for key, allowed in (("wrong", False), ("secret", True)):
            with OpenAI(base_url=model.base_url, api_key=key, max_retries=0) as client:
                if allowed:
                    assert say(client)
                else:
                    with pytest.raises(AuthenticationError):
                        say(client)


def test_faults_strike_so_many_times_and_leave_the_script_where_it_is(model: ScriptedModel, client: OpenAI) -> None:
    model.say(["one", faults.UnknownModel(), "two"])
    model.fail(faults.TooManyRequests(retry_after=7), times=2)
    for _ in range(2):
        with pytest.raises(RateLimitError) as raised:
            say(client)
        assert raised.value.response.headers["retry-after"] == "7"
    assert say(client) == "one"
    with pytest.raises(NotFoundError):
        say(client)
    assert say(client) == "two"


def test_a_fault_that_is_healed_does_not_strike(model: ScriptedModel, client: OpenAI) -> None:
    model.fail(faults.Resets())
    with pytest.raises(APIConnectionError):
        say(client)
    model.heal()
    assert say(client)


def test_it_comes_back_at_the_same_address(model: ScriptedModel, client: OpenAI) -> None:
    before = model.base_url
    model.stop()
    model.stop()
    with pytest.raises(APIConnectionError):
        say(client)
    model.start()
    assert model.base_url == before
    assert say(client)


def test_it_can_be_stopped_while_it_keeps_somebody_waiting(model: ScriptedModel) -> None:
    model.fail(faults.NeverAnswers())
    impatient = OpenAI(base_url=model.base_url, api_key="none", max_retries=0, timeout=0.1)
    with impatient as client, pytest.raises(APIConnectionError):
        say(client)
    model.stop()
    assert len(model.requests) == 1


def test_what_it_does_not_know_is_not_found(model: ScriptedModel) -> None:
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(f"{model.base_url}/nonsense")  # noqa: S310 - an address of our own
    with raised.value as answer:
        assert answer.status == 404
        assert "does not exist" in json.load(answer)["error"]["message"]


def test_everything_is_documented() -> None:
    page = (Path(__file__).parent.parent.parent / "docs/reference/testing.md").read_text(encoding="utf-8")
    for name, fault in vars(faults).items():
        if isinstance(fault, type) and issubclass(fault, Fault) and fault is not Fault:
            assert f"`faults.{name}(" in page, name
    for name in [*vars(ScriptedModel), *testing.__all__]:
        if not name.startswith("_"):
            assert name in page, name
