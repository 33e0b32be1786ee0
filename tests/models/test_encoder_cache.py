"""The caches of the encoder: they change how long a text takes, and nothing else."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aforesaid.models.embed.local import load_encoder
from aforesaid.models.embed.token_vectors import FirstLayers, TokenEncoder, WordTokenizer

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
    vectors, tokens = TokenEncoder(backend(), None).encode([text])
    assert np.abs(vectors - backend().encode([text])).max() < 1e-5
    assert tokens == []
