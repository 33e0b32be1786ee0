"""Remote embedders behind the same wrappers, and how they are configured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from aforesaid.errors import InvalidInput, ModelGarbled, ModelUnavailable
from aforesaid.models.embed import LocalEmbedder, RemoteEmbedder, choose_embedder
from aforesaid.settings import Choice, Resilience, Route, Settings
from aforesaid.telemetry import Key, Metrics
from aforesaid.testing import ScriptedModel, faults
from aforesaid.testing.faults import HttpResponse, answer_json


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as started:
        yield started


async def test_the_settings_say_which_model_embeds(model: ScriptedModel) -> None:
    settings, metrics = model.settings(), Metrics()
    for wanted in (None, "scripted:scripted"):
        embedder = choose_embedder(wanted, settings, metrics=metrics)
        assert isinstance(embedder, RemoteEmbedder)
        assert embedder.name == f"scripted@{model.base_url}"
        vectors = await embedder.embed(["one", "two", "one"])
        assert vectors.shape == (3, 32)
        assert (vectors[0] == vectors[2]).all()
        await embedder.close()
    counted = metrics.snapshot()[Key("embed", "scripted:scripted")]
    assert counted.calls == 2
    assert counted.prompt_tokens > 0


def test_a_name_is_stronger_than_a_route(model: ScriptedModel) -> None:
    assert isinstance(choose_embedder(None, replace(model.settings(), embedder="local")), LocalEmbedder)
    assert choose_embedder("none", model.settings()) is None


def test_settings_that_cannot_work_are_refused(model: ScriptedModel) -> None:
    settings = model.settings()
    two = Route((Choice("scripted", "a"), Choice("scripted", "b")))
    with pytest.raises(InvalidInput, match="only one model can embed"):
        choose_embedder(None, replace(settings, routes={"embed": two}))
    with pytest.raises(InvalidInput, match="no provider 'scripted' is configured"):
        choose_embedder(None, Settings(routes=settings.routes))
    with pytest.raises(InvalidInput, match="unknown embedder 'nobody:x'"):
        choose_embedder("nobody:x", settings)


async def test_no_texts_need_no_call(model: ScriptedModel) -> None:
    embedder = RemoteEmbedder("m", model.base_url)
    assert len(await embedder.embed([])) == 0
    await embedder.close()
    assert not model.requests


@pytest.mark.parametrize(
    "data",
    [
        [[1.0, 2.0], [1.0]],
        [[1.0, "x"], [1.0, 2.0]],
        [[1.0, float("nan")], [1.0, 2.0]],
        [[1.0, 2.0]],
    ],
)
async def test_vectors_that_are_none_are_refused(model: ScriptedModel, data: list[list[float]]) -> None:
    class Odd(faults.Fault):
        def change(self, answer: HttpResponse) -> HttpResponse:  # noqa: ARG002
            rows = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(data)]
            return answer_json({"object": "list", "model": "m", "data": rows})

    model.fail(Odd())
    embedder = RemoteEmbedder("m", model.base_url)
    with pytest.raises(ModelGarbled):
        await embedder.embed(["one", "two"])
    await embedder.close()


async def test_a_server_that_is_down_is_left_alone_and_taken_back(model: ScriptedModel) -> None:
    embedder = RemoteEmbedder("m", model.base_url, resilience=Resilience(attempts=1, failures=2, probe_seconds=0.05))
    model.fail(faults.ServerError())
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            await embedder.embed(["one"])
    assert embedder.state().state == "open"
    with pytest.raises(ModelUnavailable, match="left alone after 2 failures"):
        await embedder.embed(["one"])
    model.heal()
    while embedder.state().state != "closed":
        try:
            vectors = await embedder.embed(["one"])
        except ModelUnavailable:
            continue
    assert np.isfinite(vectors).all()
    await embedder.close()


async def test_keys_of_the_environment_go_nowhere_by_themselves(
    model: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "meant-for-openai-alone")
    embedder = RemoteEmbedder("m", provider=model.provider())
    await embedder.embed(["one"])
    await embedder.close()
    assert "meant-for-openai-alone" not in str(model.requests)
