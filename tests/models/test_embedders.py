"""Embedders: the one that comes along, any OpenAI-compatible server, and the one for tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, ClassVar

import numpy as np
import pytest

from aforesaid.errors import InvalidInput, ModelError
from aforesaid.models.embed import DeterministicEmbedder, LocalEmbedder, RemoteEmbedder, choose_embedder, local


async def test_the_deterministic_embedder_gives_the_same_vector_every_time_and_similar_ones_to_similar_words() -> None:
    first, again, near, far = await DeterministicEmbedder().embed(["kitten", "kitten", "kittens", "spreadsheet"])
    assert (first == again).all()
    assert np.linalg.norm(first) == pytest.approx(1, abs=1e-5)
    assert first @ near > first @ far


@pytest.fixture(scope="module")
def use() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.mark.req("D7")
async def test_the_local_embedder_knows_what_is_meant_in_many_languages(use: LocalEmbedder) -> None:
    said = ["My sister adopted a small dog", "The invoice is due on Friday", "Wir fahren morgen ans Meer"]
    asked = ["Who got a puppy?", "Wann muss die Rechnung bezahlt werden?", "¿Cuándo vamos a la playa?"]
    vectors, questions = await use.embed(said), await use.embed(asked)
    assert vectors.shape == (3, 512)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    assert [int(row.argmax()) for row in questions @ vectors.T] == [0, 1, 2]
    assert (await use.embed([])).shape == (0, 512)


async def test_the_event_loop_goes_on_while_the_local_embedder_works(use: LocalEmbedder) -> None:
    await use.embed(["warm"])
    working = asyncio.create_task(use.embed([f"sentence number {number}" for number in range(128)]))
    turns = 0
    while not working.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert len(await working) == 128
    # Were the work done on the loop, it would have had one turn for each of the four batches at most.
    assert turns > 8


async def test_weights_that_are_not_the_expected_ones_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_WEIGHTS", "0" * 64)
    with pytest.raises(ModelError, match="not the ones expected"):
        await LocalEmbedder().embed(["hello"])


class FakeServer(BaseHTTPRequestHandler):
    """Speaks just enough of OpenAI's API for embeddings."""

    requests: ClassVar[list[dict[str, Any]]] = []
    answer: ClassVar[Any] = None

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.requests.append({"path": self.path, **body})
        status, reply = type(self).answer(body)
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[str]:
    FakeServer.requests = []
    with ThreadingHTTPServer(("127.0.0.1", 0), FakeServer) as running:
        thread = Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/v1"
        running.shutdown()
        thread.join()


def embeddings(body: dict[str, Any]) -> tuple[int, object]:
    data = [
        {"object": "embedding", "index": at, "embedding": [len(text), 3.0]} for at, text in enumerate(body["input"])
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return 200, {"object": "list", "model": body["model"], "data": data[::-1], "usage": usage}


@pytest.mark.req("D7")
async def test_any_openai_compatible_server_can_embed(server: str) -> None:
    FakeServer.answer = staticmethod(embeddings)
    embedder = choose_embedder(f"nomic-embed-text@{server}")
    assert isinstance(embedder, RemoteEmbedder)
    vectors = await embedder.embed([f"{'x' * (number % 7 + 1)}" for number in range(100)])
    await embedder.close()
    assert vectors.shape == (100, 2)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert vectors[3] == pytest.approx([0.8, 0.6])
    assert [request["path"] for request in FakeServer.requests] == ["/v1/embeddings"] * 2
    assert FakeServer.requests[0]["encoding_format"] == "float"
    assert embedder.name == f"nomic-embed-text@{server}"


@pytest.mark.parametrize(
    "reply",
    [
        lambda _body: (400, {"error": {"message": "no such model"}}),
        lambda body: (200, {**embeddings(body)[1], "data": []}),  # type: ignore[dict-item]
    ],
)
async def test_a_server_that_fails_is_a_model_error(server: str, reply: object) -> None:
    FakeServer.answer = staticmethod(reply)  # type: ignore[arg-type]
    embedder = RemoteEmbedder("some-model", server)
    with pytest.raises(ModelError, match="some-model"):
        await embedder.embed(["hello", "world"])
    await embedder.close()


def test_embedders_are_chosen_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert choose_embedder("none") is None
    assert isinstance(choose_embedder("local"), LocalEmbedder)
    monkeypatch.setenv("AFORESAID_EMBEDDER", "none")
    assert choose_embedder(None) is None
    monkeypatch.delenv("AFORESAID_EMBEDDER")
    assert isinstance(choose_embedder(None), LocalEmbedder)
    for wrong in ("", "gpt", "@http://x", "model@ftp://x"):
        if wrong:
            with pytest.raises(InvalidInput, match="unknown embedder"):
                choose_embedder(wrong)
