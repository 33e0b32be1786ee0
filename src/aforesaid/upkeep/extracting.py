"""Embeds messages, extracts memories from them and expires memories."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from aforesaid.background import BackgroundLoop, BackgroundLoops
from aforesaid.domain.checks import ComponentStatus, counted, moment, now
from aforesaid.domain.hit import Unembedded, VectorRow
from aforesaid.domain.memory import NoteVector, Unextracted
from aforesaid.domain.message import Message
from aforesaid.domain.report import Component
from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import wants_memory
from aforesaid.errors import ModelError, NotFound, SourcesChanged, StoreError
from aforesaid.models.client import shown
from aforesaid.models.embed import CachingEmbedder, Embedder, RemoteEmbedder, TokenEmbedder
from aforesaid.models.embed.caching import MOST_CHARACTERS, reads
from aforesaid.models.embed.token_vectors import repacked_tokens
from aforesaid.profiles.effective import settings_of
from aforesaid.store.memories import ChangeMemory, DueMemories, MarkExtracted, UnextractedUsers
from aforesaid.store.people import Totals
from aforesaid.store.searches import AddNoteVectors, AddVectors, UnembeddedMessages, UnembeddedNotes
from aforesaid.store.vector_matrix import packed, repacked
from aforesaid.telemetry import Metrics
from aforesaid.upkeep.upkeep import Done, GiveWay, UpkeepTask, at_once, repeated

if TYPE_CHECKING:
    from aforesaid.facts import Extractor
    from aforesaid.store import Progress, Store


_log: Final = logging.getLogger("aforesaid.extraction")

_USERS: Final = 100
_EXPIRING: Final = 200
_MOST_COUNTED: Final = 1_000
_PASSES: Final = 3
"""Maximum passes over the waiting users when other processes change the same things."""
_DEBOUNCE_SECONDS: Final = 0.2


class Extracting(UpkeepTask):
    name = "remembered"

    def __init__(
        self,
        store: Store,
        make: Callable[[], Extractor],
        *,
        enabled: bool,
        observe: Callable[[Scope, int, Sequence[Message]], Awaitable[object]] | None = None,
        metrics: Metrics | None = None,
        loops: BackgroundLoops | None = None,
        give_way: GiveWay = at_once,
    ) -> None:
        work = repeated(lambda: self._run_once("learning", self._work(None, complete=True)))
        loop = BackgroundLoop("learning", work, debounce_seconds=_DEBOUNCE_SECONDS, log=_log)
        super().__init__(store, loop, metrics, loops, give_way)
        self._make = make
        self._observe = observe
        self._made: Extractor | None = None
        self._enabled = enabled
        self._counts: Counter[str] = Counter()
        self._overtaken = False

    def nudge(self, within_seconds: float = 0.0) -> None:
        if self._enabled:
            self._loop.wake(within_seconds)

    async def run(self, progress: Progress | None = None) -> Done:
        """Extract from all pending messages, including exchanges without a reply, and expire memories."""
        return await self._run_once("learning", self._work(progress, complete=False))

    async def health(self) -> Component:
        """Return the health, and counters of added and dropped memories."""
        issues = () if self._error is None else (self._error,)
        facts = [("learning", "on" if self._enabled else "off")]
        if self._enabled:
            facts.append(("waiting", await self._behind()))
        facts += [(what, str(number)) for what, number in sorted(self._counts.items())]
        return Component("memories", "failing" if issues else "active", self._last_update, issues, tuple(facts))

    async def waiting(self, limit: int) -> list[Unextracted]:
        """Expire memories, and return waiting users for the workers."""
        await self._expire()
        return await self._store.read(UnextractedUsers(limit)) if self._enabled else []

    async def look_through_one(self, user: Unextracted) -> Done:
        """Extract memories from a user's complete exchanges. Finds nothing if another worker already did."""
        try:
            return Done(await self._look_through(user, None, complete=True))
        except ModelError as error:
            self._error = str(error)
            return Done(0, str(error))

    async def learn_from(self, scope: Scope) -> bool:
        """Extract from the pending messages of one user now. Return whether memories are extracted at all."""
        async with self._one_at_a_time:
            pending = await self._store.read(UnextractedUsers(_USERS)) if self._enabled else []
            for user in pending:
                if user.scope[:2] == scope[:2]:
                    await self._look_through(user, None, complete=False)
        return self._enabled

    async def _work(self, progress: Progress | None, *, complete: bool) -> Done:
        done = 0
        async with self._one_at_a_time:
            try:
                await self._expire()
                for _ in range(_PASSES if self._enabled else 0):
                    self._overtaken = False
                    last: Scope | None = None
                    while page := await self._store.read(UnextractedUsers(_USERS, last)):
                        for user in page:
                            done += await self._look_through(user, progress, complete=complete)
                        if len(page) < _USERS:
                            break
                        last = page[-1].scope
                    if not self._overtaken:
                        break
            except ModelError as error:
                return Done(done, str(error))
            if done:
                self._last_update = moment(now())
            return Done(done)

    async def _look_through(self, user: Unextracted, progress: Progress | None, *, complete: bool) -> int:
        """Extract from one user's messages in batches. Return the number of memories."""
        scope, after, learned, spoken = user.scope, user.after, 0, False
        first: Sequence[Message] = ()
        if self._made is None:
            # In a thread, because loading the rules takes a moment.
            self._made = await asyncio.to_thread(self._make)
        extractor = self._made
        settings = await settings_of(self._store, scope)
        if not wants_memory(settings):
            # Messages written while memory is off are not processed later either.
            with suppress(NotFound, SourcesChanged):
                await self._store.apply([MarkExtracted(scope, user.after, user.last)])
            return 0
        try:
            while after < user.last and (batch := await extractor.next_batch(scope, after, complete=complete)):
                await self._give_way()
                result = await extractor.learn(scope, after, batch, settings)
                first, after = batch if after == user.after else (), batch[-1].seq
                spoken = spoken or any(message.role == "user" for message in batch)
                learned += result.added + result.quarantined
                self._counts.update(added=result.added, quarantined=result.quarantined)
                # Without any text of a user.
                dropped = "".join(f", {number} dropped ({why})" for why, number in sorted(result.dropped.items()))
                told = "%s: %d messages, %d remembered, %d wait for approval%s"
                _log.info(told, scope.user, result.messages, result.added, result.quarantined, dropped)
                self._counts.update({f"dropped: {reason}": number for reason, number in result.dropped.items()})
                if progress is not None:
                    progress("learning", after, user.last)
        except (NotFound, SourcesChanged) as error:
            # Another process was faster, or something was changed or erased at the same time. The next run finds the
            # rest.
            self._overtaken = True
            _log.info("extracting from the messages of %s again: %s", scope.user, error)
        if self._observe is not None and spoken:
            await self._observe(scope, user.after, first)
        return learned

    async def _behind(self) -> str:
        try:
            waiting = len(await self._store.read(UnextractedUsers(_MOST_COUNTED)))
        except StoreError as error:
            return f"unknown: {error}"
        return counted(waiting, "user") if waiting < _MOST_COUNTED else f"{_MOST_COUNTED:,} users or more"

    async def _expire(self) -> None:
        """Mark expired memories. Reads leave them out even before."""
        until = moment(now())
        while due := await self._store.read(DueMemories("expiry", until, _EXPIRING)):
            for memory in due:
                over = replace(memory, state="expired", active=False, valid_to=memory.expires_at, reason="")
                with suppress(NotFound, SourcesChanged):
                    await self._store.apply([ChangeMemory(over, "expire")])
            self._counts["expired"] += len(due)


_BATCH: Final = 256
_MOST_EMBEDDINGS_COUNTED: Final = 10_000
"""Maximum messages read to count those that wait: the backlog from which an alert is raised by default."""
_EMBEDDING_DEBOUNCE_SECONDS: Final = 0.1


class Embedding(UpkeepTask):
    name = "embedded"

    def __init__(
        self,
        store: Store,
        embedder: Embedder | None,
        metrics: Metrics | None = None,
        loops: BackgroundLoops | None = None,
        give_way: GiveWay = at_once,
        *,
        read: bool = False,
    ) -> None:
        """With `read`, what people say is read in the pass that embeds it, because it is learned from next."""
        loop = BackgroundLoop("embedding", repeated(self.run), debounce_seconds=_EMBEDDING_DEBOUNCE_SECONDS)
        super().__init__(store, loop, metrics, loops, give_way)
        self._embedder = embedder
        self._read = read

    def nudge(self, within_seconds: float = 0.0) -> None:
        if self._embedder is not None:
            self._loop.wake(within_seconds)

    async def run(self, progress: Progress | None = None) -> Done:
        """Embed everything that has no vector yet."""
        if self._embedder is None:
            return Done(0)
        return await self._run_once("embedding", self._run(self._embedder, progress))

    async def health(self) -> Component:
        """Return the state of the embedder and how many messages wait for it."""
        if self._embedder is None:
            return Component("embedder", "active", None, (), (("model", "none"),))
        facts, error, asked = [("model", self._embedder.name)], self._error, self._embedder
        if isinstance(asked, CachingEmbedder):
            # Searches use it as well, also where no message waits.
            error, asked = error or asked.error, asked.inner
        if isinstance(asked, RemoteEmbedder):
            facts.append(("server", shown(asked.state())))
        waiting = await self._waiting(self._embedder.name)
        status: ComponentStatus = "active" if error is None else "failing"
        issues = () if error is None else (error,)
        return Component("embedder", status, self._last_update, issues, tuple(facts), waiting=waiting)

    async def close(self) -> None:
        await super().close()
        if self._embedder is not None:
            await self._embedder.close()

    async def _run(self, embedder: Embedder, progress: Progress | None) -> Done:
        done = 0
        async with self._one_at_a_time:
            try:
                while notes := await self._store.read(UnembeddedNotes(embedder.name, _BATCH)):
                    await self._give_way()
                    made = await _embed(embedder, [note.text for note in notes])
                    rows = [NoteVector(note.key, row, note.space) for note, row in zip(notes, made, strict=True)]
                    await self._store.apply([AddNoteVectors(embedder.name, tuple(rows))])
                    done += len(notes)
                # New messages come before old ones that have no token vectors yet, also while these catch up.
                while True:
                    await self._give_way()
                    if due := await self._store.read(UnembeddedMessages(embedder.name, _BATCH)):
                        await self._embed_messages(embedder, due)
                        done += len(due)
                        if progress is not None:
                            total = (await self._store.read(Totals())).messages
                            progress("embedding", min(due[-1].seq, total), total)
                    elif not await self._catch_up(embedder):
                        break
            except ModelError as error:
                return Done(done, str(error))
            if done:
                self._last_update = moment(now())
            return Done(done)

    async def _embed_messages(self, embedder: Embedder, due: Sequence[Unembedded]) -> None:
        """Store the vectors of messages, and their token vectors too if all messages before them have theirs."""
        texts = _new_texts(due)
        self._metrics.cache_hit("embed", embedder.name, len(due) - len(texts))
        if self._read and reads(embedder):
            said = {each.text for each in due if each.role == "user"}
            if read := [text[:MOST_CHARACTERS] for text in texts if text in said and text.strip()]:
                await embedder.read(read)
        made = await _embed(embedder, texts) if texts else []
        rows = _rows(due, dict(zip(texts, made, strict=True)), repacked)
        changes = [AddVectors(embedder.name, rows, due[-1].seq)]
        if isinstance(embedder, TokenEmbedder) and embedder.token_name is not None:
            without = await self._store.read(UnembeddedMessages(embedder.token_name, _BATCH))
            if [(each.space, each.seq) for each in without] == [(each.space, each.seq) for each in due]:
                rows = await _token_rows(embedder, without)
                changes.append(AddVectors(embedder.token_name, rows, due[-1].seq))
        await self._store.apply(changes)

    async def _catch_up(self, embedder: Embedder) -> bool:
        """Make token vectors of messages that were embedded before there was a ranker. False: all have theirs."""
        if not isinstance(embedder, TokenEmbedder) or embedder.token_name is None:
            return False
        due = await self._store.read(UnembeddedMessages(embedder.token_name, _BATCH))
        if due:
            rows = await _token_rows(embedder, due)
            await self._store.apply([AddVectors(embedder.token_name, rows, due[-1].seq)])
        return bool(due)

    async def _waiting(self, embedder: str) -> int | None:
        """Return how many messages have no vector yet; None if the store does not answer.

        More than 10,000 are not counted, but estimated by the number of the first one.
        """
        try:
            found = await self._store.read(UnembeddedMessages(embedder, _MOST_EMBEDDINGS_COUNTED))
            if len(found) < _MOST_EMBEDDINGS_COUNTED:
                return len(found)
            return max(_MOST_EMBEDDINGS_COUNTED, (await self._store.read(Totals())).messages - found[0].seq + 1)
        except StoreError:
            return None


async def _embed(embedder: Embedder, texts: Sequence[str]) -> list[bytes]:
    """Return the vectors of texts, as they are stored."""
    made = await embedder.embed([text[:MOST_CHARACTERS] for text in texts])
    if len(made) != len(texts):
        raise ModelError(f"{embedder.name} returned {len(made)} vectors for {len(texts)} texts")
    return packed(made)


async def _token_rows(embedder: TokenEmbedder, due: Sequence[Unembedded]) -> tuple[VectorRow, ...]:
    texts = _new_texts(due)
    made = await embedder.tokens([text[:MOST_CHARACTERS] for text in texts]) if texts else []
    return _rows(due, {text: tokens.packed() for text, tokens in zip(texts, made, strict=True)}, repacked_tokens)


def _new_texts(due: Sequence[Unembedded]) -> list[str]:
    """Return the texts that have no vector yet. A message of pictures or tool calls alone has no text."""
    return list(dict.fromkeys(message.text for message in due if message.known is None and message.text))


def _rows(
    due: Sequence[Unembedded], values: Mapping[str, bytes], repack: Callable[[bytes], bytes]
) -> tuple[VectorRow, ...]:
    """Return a row for each message. A vector that is known may be one that an earlier version stored."""
    return tuple(
        VectorRow(
            message.seq,
            message.text,
            repack(message.known) if message.known else values.get(message.text, b""),
            message.space,
        )
        for message in due
    )
