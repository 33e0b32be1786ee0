"""What every embedder promises."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]
else:
    Vectors = "Vectors"


class Embedder(Protocol):
    """Gives each text a vector of length one, such that texts of similar meaning have similar vectors.

    `name` tells models apart: vectors of two names are never compared. The number of dimensions is whatever comes out.
    """

    @property
    def name(self) -> str:
        """The model, and whatever else makes its vectors different from those of another."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text, in order. Raises ModelError when the model cannot answer."""

    async def close(self) -> None:
        """Let go of what it holds. Closing twice is fine."""


@runtime_checkable
class Beginning(Protocol):
    """An embedder that can begin before anything else is done, while a task would wait for its turn."""

    def begin(self, text: str) -> asyncio.Future[Vectors]:
        """Begin to embed a text. The result has one row."""
