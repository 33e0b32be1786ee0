"""Sends replies: split, in order per thread, and again if a process died before."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias
from unicodedata import category

from cachetools import LRUCache

from aforesaid.assistant import CALLED, Answer, Phrases
from aforesaid.bots.contract import Address, BotStats, Platform
from aforesaid.errors import PlatformError, PlatformUnavailable, StoreError
from aforesaid.extras import re
from aforesaid.memory import Memory
from aforesaid.store.people import Marks, PutMark

_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n`]*)$", re.MULTILINE)
_LEAST: Final = 64
"""Minimum message length, in UTF-16 code units. Every platform allows more."""
_PAUSES: Final = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"[.!?…。！？]['\")\]]*\s"), re.compile(r"\s"))
"""Patterns after which a text may be cut, best first: paragraph, line, sentence, word."""
_JOINER: Final = "\u200d"


def units(text: str) -> int:
    """Return the length of a text in UTF-16 code units, as platforms count it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def split(text: str, longest: int) -> list[str]:
    """Return a text in non-empty parts of at most `longest` units.

    A code block that has to be cut is closed at the end of its part and reopened at the start of the next.
    """
    if longest < _LEAST:
        raise ValueError(f"a text cannot be cut into messages of {longest} units; at least {_LEAST} are needed")
    return [part for part in _parts(text.strip("\n"), longest) if part.strip()]


def _parts(text: str, longest: int) -> Iterator[str]:
    opening = ""
    while units(opening + text) > longest:
        whole = opening + text
        end = _cut(whole, longest, len(opening))
        fence = _open_fence(whole[:end])
        if fence is not None:
            # Room for the line that closes the block.
            end = _cut(whole, longest - len(fence[0]) - 1, len(opening))
            fence = _open_fence(whole[:end])
        part, text = whole[:end].rstrip(), whole[end:].lstrip("\n")
        opening = ""
        if fence is not None:
            mark, language = fence
            part += f"\n{mark}"
            opening = f"{mark}{language}\n"
        else:
            text = text.lstrip()
        yield part
    if text.strip():
        yield (opening + text).rstrip()


def _cut(text: str, longest: int, least: int) -> int:
    """Return where to cut: after the last pattern that fits and is not in the first half, else at the limit."""
    limit = _reach(text, longest)
    middle = max(least + 1, limit // 2)
    for pause in _PAUSES:
        ends = [found.end() for found in pause.finditer(text, 0, limit) if found.end() >= middle]
        if ends:
            return ends[-1]
    for end in range(limit, middle, -1):
        after, before = text[end : end + 1], text[end - 1]
        # Not inside what is displayed as one character.
        together = after and (
            category(after) in {"Mn", "Me", "Mc"} or _JOINER in (after, before) or "🏻" <= after <= "🏿"
        )
        if not together:
            return end
    return limit


def _reach(text: str, longest: int) -> int:
    """Return how many characters of a text fit into `longest` units."""
    if units(text[:longest]) <= longest:
        return min(longest, len(text))
    total = 0
    for place, character in enumerate(text):
        total += 2 if ord(character) > 0xFFFF else 1  # noqa: PLR2004 - beyond the first plane
        if total > longest:
            return place
    return len(text)


def _open_fence(text: str) -> tuple[str, str] | None:
    """Return the fence and the language of a code block that is open at the end of a text."""
    current: tuple[str, str] | None = None
    for found in _FENCE.finditer(text):
        mark, language = found[1], found[2].strip()
        if current is None:
            current = (mark, language)
        elif mark[0] == current[0][0] and len(mark) >= len(current[0]) and not language:
            current = None
    return current


_log: Final = logging.getLogger("aforesaid.bots")

TRIES: Final = 12
"""Maximum number of attempts per message: with their pauses about five minutes."""
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0


class Sender:
    def __init__(self, platform: Platform, stats: BotStats, phrases: Callable[[Address], Awaitable[Phrases]]) -> None:
        self._phrases = phrases
        self._platform = platform
        self._stats = stats

    async def send(
        self,
        to: Address,
        answer: Answer,
        answers: str | None = None,
        *,
        once: str | None = None,
        skip: int = 0,
        sent: Callable[[int], Awaitable[None]] | None = None,
    ) -> bool:
        """Send an answer in as many messages as needed. Return False if the platform could not be reached.

        A message that the platform refuses is logged and not sent again. `once` and `skip` are as in `deliver`;
        `sent` is called after each part but the last, with the number of parts sent.
        """
        place = to._replace(thread=None) if answer.private else to
        try:
            await self.deliver(place, answer, answers if place == to else None, once=once, skip=skip, sent=sent)
        except PlatformError as error:
            _log.error("an answer to %s could not be sent: %s", to.user, error)
            self._stats.failed(f"an answer could not be sent: {error}")
            if isinstance(error, PlatformUnavailable):
                return False
            if answer.private and to.thread is not None:
                return await self.send(to, Answer((await self._phrases(to))("bot.private_first")))
            return True
        if place != to:
            await self.send(to, Answer((await self._phrases(to))("bot.sent_in_private")), answers)
        return True

    async def deliver(
        self,
        to: Address,
        answer: Answer,
        answers: str | None = None,
        *,
        once: str | None = None,
        skip: int = 0,
        sent: Callable[[int], Awaitable[None]] | None = None,
        tries: int = TRIES,
    ) -> None:
        """Send an answer, or raise PlatformError.

        `once` is an idempotency key for platforms that detect duplicates. The first `skip` parts were sent before.
        """
        parts = split(answer.text, self._platform.longest)
        for number, part in enumerate(parts, 1):
            if number <= skip:
                continue
            last = number == len(parts)
            buttons = answer.buttons if last else ()
            quoted, key = answers if number == 1 else None, None if once is None else f"{once}/{number}"
            for attempt in range(1, tries + 1):
                try:
                    await self._platform.send(to, part, buttons, answers=quoted, once=key)
                    break
                except PlatformUnavailable as error:
                    if attempt == tries:
                        raise
                    pause = min(_FIRST_PAUSE * 2 ** (attempt - 1), _LONGEST_PAUSE) * random.uniform(0.5, 1)  # noqa: S311 - no secret
                    _log.warning("sending to %s is retried: %s", self._platform.name, error)
                    await asyncio.sleep(pause if error.retry_after is None else error.retry_after)
            self._stats.sent += 1
            if sent is not None and not last:
                await sent(number)
        if answer.file is not None:
            await self._platform.send_file(to, answer.file)
        self._stats.mark_ok()


Job: TypeAlias = Callable[[], Awaitable[object]]


class PerThreadQueue:
    """Runs jobs with the same key one after the other, and at most `at_once` keys at a time.

    A key without jobs takes no memory.
    """

    def __init__(self, at_once: int) -> None:
        self._places = asyncio.Semaphore(at_once)
        self._waiting: dict[Hashable, deque[Job]] = {}
        self._workers: set[asyncio.Task[None]] = set()

    def add(self, key: Hashable, job: Job) -> None:
        if key in self._waiting:
            self._waiting[key].append(job)
            return
        self._waiting[key] = deque([job])
        worker = asyncio.create_task(self._work(key), name=f"aforesaid-key-{key}")
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)

    def waiting(self, key: Hashable | None = None) -> int:
        """Return the number of waiting and running jobs of one key, or of all keys."""
        if key is not None:
            return len(self._waiting.get(key, ()))
        return sum(map(len, self._waiting.values()))

    async def idle(self) -> None:
        while self._workers:
            await asyncio.wait(self._workers)

    async def finish(self, patience: float) -> int:
        """Wait at most `patience` seconds for the jobs, then cancel the rest. Return how many were cancelled."""
        if self._workers:
            await asyncio.wait(self._workers, timeout=patience)
        left = self.waiting()
        for worker in list(self._workers):
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._waiting.clear()
        return left

    async def _work(self, key: Hashable) -> None:
        jobs = self._waiting[key]
        try:
            while jobs:
                async with self._places:
                    try:
                        await jobs[0]()
                    except Exception:
                        # A failed job must not stop the next ones; the operator sees it in the log.
                        _log.exception("a message could not be handled")
                jobs.popleft()
        finally:
            if self._waiting.get(key) is jobs:
                del self._waiting[key]


_LONGEST: Final = timedelta(days=1)
"""Older messages are not answered any more. Telegram keeps its updates for the same time."""
_KEPT: Final = 200
"""Number of finished commands remembered, to recognise repeats: platforms deliver up to a hundred updates again."""
_SETTLED_CACHE_SIZE: Final = 10_000
"""Maximum number of settled replies remembered in this process."""
_DONE: Final = "done"
_PROBE: Final = "probe"
"""The mark written to check whether the store works. It is read as a finished command."""


@dataclass(frozen=True, slots=True)
class PendingReply:
    """A message, command or pressed button that still needs an answer."""

    address: Address
    id: str
    """The platform's id of the message or of the pressed button."""
    since: float
    """When it arrived, as a Unix time in seconds."""
    command: str | None = None
    """The name of the command; None for a message, which is in the log."""
    called: tuple[str, ...] = CALLED
    sent: int = 0
    """Number of parts of the answer that were sent."""

    @property
    def key(self) -> str:
        """An id that is the same whenever the platform delivers it again."""
        whole = json.dumps([self.address.space, self.address.thread or f"direct:{self.address.user}", self.id])
        return hashlib.sha256(whole.encode()).hexdigest()[:32]


class PendingReplies:
    def __init__(self, memory: Memory, platform: str) -> None:
        self._memory = memory
        self._prefix = f"bot {platform} "
        self._done: deque[str] = deque()
        self._commands: set[str] = set()
        """Keys of received commands, answered or not."""
        self._settled: LRUCache[str, bool] = LRUCache(_SETTLED_CACHE_SIZE)
        """Replies settled by this process: a read that began earlier may still return their marks."""

    def knows(self, pending: PendingReply) -> bool:
        return pending.key in self._commands

    async def note(self, pending: PendingReply) -> None:
        if pending.command is not None:
            self._commands.add(pending.key)
        # It was settled before if its message could not be stored, and is delivered again.
        self._settled.pop(pending.key, None)
        await self._put([PutMark(self._prefix + pending.key, json.dumps(asdict(pending)))])

    async def sent(self, pending: PendingReply, parts: int) -> None:
        await self.note(replace(pending, sent=parts))

    async def settle(self, pending: PendingReply) -> None:
        """Remove the mark. A finished command is remembered for a while, so that it does not run twice."""
        self._settled[pending.key] = True
        if pending.command is None:
            await self._put([PutMark(self._prefix + pending.key, None)])
            return
        self._done.append(pending.key)
        marks = [PutMark(self._prefix + pending.key, json.dumps({_DONE: pending.since}))]
        while len(self._done) > _KEPT:
            oldest = self._done.popleft()
            self._commands.discard(oldest)
            marks.append(PutMark(self._prefix + oldest, None))
        await self._put(marks)

    async def left(self) -> list[PendingReply]:
        """Return every unanswered reply, oldest first, of this run and of earlier ones."""
        found: list[PendingReply] = []
        done: list[tuple[float, str]] = []
        for name, value in (await self._memory.store.read(Marks())).items():
            if not name.startswith(self._prefix):
                continue
            key, read = name.removeprefix(self._prefix), json.loads(value)
            if _DONE in read:
                done.append((read[_DONE], key))
            else:
                pending = PendingReply(
                    **{**read, "address": Address(*read["address"]), "called": tuple(read["called"])}
                )
                found.append(pending)
                if pending.command is not None:
                    self._commands.add(key)
        known = set(self._done)
        self._done.extend(key for _, key in sorted(done) if key not in known)
        self._commands.update(self._done)
        found = sorted((each for each in found if each.key not in self._settled), key=lambda each: each.since)
        first = (datetime.now(UTC) - _LONGEST).timestamp()
        for pending in found:
            if pending.since < first:
                _log.warning("a message of %s is older than a day, so it is not answered", pending.address.user)
                await self.settle(pending)
        return [pending for pending in found if pending.since >= first]

    async def can_write(self) -> bool:
        return await self._put([PutMark(f"{self._prefix}{_PROBE}", json.dumps({_DONE: datetime.now(UTC).timestamp()}))])

    async def _put(self, marks: list[PutMark]) -> bool:
        try:
            await self._memory.store.apply(marks)
        except StoreError as error:
            # Storing the message itself reports a broken store. Without the mark, only a kill loses the answer.
            _log.warning("a pending reply could not be stored: %s", error)
            return False
        return True
