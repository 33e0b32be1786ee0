"""Embedders with a cache, and the vectors of messages."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeGuard

from cachetools import LRUCache

from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope, direct_thread
from aforesaid.errors import ModelError
from aforesaid.extras import np, re
from aforesaid.models.embed.contract import Beginning, Embedder, Forgetting, ReadingEmbedder, TokenEmbedder, Vectors
from aforesaid.models.embed.remote import RemoteEmbedder
from aforesaid.models.embed.token_vectors import TokenVectors
from aforesaid.models.reader import Reading
from aforesaid.store import Store
from aforesaid.store.searches import MessageVectors as MessageVectorsQuestion
from aforesaid.store.vector_matrix import packed, unpacked
from aforesaid.telemetry import Metrics, kind_of
from aforesaid.text.sentences import split_sentences

if TYPE_CHECKING:
    from numpy.typing import NDArray


_log: Final = logging.getLogger("aforesaid.embedding")

_MOST_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of the cached vectors: 2,048 of the built-in encoder, several batches of upkeep."""
_ASKED: Final = re.compile("[?？؟]")
_PLAUSIBLE: Final = 0.03
"""Least probability that a text asks, where its words do and it has no question mark, as where it was spoken."""
_LIKELY: Final = 0.12
"""The same of a text that only may ask by its words."""
_SURE: Final = 0.3
"""The same of a text of several clauses."""
_MAY_ASK: Final = frozenset({"tell", "correct", "feel", "greet", "thank"})
"""What a message wants beside which it may ask. A riddle and its answer are a joke."""


class _Batch:
    """Texts that are being embedded together, and how many callers wait for them."""

    def __init__(self, texts: Sequence[str], vectors: asyncio.Future[Vectors]) -> None:
        self.rows: Final = {text: row for row, text in enumerate(texts)}
        self._vectors: Final = vectors
        self._waiting = 0
        self.abandoned = False
        """Whether the call was cancelled. Nobody may wait for it any more."""

    async def wait(self) -> Vectors:
        """Return the vectors. If all callers are cancelled, so is the call."""
        self._waiting += 1
        try:
            # One cancelled caller must not cancel the call of others.
            return await asyncio.shield(self._vectors)
        except asyncio.CancelledError:
            if self._waiting == 1:
                self.abandoned = True
                self._vectors.cancel()
            raise
        finally:
            self._waiting -= 1


class CachingEmbedder:
    """An embedder with a cache of recent texts. `metrics` count its calls, unless it counts them itself."""

    def __init__(self, inner: Embedder, metrics: Metrics | None = None, *, most_bytes: int = _MOST_BYTES) -> None:
        self.inner: Final = inner
        self._metrics: Final = None if isinstance(inner, RemoteEmbedder) else metrics
        # Looked up once: checking against a protocol takes longer than embedding a word.
        self._begin_inner: Final = inner.begin if isinstance(inner, Beginning) else None
        self._with_tokens: Final = inner if isinstance(inner, TokenEmbedder) else None
        self.reading: Final = inner if isinstance(inner, ReadingEmbedder) else None
        self._most_bytes: Final = most_bytes
        self._kept = self._new_cache()
        self._coming: dict[tuple[asyncio.AbstractEventLoop, str], asyncio.Future[Vectors]] = {}
        """Texts that are embedded alone, because somebody waits for them."""
        self._batches: dict[tuple[asyncio.AbstractEventLoop, str], _Batch] = {}
        """The batch of each text that is embedded with others."""
        self.error: str | None = None
        """Why the last call failed; None if it did not."""

    @property
    def name(self) -> str:
        return self.inner.name

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text. A single text does not wait for a batch that has it: a batch takes long."""
        if len(texts) == 1:
            return await self._one(texts[0])
        if not texts:
            return await self.inner.embed(texts)
        loop = asyncio.get_running_loop()
        # Before the first await: other tasks change the cache and the batches while this one waits.
        known = {text: row for text in texts if (row := self._kept.get(text)) is not None}
        alone = {text: self._coming[loop, text] for text in texts if text not in known and (loop, text) in self._coming}
        new = [text for text in dict.fromkeys(texts) if text not in known and text not in alone]
        begun = {
            text: batch
            for text in new
            if (batch := self._batches.get((loop, text))) is not None and not batch.abandoned
        }
        if fresh := [text for text in new if text not in begun]:
            begun |= dict.fromkeys(fresh, self._begin_batch(loop, fresh))
        for batch in dict.fromkeys(begun.values()):
            vectors = await batch.wait()
            known |= {text: vectors[row] for text, row in batch.rows.items() if begun.get(text) is batch}
        for text, coming in alone.items():
            known[text] = (await asyncio.shield(coming))[0]
        return np.stack([known[text] for text in texts])

    @property
    def token_name(self) -> str | None:
        return None if self._with_tokens is None else self._with_tokens.token_name

    async def tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        if self._with_tokens is None:
            raise ModelError(f"{self.name} has no token vectors")
        return await self._with_tokens.tokens(texts)

    async def read(self, texts: Sequence[str]) -> list[Reading]:
        if self.reading is None:
            raise ModelError(f"{self.name} does not read messages")
        return await self.reading.read(texts)

    async def close(self) -> None:
        await self.inner.close()

    def expect(self, text: str) -> None:
        """Start embedding a text that will be requested soon."""
        if text not in self._kept:
            self._begin(text)

    def forget_all(self) -> None:
        # A new one: what is being embedded now goes into the one that was there when it began.
        self._kept = self._new_cache()
        if isinstance(self.inner, Forgetting):
            self.inner.forget_all()

    def _new_cache(self) -> LRUCache[str, Vectors]:
        return LRUCache(self._most_bytes, getsizeof=lambda row: row.nbytes)

    async def _one(self, text: str) -> Vectors:
        kept = self._kept.get(text)
        # A cancelled caller must not cancel the call of others.
        return kept[None] if kept is not None else await asyncio.shield(self._begin(text))

    def _begin(self, text: str) -> asyncio.Future[Vectors]:
        key = asyncio.get_running_loop(), text
        coming = self._coming.get(key)
        if coming is None:
            begin, kept, began = self._begin_inner, self._kept, perf_counter()
            coming = asyncio.ensure_future(self.inner.embed([text])) if begin is None else begin(text)
            self._coming[key] = coming

            def arrived(ended: asyncio.Future[Vectors]) -> None:
                del self._coming[key]
                self._keep(kept, [text], ended, began)

            coming.add_done_callback(arrived)
        return coming

    def _begin_batch(self, loop: asyncio.AbstractEventLoop, texts: list[str]) -> _Batch:
        began, vectors = perf_counter(), asyncio.ensure_future(self.inner.embed(texts))
        batch, kept = _Batch(texts, vectors), self._kept
        self._batches |= dict.fromkeys([(loop, text) for text in texts], batch)

        def arrived(ended: asyncio.Future[Vectors]) -> None:
            for text in texts:
                if self._batches.get((loop, text)) is batch:
                    del self._batches[loop, text]
            self._keep(kept, texts, ended, began)

        vectors.add_done_callback(arrived)
        return batch

    def _keep(
        self, kept: LRUCache[str, Vectors], texts: Sequence[str], ended: asyncio.Future[Vectors], began: float
    ) -> None:
        """Count a call, and cache its vectors. Callers get an exception; without a caller it is ignored."""
        error = asyncio.CancelledError() if ended.cancelled() else ended.exception()
        if self._metrics is not None:
            failure = None if error is None else kind_of(error)
            self._metrics.called("embed", self.name, perf_counter() - began, failure=failure)
        if ended.cancelled():
            return
        if error is not None:
            self.error = str(error) if isinstance(error, ModelError) else f"{type(error).__name__}: {error}"
            return
        self.error = None
        for text, row in zip(texts, ended.result(), strict=False):
            if row.nbytes <= kept.maxsize:
                # A copy: a view would keep the vectors of the whole batch in memory.
                kept[text] = row.copy()


MOST_CHARACTERS: Final = 800
"""Maximum characters of a text that are embedded. The rest of a message is found by its words."""


def reads(embedder: Embedder | None) -> TypeGuard[ReadingEmbedder]:
    """Return whether an embedder also reads messages. One that caches another does so if that does."""
    if isinstance(embedder, CachingEmbedder):
        return embedder.reading is not None
    return isinstance(embedder, ReadingEmbedder)


async def read_messages(embedder: Embedder | None, texts: Sequence[str]) -> list[Reading]:
    """Return what each text wants and tells; only wishes, by rules, without the encoder or where it fails."""
    read = [text[:MOST_CHARACTERS] for text in texts]
    if reads(embedder) and all(map(str.strip, read)):
        try:
            return await _asking(embedder, read, await embedder.read(read))
        except ModelError as error:
            _log.warning("what messages want is read by rules: %s", error)
    from aforesaid.models.offline.request_rules import intents_by_rules  # noqa: PLC0415 - brings all rules

    return [Reading(intents_by_rules(text)) for text in read]


async def _asking(embedder: ReadingEmbedder, texts: Sequence[str], readings: Sequence[Reading]) -> list[Reading]:
    """Return what texts want, where one of several sentences may ask: "Which wine? My boss comes."."""
    made, parts = list(readings), list[tuple[int, str]]()
    for number, (text, reading) in enumerate(zip(texts, readings, strict=True)):
        if reading.intents.best not in _MAY_ASK:
            continue
        sentences = split_sentences(text)
        if len(sentences) > 1:
            parts += [(number, sentence) for sentence in sentences if _ASKED.search(sentence)]
        elif len(sentences) == 1 and not _ASKED.search(text) and _asks_aloud(text, reading.intents.of("ask")):
            made[number] = reading._replace(intents=reading.intents.asking())
    if parts:
        for (number, _), part in zip(parts, await embedder.read([part for _, part in parts]), strict=True):
            if part.intents.best == "ask":
                made[number] = made[number]._replace(intents=part.intents)
    return made


def _asks_aloud(text: str, probability: float) -> bool:
    """Return whether a sentence without a question mark asks, as spoken ones do."""
    if probability < _PLAUSIBLE:
        return False
    from aforesaid.models.offline.request_rules import asks, is_clause, may_be_asked  # noqa: PLC0415 - brings all rules

    if asks(text) and (probability >= _SURE or is_clause(text)):
        return True
    return probability >= _LIKELY and may_be_asked(text)


class MessageVectors:
    """Returns vectors of messages: those in the store, and new ones of messages that upkeep has not embedded yet."""

    def __init__(self, store: Store, embedder: Embedder, held: Mapping[int, NDArray[np.float32]] | None = None) -> None:
        """`held` has vectors of a space that are known already, by sequence number."""
        self._store = store
        self.embedder = embedder
        self._held = held or {}

    async def holding(self, messages: Sequence[Message]) -> MessageVectors:
        """Return these vectors, with those of messages of a space that are needed several times. Raises ModelError."""
        rows = await self.of(messages)
        seqs = [message.seq for message in messages]
        return MessageVectors(self._store, self.embedder, dict(zip(seqs, rows, strict=True)))

    async def of(self, messages: Sequence[Message]) -> Vectors:
        """Return one row for each message; no message may be without text. Raises ModelError."""
        if not messages:
            return np.zeros((0, 0), dtype=np.float32)
        found: dict[int, Vectors] = {each.seq: self._held[each.seq] for each in messages if each.seq in self._held}
        owned: dict[tuple[str, str], list[int]] = defaultdict(list)
        for message in (message for message in messages if message.seq not in found):
            owned[message.space, message.user].append(message.seq)
        for (space, user), seqs in owned.items():
            found |= await self.stored(Scope(space, user, direct_thread(user)), seqs)
        missing = [message for message in messages if message.seq not in found]
        if missing:
            made = await self.of_texts([message.text for message in missing])
            found |= {message.seq: row for message, row in zip(missing, made, strict=True)}
        return np.stack([found[message.seq] for message in messages])

    async def of_texts(self, texts: Sequence[str]) -> Vectors:
        """Return one row for each text; no text may be empty. Raises ModelError."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        made = await self.embedder.embed([text[:MOST_CHARACTERS] for text in texts])
        # As precise as a stored vector, so that a result does not depend on what was embedded first.
        return unpacked(packed(made))

    async def stored(self, scope: Scope, seqs: Sequence[int]) -> dict[int, NDArray[np.float32]]:
        """Return the vectors that the store has of a user's messages, by sequence number."""
        stored = await self._store.read(MessageVectorsQuestion(scope, self.embedder.name, list(dict.fromkeys(seqs))))
        # A message without text has an empty vector.
        having = {seq: value for seq, value in stored.items() if value}
        return dict(zip(having, unpacked(list(having.values())), strict=True))
