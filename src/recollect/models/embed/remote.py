"""Embeddings from any server that speaks OpenAI's `/v1/embeddings`: OpenAI, Ollama, vLLM, llama.cpp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from recollect.errors import ModelError
from recollect.models.embed.contract import Vectors

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_BATCH: Final = 64
_SECONDS: Final = 30.0


class RemoteEmbedder:
    """A model behind a base URL, such as `http://localhost:11434/v1` with `nomic-embed-text`."""

    def __init__(self, model: str, base_url: str | None = None, api_key: str | None = None) -> None:
        self._model = model
        self._base_url = base_url
        self._api_key = api_key
        self._client: AsyncOpenAI | None = None

    @property
    def name(self) -> str:
        """The model and where it is asked for."""
        return f"{self._model}@{self._base_url or 'openai'}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text, scaled to length one."""
        import numpy as np  # noqa: PLC0415
        from openai import OpenAIError  # noqa: PLC0415

        rows: list[list[float]] = []
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            try:
                # Asking for floats by name: not every server knows the packed form that the client would ask for.
                answer = await self._open().embeddings.create(model=self._model, input=batch, encoding_format="float")
            except OpenAIError as error:
                raise ModelError(f"{self.name} did not embed {len(batch)} texts: {error}") from error
            ordered = sorted(answer.data, key=lambda item: item.index)
            if len(ordered) != len(batch):
                raise ModelError(f"{self.name} returned {len(ordered)} vectors for {len(batch)} texts")
            rows.extend(item.embedding for item in ordered)
        vectors = np.array(rows, dtype=np.float32)
        if vectors.ndim != 2 or not np.isfinite(vectors).all():  # noqa: PLR2004 - a table
            raise ModelError(f"{self.name} returned vectors of different lengths or without numbers")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)

    async def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def _open(self) -> AsyncOpenAI:
        if self._client is None:
            try:
                from openai import AsyncOpenAI  # noqa: PLC0415
            except ImportError as error:
                raise ModelError("remote embedders need the OpenAI client: pip install 'recollect[models]'") from error
            self._client = AsyncOpenAI(base_url=self._base_url, api_key=self._api_key or "none", timeout=_SECONDS)
        return self._client
