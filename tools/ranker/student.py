"""The ranker that ships: late interaction over token features of the built-in encoder.

Every token of a text gets a short vector. The score of a message for a question is, summed over the question's tokens,
the highest product with any token of the message, or, damped, of the messages before and after it. A question's tokens
have learned weights. Functions over a dictionary of parameters; `aforesaid.recall.ranker` computes the same in numpy.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import torch
from torch.nn import functional

FEATURES: Final = 1_280
KEPT: Final = 52
"""Maximum tokens of a message that are stored: 52 vectors of 24 bytes are 1,250 bytes."""


class Shape(NamedTuple):
    """The size of a ranker."""

    dimensions: int = 48
    width: int = 256
    """Hidden units beside the matrix, which see the mean of the text too. 0: the matrix alone."""
    whitened: float = 0.5
    """How far the first matrix levels the spread of the features: 0 not at all, 1 entirely."""


class Texts(NamedTuple):
    """Texts one after the other: the features of all their tokens, one row each, and where each token belongs."""

    features: Any
    text: Any
    """The number of the text of each token."""
    place: Any
    """The place of each token in its text."""
    lengths: Any


class Encoded(NamedTuple):
    """Token vectors of length one, the weights of the tokens as words of a question, and which tokens there are.

    A row for each text, padded to the longest.
    """

    vectors: Any
    weights: Any
    mask: Any


def new_parameters(shape: Shape, features: Any) -> dict[str, Any]:  # noqa: ANN401 - a tensor
    """Return untrained parameters. The matrix keeps the directions in which the features of tokens differ most.

    So the ranker begins with the similarity that tokens have in the encoder, and training only has to correct it.
    """
    device = features.device
    offset = features.mean(0)
    spread, directions = torch.linalg.eigh((features - offset).T @ (features - offset) / len(features))
    spread, directions = spread.flip(0)[: shape.dimensions], directions.flip(1)[:, : shape.dimensions]
    matrix = directions * (spread[0] / spread) ** (shape.whitened / 2)
    made = {
        "offset": offset,
        "head": matrix / matrix.norm(dim=0).mean(),
        "weight": torch.zeros(FEATURES, 1, device=device),
        "weight_offset": torch.zeros(1, device=device),
        "beside": torch.tensor([-0.2, -0.4], device=device),
        "scale": torch.full((1,), 2.5, device=device),
        "length": torch.zeros(1, device=device),
    }
    if shape.width:
        made |= {
            "hidden": torch.randn(FEATURES, shape.width, device=device) / FEATURES**0.5,
            "mean": torch.randn(FEATURES, shape.width, device=device) * 0.3 / FEATURES**0.5,
            "added": torch.zeros(shape.width, shape.dimensions, device=device),
            "hidden_weight": torch.zeros(shape.width, 1, device=device),
        }
    return made


def encode(parameters: dict[str, Any], texts: Texts, dropout: float = 0.0) -> Encoded:
    """Return the token vectors of texts."""
    features = functional.dropout(texts.features.float() - parameters["offset"], dropout, dropout > 0)
    lengths = texts.lengths[:, None]
    made = features @ parameters["head"]
    raw = features @ parameters["weight"]
    if "hidden" in parameters:
        mean = features.new_zeros(len(lengths), FEATURES).index_add(0, texts.text, features) / lengths
        inner = torch.relu(features @ parameters["hidden"] + (mean @ parameters["mean"])[texts.text])
        made = made + functional.dropout(inner, dropout, dropout > 0) @ parameters["added"]
        raw = raw + inner @ parameters["hidden_weight"]
    vectors = functional.normalize(made, dim=-1)
    weights = functional.softplus(raw.squeeze(-1) + parameters["weight_offset"])
    mask = (torch.arange(int(texts.lengths.max()), device=features.device)[None] < lengths).float()
    places = texts.text, texts.place
    padded = vectors.new_zeros(*mask.shape, vectors.shape[-1]).index_put(places, vectors)
    return Encoded(padded, torch.zeros_like(mask).index_put(places, weights), mask)


def kept(encoded: Encoded, most: int = KEPT) -> Encoded:
    """Return the tokens with the highest weights, as many as are stored."""
    if encoded.mask.shape[1] <= most:
        return encoded
    best = (encoded.weights + encoded.mask).topk(most, dim=1).indices
    vectors = encoded.vectors.gather(1, best[..., None].expand(-1, -1, encoded.vectors.shape[-1]))
    return Encoded(vectors, encoded.weights.gather(1, best), encoded.mask.gather(1, best))


def rounded(encoded: Encoded) -> Encoded:
    """Return the vectors as they are stored: in hundredths, none beyond 0.6."""
    return encoded._replace(vectors=(encoded.vectors * 100).round().clamp(-60, 60) / 100)


def scores(parameters: dict[str, Any], asked: Encoded, said: Encoded, before: Any, after: Any) -> Any:  # noqa: ANN401 - tensors
    """Return the score of every message for every question.

    `before` and `after` are the places of each message's neighbours; its own place where there is none.
    """
    places = asked.mask.nonzero(as_tuple=True)
    # One row for each token of a question, one column for each message.
    best = torch.cat([_highest(rows, said) for rows in asked.vectors[places].split(256)])
    damping = torch.sigmoid(parameters["beside"])
    best = torch.maximum(best, torch.maximum(best[:, before] * damping[0], best[:, after] * damping[1]))
    shares = (asked.weights / asked.weights.sum(1, keepdim=True))[places]
    summed = best.new_zeros(len(asked.mask), best.shape[1]).index_add(0, places[0], best * shares[:, None])
    return summed * parameters["scale"].exp() + parameters["length"] * said.mask.sum(1).log()


def _highest(rows: Any, said: Encoded) -> Any:  # noqa: ANN401 - tensors
    products = torch.einsum("qd,mtd->qmt", rows, said.vectors)
    return products.masked_fill(said.mask[None] == 0, -1.0).amax(-1)
