"""Vectors as stores keep and compare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Unembedded(NamedTuple):
    """A message that is not embedded yet, and the vector of an equal text if there is one."""

    seq: int
    text: str
    known: bytes | None
    space: str = ""
    """Its space, in stores that number each space separately."""


class VectorRow(NamedTuple):
    """The vector of a message, as half-precision floats."""

    seq: int
    text: str
    value: bytes
    """Empty for a message without a text: it gets no vector, but the embedder has processed it."""
    space: str = ""
    """The space of the message, as it came with it."""


@dataclass(frozen=True, slots=True)
class Similar:
    """The messages of a scope that are most similar to a vector."""

    seqs: NDArray[np.int64]
    """At least the requested number of messages, most similar first, then those requested by id."""
    scores: NDArray[np.float32]
    """Their cosine similarities."""
    mean: float
    deviation: float
    """The average similarity of the scope's messages to the query."""
