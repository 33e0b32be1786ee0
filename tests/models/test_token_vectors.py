"""Vectors of tokens, which the ranker compares."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aforesaid.errors import ModelError
from aforesaid.models import weights
from aforesaid.models.embed import LocalEmbedder
from aforesaid.models.embed.local import Encoder, load_encoder
from aforesaid.models.embed.token_vectors import DIMENSIONS, MOST_TOKENS, load_ranker, products, repacked_tokens

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


def test_stored_vectors_take_half_a_byte_per_number_and_come_back(encoder: Encoder) -> None:
    short, *_, long = encoder.encode(TEXTS)[1]
    made, counts = products([short.packed(), long.packed()], np.eye(DIMENSIONS, dtype=np.float32))
    assert counts.tolist() == [len(short.vectors), MOST_TOKENS]
    assert len(long.packed()) == 2 + MOST_TOKENS * DIMENSIONS / 2
    assert np.allclose(made[: counts[0]], np.clip(short.vectors, -0.45, 0.45), atol=0.45 / 16 + 1e-5)


def test_vectors_that_an_earlier_version_stored_are_compared_and_packed_anew(encoder: Encoder) -> None:
    (short, *_), asked = encoder.encode(TEXTS)[1], np.eye(DIMENSIONS, dtype=np.float32)
    earlier = (np.clip(np.rint(short.vectors * 100), -60, 60) + 60).astype(np.uint8).tobytes()
    made, counts = products([earlier, short.packed()], asked)
    assert counts.tolist() == [len(short.vectors)] * 2
    assert np.allclose(made[: counts[0]], np.clip(short.vectors, -0.45, 0.45), atol=0.45 / 16 + 0.0051)
    assert np.array_equal(products([repacked_tokens(earlier)], asked)[0], made[: counts[0]])
    assert repacked_tokens(short.packed()) == short.packed()


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
