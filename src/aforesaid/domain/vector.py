"""Vectors, as the store keeps and compares them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Unembedded(NamedTuple):
    """A message that an embedder has not seen yet, and the vector of an equal text if there is one."""

    seq: int
    text: str
    known: bytes | None
    space: str = ""
    """Its space, where each space is numbered for itself."""


class VectorRow(NamedTuple):
    """The vector of a message: half-precision numbers in a row."""

    seq: int
    text: str
    value: bytes
    space: str = ""
    """The space of the message, as it came with it."""


@dataclass(frozen=True, slots=True)
class Similar:
    """The messages of a scope that are most similar to a vector."""

    seqs: NDArray[np.int64]
    """At least as many of the most similar ones as were asked for, best first, then those asked for by name."""
    scores: NDArray[np.float32]
    """Their cosines."""
    mean: float
    deviation: float
    """How similar messages of this scope are on the whole."""
