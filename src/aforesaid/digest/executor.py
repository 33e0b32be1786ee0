"""Carries out plans: writes, measures and stores summaries, the same way for every policy.

The sources have been read, the summariser works outside of any transaction, and one change set stores the result. The
store rechecks the sources in it: whoever comes second gets SourcesChanged, and nothing happens twice.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import date
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from aforesaid.background import SingleFlight
from aforesaid.digest.quality import measure
from aforesaid.digest.sources import NOTHING_KNOWN, Weights, Worth, newest, shown_numbers, weights, worth_of
from aforesaid.digest.writing import Writer, Written
from aforesaid.domain.checks import now
from aforesaid.domain.hit import MessageFilter
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope, direct_thread, is_direct
from aforesaid.domain.setting import wants_memory
from aforesaid.domain.summary import HEARD_BEFORE, Quality, Summary, SummaryDraft, ViewDraft
from aforesaid.errors import ModelError, SourcesChanged, StoreError
from aforesaid.models.embed import Embedder
from aforesaid.models.embed.caching import MessageVectors
from aforesaid.models.salience import ENCODER, load_salience
from aforesaid.profiles import Profile
from aforesaid.profiles.effective import settings_of
from aforesaid.store.messages import Messages
from aforesaid.store.operations import Change
from aforesaid.store.people import Marks, PutMark
from aforesaid.store.summaries import AddView, Archive

if TYPE_CHECKING:
    from aforesaid.store import Store


_log: Final = logging.getLogger("aforesaid.digest")

LEASE_SECONDS: Final = 30
"""Duration of a lease after its last heartbeat: how long a killed process delays the others.

Clocks of several machines may differ by less than this. If they differ by more, a summary may be made twice; the store
still accepts only one of the two.
"""
_BEATS_PER_LEASE: Final = 3
"""Heartbeats in the duration of a lease, so that one that fails or comes late does not end it."""
_POLL_SECONDS: Final = 0.25
_MICROSECONDS: Final = 1_000_000


class Leases:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._owner = uuid4().hex

    @asynccontextmanager
    async def hold(self, *subject: str) -> AsyncIterator[bool]:
        """Hold the lease on a subject during the block. Yields False, without waiting, where another process has it."""
        lease = _Lease(self._store, _name(subject), self._owner)
        if not await lease.take():
            yield False
            return
        done = asyncio.Event()
        heartbeat = asyncio.create_task(lease.renew_until(done), name="aforesaid-lease")
        try:
            yield True
        finally:
            # The heartbeat is not cancelled: a renewal that is under way must not come after the release.
            done.set()
            await heartbeat
            await lease.release()

    async def wait_until_free(self, *subject: str, seconds: float) -> bool:
        """Wait until nobody holds the lease on a subject, at most for `seconds`. Return whether it is free."""
        name = _name(subject)
        for _ in range(max(1, round(seconds / _POLL_SECONDS))):
            if _free((await self._store.read(Marks())).get(name)):
                return True
            await asyncio.sleep(_POLL_SECONDS)
        return False


class _Lease:
    """One lease that this process takes, renews and releases."""

    def __init__(self, store: Store, name: str, owner: str) -> None:
        self._store = store
        self._name = name
        self._owner = owner
        self._value = ""
        """The mark as this process wrote it last."""

    async def take(self) -> bool:
        """Take the lease; return False where another process has it."""
        before = (await self._store.read(Marks())).get(self._name)
        if not _free(before):
            return False
        try:
            await self._put(self._until(), only_if=before)
        except SourcesChanged:
            return False
        return True

    async def renew_until(self, done: asyncio.Event) -> None:
        """Move the end of the lease ahead, several times during its duration, until `done` is set or it was lost."""
        while True:
            try:
                async with asyncio.timeout(LEASE_SECONDS / _BEATS_PER_LEASE):
                    await done.wait()
            except TimeoutError:
                pass
            else:
                return
            try:
                await self._put(self._until(), only_if=self._value)
            except SourcesChanged:
                # This process stood still for longer than its lease, and another one took it.
                return
            except StoreError as error:
                _log.warning("a lease could not be renewed; it is tried again: %s", error)

    async def release(self) -> None:
        """End the lease. A failure is logged: the lease then ends by itself."""
        try:
            await self._put(None, only_if=self._value)
        except SourcesChanged:
            _log.warning(
                "a lease of %g s ended before the summary was made; another process may have made it too", LEASE_SECONDS
            )
        except StoreError as error:
            _log.warning("a lease could not be released and ends by itself within %g s: %s", LEASE_SECONDS, error)

    async def _put(self, value: str | None, *, only_if: str | None) -> None:
        await self._store.apply([PutMark(self._name, value, only_if=only_if)])
        self._value = value or ""

    def _until(self) -> str:
        return json.dumps({"owner": self._owner, "until": now() + round(LEASE_SECONDS * _MICROSECONDS)})


def _name(subject: tuple[str, ...]) -> str:
    return f"lease {blake2b(chr(10).join(subject).encode(), digest_size=16).hexdigest()}"


def _free(value: str | None) -> bool:
    return value is None or json.loads(value)["until"] <= now()


Clock = Callable[[], int]
"""Returns the time in microseconds."""

_LEAST_OF_MESSAGES: Final = 300
_LEAST_OF_SUMMARIES: Final = 600
_HEARD: Final = 5
"""Messages of a shared thread that are read for each message of the user there, at most: its own is one of them."""
_PART: Final = 2
"""A summary may have half of the characters of its sources, and at least 300, or 600 if these are summaries."""


class Executor:
    def __init__(self, store: Store, writer: Writer, embedder: Embedder | None, profile: Profile, clock: Clock) -> None:
        self.store = store
        self.writer = writer
        self.profile = profile
        self.clock = clock
        self.leases = Leases(store)
        self.flights: SingleFlight[Any] = SingleFlight()
        """Summaries in progress in this process; requests for the same one wait for it."""
        self._vectors = None if embedder is None else MessageVectors(store, embedder)

    @property
    def embedder(self) -> str | None:
        return None if self._vectors is None else self._vectors.embedder.name

    async def archive_messages(self, scope: Scope, messages: Sequence[Message]) -> Summary:
        heard = await self.heard(scope, messages)
        said = [*messages, *heard]
        room = self.room_for(said)
        held = await self.holding(said)
        known = await self.known_of(scope, messages, await self.worth(said, held))
        written = await self.writer.of_messages(scope, said, room, known)
        sources = tuple(message.seq for message in messages)
        draft = SummaryDraft(
            scope,
            written.text,
            messages=sources,
            model=written.model,
            prompt=written.prompt,
            shown=shown_numbers(messages),
            heard=shown_numbers(heard),
        )
        return await self._archive(draft, await self.quality(written, said, (), held))

    async def archive_summaries(self, scope: Scope, summaries: Sequence[Summary]) -> Summary:
        room = self._room(sum(len(summary.text) for summary in summaries), _LEAST_OF_SUMMARIES)
        known = await self.known_below(scope, summaries)
        written = await self.writer.of_summaries(scope, summaries, room, known)
        sources = tuple(summary.id for summary in summaries)
        draft = SummaryDraft(scope, written.text, summaries=sources, model=written.model, prompt=written.prompt)
        return await self._archive(draft, await self.quality(written, (), summaries))

    async def known_of(self, scope: Scope, messages: Sequence[Message], worth: Mapping[int, Worth]) -> Weights:
        """Return what a user's messages change in what is known. `worth` is by their meaning, where that is known."""
        if not messages:
            return NOTHING_KNOWN
        seqs, zone = [message.seq for message in messages], self.writer.zone(scope.space)
        return await weights(self.store, scope, min(seqs), max(seqs), zone, worth)

    async def known_below(self, scope: Scope, summaries: Sequence[Summary]) -> Weights:
        """Return what is known of the messages that a user's summaries cover."""
        first, last = min(each.first for each in summaries), max(each.last for each in summaries)
        return await weights(self.store, scope, first, last, self.writer.zone(scope.space))

    async def of_those_who_want_it(self, messages: Sequence[Message]) -> list[Message]:
        """Leave out messages of people who switched memory off: no summary contains them."""
        people = {(message.space, message.user) for message in messages}
        wanting = {
            (space, user)
            for space, user in people
            if wants_memory(await settings_of(self.store, Scope(space, user, direct_thread(user))))
        }
        return [message for message in messages if (message.space, message.user) in wanting]

    async def heard(self, scope: Scope, messages: Sequence[Message]) -> list[Message]:
        """Return what others said in shared threads between messages of the user, and shortly before the first ones."""
        threads: dict[str, list[Message]] = {}
        for message in newest(messages):
            if not is_direct(message.thread):
                threads.setdefault(message.thread, []).append(message)
        heard: list[Message] = []
        for thread, own in threads.items():
            since, mine = own[0].position.at - HEARD_BEFORE, {message.seq for message in own}
            where = MessageFilter(since=since)
            here = Scope(scope.space, scope.user, thread)
            found = await self.store.read(Messages(here, "thread", _HEARD * len(own), own[-1].position, where=where))
            # What was said before the user's last message that is not among these is for the summary of that one.
            begin = max(
                (n for n, each in enumerate(found, 1) if each.user == scope.user and each.seq not in mine), default=0
            )
            heard += [each for each in found[begin:] if each.user != scope.user]
        return await self.of_those_who_want_it(heard)

    async def worth(self, messages: Sequence[Message], held: MessageVectors | None = None) -> dict[int, Worth]:
        """Return the worth of what people said, by its meaning, where the built-in encoder has its vectors."""
        said, vectors = [each for each in messages if each.role == "user" and each.text.strip()], held or self._vectors
        if vectors is None or self.embedder != ENCODER or not said:
            return {}
        try:
            rows = await vectors.of(said)
        except ModelError:
            return {}
        judged = await asyncio.to_thread(load_salience().judge, [message.text for message in said], rows)
        return {message.seq: worth_of(judgement) for message, judgement in zip(said, judged, strict=True)}

    async def holding(self, messages: Sequence[Message]) -> MessageVectors | None:
        """Return the vectors of messages for several uses; None without an embedder that answers."""
        try:
            return self._vectors and await self._vectors.holding([each for each in messages if each.text.strip()])
        except ModelError:
            return self._vectors

    async def roll(self, scope: Scope, previous: Summary | None, messages: Sequence[Message]) -> Summary:
        heard = await self.heard(scope, messages)
        said = [*messages, *heard]
        held = await self.holding(said)
        known = await self.known_of(scope, messages, await self.worth(said, held))
        characters, newer = self.profile.summary_characters, self.room_for(said)
        written = await self.writer.onwards(scope, previous, said, characters, newer, known)
        return await self._continue(scope, "rolling", written, previous, messages, held, heard)

    async def analyse(
        self, scope: Scope, previous: Summary | None, messages: Sequence[Message], today: date
    ) -> Summary:
        characters, newer = self.profile.summary_characters, self.room_for(messages)
        held = await self.holding(messages)
        known = await self.known_of(scope, messages, await self.worth(messages, held))
        written = await self.writer.of_history(scope, previous, messages, characters, newer, today, known)
        return await self._continue(scope, "history", written, previous, messages, held)

    async def store_views(self, drafts: Sequence[ViewDraft], *others: Change) -> list[Summary]:
        receipt = await self.store.apply([*(AddView(draft) for draft in drafts), *others])
        return [result for result in receipt.results if isinstance(result, Summary)]

    async def quality(
        self,
        written: Written,
        messages: Sequence[Message],
        summaries: Sequence[Summary],
        held: MessageVectors | None = None,
    ) -> Quality | None:
        """Measure a summary. Where the embedder fails, its coverage is not known."""
        try:
            return await measure(written.text, messages, summaries, held or self._vectors)
        except ModelError:
            return await measure(written.text, messages, summaries, None)

    def room_for(self, messages: Sequence[Message]) -> int:
        """Return the maximum number of characters of a summary of messages."""
        characters = sum(len(message.text) for message in messages if not message.replaced)
        return self._room(characters, _LEAST_OF_MESSAGES)

    def _room(self, characters: int, least: int) -> int:
        return min(self.profile.summary_characters, max(characters // _PART, least))

    async def _archive(self, draft: SummaryDraft, quality: Quality | None) -> Summary:
        complete = replace(draft, quality=quality, created_at=self.clock())
        return (await self.store.apply([Archive(complete)])).summary

    async def _continue(
        self,
        scope: Scope,
        kind: str,
        written: Written,
        previous: Summary | None,
        messages: Sequence[Message],
        held: MessageVectors | None,
        heard: Sequence[Message] = (),
    ) -> Summary:
        draft = ViewDraft(
            scope,
            "rolling" if kind == "rolling" else "history",
            written.text,
            first=messages[0].seq,
            last=messages[-1].seq,
            messages=len(messages),
            reach="thread" if kind == "rolling" else "user",
            previous=None if previous is None else previous.id,
            model=written.model,
            prompt=written.prompt,
            details=written.details,
            quality=await self.quality(written, [*messages, *heard], () if previous is None else (previous,), held),
            created_at=self.clock(),
            shown=shown_numbers(messages),
            heard=shown_numbers(heard),
        )
        return (await self.store_views([draft]))[0]
