"""Vectors of tokens, which the ranker compares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aforesaid.errors import ModelError
from aforesaid.models import weights
from aforesaid.models.embed import LocalEmbedder, TokenVectors
from aforesaid.models.embed.local import Encoder, load_encoder
from aforesaid.models.embed.token_vectors import DIMENSIONS, MOST_TOKENS, load_ranker, products

TEXTS = ["My dog is afraid of thunder.", "Der Hund hat Angst.", "", "我的狗怕打雷", "word " * 300]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(ranker=True)


def test_sentence_vectors_are_those_of_the_encoder_alone(encoder: Encoder) -> None:
    vectors, tokens = encoder.encode(TEXTS)
    assert np.abs(vectors - load_encoder().encode(TEXTS)).max() < 1e-5
    assert len(tokens) == len(TEXTS)


def test_every_token_has_a_vector_of_length_one_whatever_stands_beside_its_text(encoder: Encoder) -> None:
    together, alone = encoder.encode(TEXTS)[1], [encoder.encode([text])[1][0] for text in TEXTS]
    for one, other in zip(together, alone, strict=True):
        assert np.allclose(np.linalg.norm(one.vectors, axis=1), 1, atol=1e-5)
        assert np.allclose(one.vectors, other.vectors, atol=1e-4)
        assert (one.weights > 0).all()


def test_stored_vectors_fit_into_two_and_a_half_kilobytes_and_come_back(encoder: Encoder) -> None:
    short, *_, long = encoder.encode(TEXTS)[1]
    made, counts = products([short.packed(), long.packed()], np.eye(DIMENSIONS, dtype=np.float32))
    assert counts.tolist() == [len(short.vectors), MOST_TOKENS]
    assert len(long.packed()) <= 2_500
    assert np.allclose(made[: counts[0]], np.clip(short.vectors, -0.6, 0.6), atol=0.0051)


def test_stored_vectors_are_finite_numbers_of_half_precision() -> None:
    every = np.linspace(-1, 1, 401, dtype=np.float32)
    pairs = np.stack(np.meshgrid(every, every), axis=-1).reshape(-1, 2)
    for start in range(0, len(pairs), MOST_TOKENS * DIMENSIONS // 2):
        some = np.zeros((MOST_TOKENS, DIMENSIONS), dtype=np.float32)
        flat = pairs[start : start + MOST_TOKENS * DIMENSIONS // 2].reshape(-1)
        some.reshape(-1)[: len(flat)] = flat
        packed = TokenVectors(some, np.ones(len(some), dtype=np.float32)).packed()
        assert np.isfinite(np.frombuffer(packed, dtype=np.float16)).all()


async def test_a_text_that_was_just_embedded_is_not_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = LocalEmbedder()
    await embedder.embed(TEXTS)
    monkeypatch.setattr(embedder, "_encode", lambda texts: pytest.fail(f"{texts} encoded again"))
    assert [len(each.vectors) > 0 for each in await embedder.tokens(TEXTS)] == [True] * len(TEXTS)
    await embedder.close()


def test_other_weights_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "embed").mkdir()
    (tmp_path / "embed" / "ranker.npz").write_bytes(b"other weights")

    def elsewhere(_: str) -> Any:  # noqa: ANN401 - a folder
        return tmp_path

    monkeypatch.setattr(weights, "files", elsewhere)
    with pytest.raises(ModelError, match=r"weights in embed/ranker\.npz"):
        load_ranker.__wrapped__()
