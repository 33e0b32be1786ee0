"""Embedders: the built-in one with its caches and its thread, any OpenAI-compatible server, and the one for tests."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aforesaid.errors import InvalidInput, ModelError
from aforesaid.models import weights
from aforesaid.models.embed import DeterministicEmbedder, LocalEmbedder, RemoteEmbedder, choose_embedder, local
from aforesaid.models.embed.local import Encoder, Worker, load_encoder
from aforesaid.models.embed.token_vectors import (
    DIMENSIONS,
    MOST_TOKENS,
    FirstLayers,
    TokenEncoder,
    WordTokenizer,
    load_ranker,
    products,
    repacked_tokens,
)


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


async def keep_busy(worker: Worker) -> tuple[asyncio.Future[None], threading.Event]:
    """Occupy the thread until the event is set."""
    busy, goes_on = threading.Event(), threading.Event()

    def first() -> None:
        busy.set()
        goes_on.wait(60)

    begun = worker.submit(first)
    await asyncio.to_thread(busy.wait, 60)
    return begun, goes_on


async def test_urgent_calls_come_before_others_that_wait() -> None:
    worker, done = Worker("test"), list[str]()
    begun, goes_on = await keep_busy(worker)
    waiting = [worker.submit(partial(done.append, name)) for name in ("batch 1", "batch 2")]
    waiting += [worker.submit(partial(done.append, name), urgent=True) for name in ("question 1", "question 2")]
    goes_on.set()
    await asyncio.gather(begun, *waiting)
    worker.stop()
    assert done == ["question 1", "question 2", "batch 1", "batch 2"]


async def test_a_call_that_nobody_waits_for_any_more_is_not_made() -> None:
    worker, done = Worker("test"), list[str]()
    begun, goes_on = await keep_busy(worker)
    given_up = worker.submit(lambda: done.append("given up"))
    given_up.cancel()
    last = worker.submit(lambda: done.append("last"))
    goes_on.set()
    await asyncio.gather(begun, last)
    worker.stop()
    assert done == ["last"]


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=80) | st.text("ab c\n\t▁\u0301é½ﬁ的 👩", max_size=40)


@cache
def backend() -> Any:  # noqa: ANN401 - of a package without types
    return load_encoder()._model


@cache
def tokenizer() -> WordTokenizer:
    return WordTokenizer(backend().sp)


@given(TEXTS)
@settings(max_examples=200)
def test_texts_are_split_into_the_tokens_of_the_encoders_own_tokenizer(text: str) -> None:
    assert tokenizer().ids(text) == backend().sp.encode(text, out_type=int, add_bos=True, add_eos=True)


def test_a_token_that_was_dropped_from_the_cache_is_computed_again() -> None:
    layers = FirstLayers(backend(), 8)
    first = layers.projected(layers.rows(np.array([5, 6, 7, 8])), 0)
    layers.rows(np.array([9, 10, 11, 12]))
    layers.rows(np.array([13, 14, 15, 16]))
    assert np.allclose(layers.projected(layers.rows(np.array([5, 6, 7, 8])), 0), first, atol=1e-5)


def test_the_most_used_tokens_stay_in_the_cache() -> None:
    layers = FirstLayers(backend(), 8)
    often = np.array([5, 6])
    for other in range(10, 60, 2):
        rows = layers.rows(np.concatenate([often, often, [other, other + 1]]))
        assert len(set(rows.tolist())) == 4
        assert rows[:2].tolist() == layers.rows(often).tolist()


@pytest.mark.parametrize("text", ["", "tea " * 2_000, " ".join(f"w{number}" for number in range(3_000))])
def test_a_text_of_any_length_has_the_vector_of_the_encoder(text: str) -> None:
    vectors, tokens, _ = TokenEncoder(backend(), None).encode([text])
    assert np.abs(vectors - backend().encode([text])).max() < 1e-5
    assert tokens == []


SENTENCES = ["My dog is afraid of thunder.", "Der Hund hat Angst.", "", "我的狗怕打雷", "word " * 300]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(ranker=True)


def test_sentence_vectors_are_those_of_the_encoder_alone(encoder: Encoder) -> None:
    vectors, tokens, _ = encoder.encode(SENTENCES)
    assert np.abs(vectors - load_encoder().encode(SENTENCES)).max() < 1e-5
    assert len(tokens) == len(SENTENCES)


def test_every_token_has_a_vector_of_length_one_whatever_stands_beside_its_text(encoder: Encoder) -> None:
    together, alone = encoder.encode(SENTENCES)[1], [encoder.encode([text])[1][0] for text in SENTENCES]
    for one, other in zip(together, alone, strict=True):
        assert np.allclose(np.linalg.norm(one.vectors, axis=1), 1, atol=1e-5)
        assert np.allclose(one.vectors, other.vectors, atol=1e-4)
        assert (one.weights > 0).all()


@pytest.mark.defect("X4")
def test_stored_vectors_take_half_a_byte_per_number_and_come_back(encoder: Encoder) -> None:
    short, *_, long = encoder.encode(SENTENCES)[1]
    made, counts = products([short.packed(), long.packed()], np.eye(DIMENSIONS, dtype=np.float32))
    assert counts.tolist() == [len(short.vectors), MOST_TOKENS]
    assert len(long.packed()) == 2 + MOST_TOKENS * DIMENSIONS / 2
    assert np.allclose(made[: counts[0]], np.clip(short.vectors, -0.45, 0.45), atol=0.45 / 16 + 1e-5)


def test_vectors_that_an_earlier_version_stored_are_compared_and_packed_anew(encoder: Encoder) -> None:
    (short, *_), asked = encoder.encode(SENTENCES)[1], np.eye(DIMENSIONS, dtype=np.float32)
    earlier = (np.clip(np.rint(short.vectors * 100), -60, 60) + 60).astype(np.uint8).tobytes()
    made, counts = products([earlier, short.packed()], asked)
    assert counts.tolist() == [len(short.vectors)] * 2
    assert np.allclose(made[: counts[0]], np.clip(short.vectors, -0.45, 0.45), atol=0.45 / 16 + 0.0051)
    assert np.array_equal(products([repacked_tokens(earlier)], asked)[0], made[: counts[0]])
    assert repacked_tokens(short.packed()) == short.packed()


async def test_a_text_that_was_just_embedded_is_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = LocalEmbedder()
    await embedder.embed(SENTENCES)
    monkeypatch.setattr(embedder, "_encode", lambda texts: pytest.fail(f"{texts} encoded again"))
    assert [len(each.vectors) > 0 for each in await embedder.tokens(SENTENCES)] == [True] * len(SENTENCES)
    await embedder.close()


def test_other_weights_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "embed").mkdir()
    (tmp_path / "embed" / "ranker.npz").write_bytes(b"other weights")

    def elsewhere(_: str) -> Any:  # noqa: ANN401 - a folder
        return tmp_path

    monkeypatch.setattr(weights, "files", elsewhere)
    with pytest.raises(ModelError, match=r"weights in embed/ranker\.npz"):
        load_ranker.__wrapped__()
