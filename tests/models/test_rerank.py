"""Rerankers behind HTTP APIs: the formats of real servers, and their failures."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from typer.testing import CliRunner

from aforesaid.cli import app
from aforesaid.errors import InvalidInput, ModelError, ModelGarbled, ModelRefused, ModelUnavailable
from aforesaid.models.rerank import Reranker, open_reranker
from aforesaid.models.resilience import BreakerOpen
from aforesaid.settings import Choice, Provider, Reranking, Resilience, Settings, load_settings
from aforesaid.settings.load import effective
from aforesaid.telemetry import Key
from aforesaid.testing import ScriptedModel, faults
from aforesaid.testing.faults import HttpResponse

ASKED = "Where does Ann work?"
SAID = ("The cat sleeps.", "Ann does work at the bakery.", "Soup again.")

COHERE = {
    "id": "07734bd2-2473-4f07-94e1-0d9f0e6843cf",
    "results": [
        {"index": 1, "relevance_score": 0.999071},
        {"index": 0, "relevance_score": 0.3278},
        {"index": 2, "relevance_score": 0.0327},
    ],
    "meta": {"api_version": {"version": "2", "is_experimental": False}, "billed_units": {"search_units": 1}},
}
JINA = {
    "model": "jina-reranker-v2-base-multilingual",
    "object": "list",
    "usage": {"total_tokens": 815},
    "results": [
        {"index": 1, "relevance_score": 0.8783, "document": {"text": SAID[1]}},
        {"index": 0, "relevance_score": 0.1213, "document": {"text": SAID[0]}},
        {"index": 2, "relevance_score": -0.0531, "document": {"text": SAID[2]}},
    ],
}
VLLM = {
    "id": "rerank-fae51b2b664d4ed38f5969b612edff77",
    "model": "BAAI/bge-reranker-base",
    "usage": {"prompt_tokens": 56, "total_tokens": 56},
    "results": [
        {"index": 1, "document": {"text": SAID[1], "multi_modal": None}, "relevance_score": 0.99853515625},
        {"index": 2, "document": {"text": SAID[2], "multi_modal": None}, "relevance_score": 0.0005860328674316406},
        {"index": 0, "document": {"text": SAID[0], "multi_modal": None}, "relevance_score": 0.0001},
    ],
}
LLAMA_CPP = {
    "model": "gpt-3.5-turbo",
    "object": "list",
    "usage": {"prompt_tokens": 41, "total_tokens": 41},
    "results": [
        {"index": 0, "relevance_score": -10.97},
        {"index": 1, "relevance_score": 3.41},
        {"index": 2, "relevance_score": -11.02},
    ],
}
TEI = [{"index": 1, "score": 0.9976}, {"index": 2, "score": 0.0124}, {"index": 0, "score": 0.0047}]


@dataclass(frozen=True, slots=True)
class Replies(faults.Fault):
    """Responds with this JSON value."""

    value: Any

    def change(self, answer: HttpResponse) -> HttpResponse:
        return replace(answer, parts=(json.dumps(self.value).encode(),))


def settings(server: ScriptedModel, api: str = "openai", **more: float) -> Settings:
    address = server.base_url.removesuffix("/v1") if api == "tei" else server.base_url
    return Settings(
        providers={"ranks": Provider("ranks", address, api=api)},  # type: ignore[arg-type]
        rerank=Reranking(Choice("ranks", "some-reranker"), **{"timeout": 5.0, **more}),  # type: ignore[arg-type]
        resilience=Resilience(failures=2, probe_seconds=3600),
    )


@asynccontextmanager
async def reranker(server: ScriptedModel, api: str = "openai", **more: float) -> AsyncIterator[Reranker]:
    opened = open_reranker(settings(server, api, **more))
    assert opened is not None
    try:
        yield opened
    finally:
        await opened.close()


async def test_documents_are_sent_in_the_form_of_cohere_jina_and_vllm() -> None:
    with ScriptedModel() as server:
        async with reranker(server) as model:
            scores = await model.scores(ASKED, SAID)
            assert scores.index(max(scores)) == 1
            assert model.metrics.snapshot()[Key("rerank", "ranks:some-reranker")].prompt_tokens > 0
    [sent] = server.requests
    assert sent.path == "/v1/rerank"
    assert sent.body == {"model": "some-reranker", "query": ASKED, "documents": list(SAID), "top_n": len(SAID)}


async def test_texts_are_sent_in_the_form_of_text_embeddings_inference() -> None:
    with ScriptedModel() as server:
        async with reranker(server, "tei") as model:
            scores = await model.scores(ASKED, SAID)
            assert scores.index(max(scores)) == 1
    [sent] = server.requests
    assert sent.path == "/rerank"
    assert sent.body == {"query": ASKED, "texts": list(SAID), "truncate": True}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (COHERE, [0.3278, 0.999071, 0.0327]),
        (JINA, [0.1213, 0.8783, -0.0531]),
        (VLLM, [0.0001, 0.99853515625, 0.0005860328674316406]),
        (LLAMA_CPP, [-10.97, 3.41, -11.02]),
        (TEI, [0.0047, 0.9976, 0.0124]),
    ],
    ids=["Cohere", "Jina", "vLLM", "llama.cpp", "TEI"],
)
async def test_the_replies_of_real_servers_are_read(reply: object, expected: list[float]) -> None:
    with ScriptedModel() as server:
        server.fail(Replies(reply))
        async with reranker(server) as model:
            assert await model.scores(ASKED, SAID) == expected


@pytest.mark.parametrize(
    "reply",
    [
        {},
        [],
        "text",
        None,
        {"results": None},
        {"results": COHERE["results"][:2]},  # type: ignore[index]
        {"results": [{"index": at, "relevance_score": "high"} for at in range(3)]},
        {"results": [{"index": at, "relevance_score": float("nan")} for at in range(3)]},
        {"results": [{"index": 0, "relevance_score": 0.5}] * 3},
        {"results": [{"index": at + 1, "relevance_score": 0.5} for at in range(3)]},
        [0.3, 0.2, 0.1],
    ],
    ids=repr,
)
async def test_a_reply_without_a_score_for_each_document_is_an_error(reply: object) -> None:
    with ScriptedModel() as server:
        server.fail(Replies(reply))
        async with reranker(server) as model:
            with pytest.raises(ModelGarbled, match=r"of 3 documents.*base_url"):
                await model.scores(ASKED, SAID)


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (faults.ServerError(503, "out of order"), ModelUnavailable),
        (faults.TooManyRequests(), ModelUnavailable),
        (faults.WrongKey(), ModelRefused),
        (faults.UnknownModel(), ModelRefused),
        (faults.Garbage(), ModelError),
        (faults.CutJson(), ModelError),
        (faults.Resets(), ModelUnavailable),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_every_failure_is_an_error_of_the_model(fault: faults.Fault, error: type[ModelError]) -> None:
    with ScriptedModel() as server:
        server.fail(fault)
        async with reranker(server) as model:
            with pytest.raises(error):
                await model.scores(ASKED, SAID)
    assert len(server.requests) == 1, "somebody waits: nothing is tried again"


async def test_a_server_that_does_not_answer_is_left_alone_and_is_shown_in_health() -> None:
    with ScriptedModel() as server:
        server.fail(faults.NeverAnswers())
        async with reranker(server, timeout=0.05) as model:
            assert model.health().status == "active"
            for _ in range(2):
                with pytest.raises(ModelUnavailable, match="did not answer"):
                    await model.scores(ASKED, SAID)
            with pytest.raises(BreakerOpen):
                await model.scores(ASKED, SAID)
            assert model.health().status == "failing"


def test_a_reranker_is_configured_by_its_provider_and_model() -> None:
    given = {
        "rerank.model": "tei:bge",
        "rerank.candidates": 20,
        "providers.tei.base_url": "http://localhost:8080",
        "providers.tei.api": "tei",
    }
    found = load_settings(env={}, overrides=given)
    assert found.rerank == Reranking(Choice("tei", "bge"), candidates=20)
    assert {"tei:bge"} == {row.value for row in effective(found) if row.key == "rerank.model"}
    assert open_reranker(load_settings(env={}, overrides={"rerank.model": "none"})) is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"rerank.model": "nowhere:bge"}, "there is no provider 'nowhere'"),
        ({"rerank.model": "bge"}, '"provider:model"'),
        ({"rerank.candidates": 1}, "from 2 to 1,000"),
        ({"rerank.weight": 2}, "from 0 to 1"),
        (
            {"models.default": "box:llm", "providers.box.base_url": "http://box", "providers.box.api": "tei"},
            "rerank.model only",
        ),
        (
            {"rerank.model": "box:bge", "providers.box.base_url": "http://box", "providers.box.api": "piper"},
            "text to speech only",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_configuration_says_what_to_change(given: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        load_settings(env={}, overrides=given)


def test_the_check_of_the_configuration_asks_the_reranker(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedModel() as server:
        monkeypatch.setenv("AFORESAID_PROVIDERS__RANKS__BASE_URL", server.base_url)
        monkeypatch.setenv("AFORESAID_RERANK__MODEL", "ranks:some-reranker")
        checked = CliRunner().invoke(app, ["config", "--check", "--json"])
    assert checked.exit_code == 0, checked.output
    [found] = json.loads(checked.stdout)["models"]
    assert (found["model"], found["operations"], found["ok"]) == ("ranks:some-reranker", ["rerank"], True)
