"""Embeddings from any server that speaks OpenAI's `/v1/embeddings`: OpenAI, Ollama, vLLM, llama.cpp."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from aforesaid.errors import ModelGarbled
from aforesaid.models.client import Client, load_library
from aforesaid.models.embed.contract import Vectors
from aforesaid.models.redact import plain_address
from aforesaid.models.resilience import (
    Ask,
    Breaker,
    BreakerState,
    Checked,
    ConcurrencyLimit,
    Deadline,
    Guarded,
    Limited,
    Metered,
    Retry,
    Service,
    only,
)
from aforesaid.models.resilience.running_calls import RunningCalls
from aforesaid.settings import Provider, Resilience, Secret
from aforesaid.telemetry import Metrics

_BATCH: Final = 64
_OPENAI: Final = "https://api.openai.com/v1"

_Texts: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Rows:
    rows: list[list[float]]
    prompt_tokens: int
    reply_tokens: int = 0


class _Embeddings:
    """Requests the vectors of one batch."""

    def __init__(self, client: Client, model: str) -> None:
        self._client = client
        self._model = model

    async def call(self, ask: Ask[_Texts]) -> AsyncGenerator[_Rows, None]:
        """Yield the vectors of the batch."""
        try:
            # Asking for floats by name: not every server knows the packed form that the client would ask for.
            answer = await (await self._client.open()).embeddings.create(
                model=self._model, input=list(ask.what), encoding_format="float"
            )
            items = sorted(answer.data, key=lambda item: item.index)
            rows = [list(item.embedding) for item in items]
        except Exception as error:
            # Whatever the library raises, callers know ModelError alone; and its own texts may repeat the key.
            raise self._client.failure(error, self._model) from None
        if len(rows) != len(ask.what):
            raise ModelGarbled(f"{self._model} returned {len(rows)} vectors for {len(ask.what)} texts")
        tokens = getattr(answer.usage, "prompt_tokens", 0)
        yield _Rows(rows, tokens if isinstance(tokens, int) else 0)


class RemoteEmbedder:
    """A model behind a base URL, such as `http://localhost:11434/v1` with `nomic-embed-text`.

    `timeout` is for each batch of 64 texts, with all its retries. There is no fallback to another model: its vectors
    could not be compared with these.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        provider: Provider | None = None,
        timeout: float = 60.0,
        resilience: Resilience | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        address = base_url or _OPENAI
        host = provider or Provider(plain_address(address), address, None if api_key is None else Secret(api_key))
        settings = resilience or Resilience()
        self._model = model
        self._where = plain_address(host.base_url) if provider or base_url else "openai"
        self._timeout = timeout
        self._client = Client(host)
        self._calls = RunningCalls()
        self._breaker = Breaker(host.name, settings)
        self.metrics = metrics or Metrics()
        name = f"{host.name}:{model}"
        service: Service[_Texts, _Rows] = _Embeddings(self._client, model)
        service = Deadline(service, name, stall=settings.stall_seconds)
        service = Metered(service, name, self.metrics)
        service = Guarded(service, self._breaker)
        service = Limited(service, ConcurrencyLimit(host.name, host.concurrency))
        service = Checked(service, self._breaker)
        self._service = Retry(service, settings.attempts)

    @property
    def name(self) -> str:
        """The model and its base URL."""
        return f"{self._model}@{self._where}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text, scaled to length one."""
        import numpy as np  # noqa: PLC0415

        await load_library()
        rows: list[list[float]] = []
        for start in range(0, len(texts), _BATCH):
            end = asyncio.get_running_loop().time() + self._timeout
            batch = tuple(texts[start : start + _BATCH])
            async with self._calls.running():
                rows += (await only(self._service, Ask("embed", batch, answer_by=end, over_by=end))).rows
        if not rows:
            return np.zeros((0, 0), dtype=np.float32)
        try:
            vectors = np.array(rows, dtype=np.float32)
        except (ValueError, TypeError):
            vectors = np.empty(0, dtype=np.float32)
        if vectors.ndim != 2 or not np.isfinite(vectors).all():  # noqa: PLR2004 - a table
            raise ModelGarbled(f"{self.name} returned vectors of different lengths or without numbers")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.where(lengths == 0, 1, lengths)).astype(np.float32)

    def state(self) -> BreakerState:
        """Return the state of the server's circuit breaker."""
        return self._breaker.state()

    async def close(self) -> None:
        """Cancel running calls and close the connection."""
        self._calls.close()
        await self._client.close()
