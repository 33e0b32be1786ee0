"""An embedder without a model: for tests, and for machines on which the real one is too much."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from aforesaid.models.embed.contract import Vectors

_DIMENSIONS: Final = 256
_GRAM: Final = 4

_CACHED: Final = 4_096
"""Directions that are kept, in 4 MB: a text has few runs of letters that no other has, and making one takes long."""


class DeterministicEmbedder:
    """Adds up a fixed random direction for every run of four letters: texts that share spellings are similar."""

    name = f"deterministic-{_DIMENSIONS}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
        import numpy as np  # noqa: PLC0415 - not needed to import the package

        rows = np.zeros((len(texts), _DIMENSIONS), dtype=np.float32)
        for number, text in enumerate(texts):
            padded = f"  {text.casefold()}  "
            for gram, count in Counter(padded[at : at + _GRAM] for at in range(len(padded) - _GRAM + 1)).items():
                rows[number] += count * _direction(gram)
            rows[number] /= np.linalg.norm(rows[number]) or 1.0
        return rows

    async def close(self) -> None:
        """Do nothing."""


@lru_cache(_CACHED)
def _direction(gram: str) -> Vectors:
    """Return the direction of a run of letters. Nobody may change it."""
    import numpy as np  # noqa: PLC0415

    seed = int.from_bytes(blake2b(gram.encode(errors="replace"), digest_size=8).digest(), "big")
    direction: Vectors = np.random.default_rng(seed).standard_normal(_DIMENSIONS, dtype=np.float32)
    direction.setflags(write=False)
    return direction
