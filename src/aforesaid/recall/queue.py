"""When searches run: in turns, and beside background work."""

from __future__ import annotations

import asyncio
import math
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from time import monotonic, perf_counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from aforesaid.extras import np
from aforesaid.telemetry import OWN, RECALL_WAIT, Metrics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]


AT_ONCE: Final = 8
"""Searches and contexts that run at a time. More do not get more done on one interpreter, and each takes longer."""
QUIET_SECONDS: Final = 0.05
"""Somebody who searched within this time is likely to search again: bulk work waits."""
GIVE_WAY_SECONDS: Final = 0.5
"""Maximum time that a batch of bulk work waits for searches. It comes second, but it comes."""


class QueueTimeout(TimeoutError):
    """A search waited too long for its turn."""


class Turn:
    """A turn that a task holds."""

    __slots__ = ("_queue", "_tasks")

    def __init__(self, queue: RecallQueue) -> None:
        self._queue = queue
        # Tasks are compared, because a task that is started within a turn inherits its context and may outlive it.
        self._tasks = {asyncio.current_task()}

    def covers(self, queue: RecallQueue) -> bool:
        """Return whether the current task may search in this turn of a queue."""
        return self._queue is queue and asyncio.current_task() in self._tasks

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Let a task that was started within the turn search in it during the block, until the turn ends."""
        task = asyncio.current_task()
        joins = bool(self._tasks) and task not in self._tasks
        if joins:
            self._tasks.add(task)
        try:
            yield
        finally:
            if joins:
                self._tasks.discard(task)

    def end(self) -> None:
        """Let nobody search in it any more."""
        self._tasks.clear()


_current_turn: Final[ContextVar[Turn | None]] = ContextVar("current_turn", default=None)


class RecallQueue:
    """The queue of one open memory, first come, first served."""

    def __init__(self, metrics: Metrics, at_once: int = AT_ONCE) -> None:
        self._metrics = metrics
        self._at_once = at_once
        self.waiting = 0
        """How many searches and contexts wait for their turn."""
        self._running = 0
        self._last_ended = float("-inf")
        """When the last search ended, in seconds of the monotonic clock."""
        self._free: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    @asynccontextmanager
    async def turn(self, most_seconds: float | None = None) -> AsyncIterator[Turn]:
        """Wait for a turn, and hold it during the block. Raises QueueTimeout if none came within `most_seconds`.

        A search within the turn of a context does not wait again. One in a task that was started within the turn waits
        for a turn of its own, unless the task shares this one.
        """
        held = _current_turn.get()
        if held is not None and held.covers(self):
            yield held
            return
        loop = asyncio.get_running_loop()
        free = self._free.get(loop)
        if free is None:
            free = self._free[loop] = asyncio.Semaphore(self._at_once)
        await self._acquire(free, most_seconds)
        turn = Turn(self)
        token = _current_turn.set(turn)
        self._running += 1
        try:
            yield turn
        finally:
            self._running -= 1
            self._last_ended = monotonic()
            turn.end()
            _current_turn.reset(token)
            free.release()

    async def give_way(self) -> None:
        """Wait until nobody has searched for a moment. Bulk work calls this before each of its batches."""
        until = monotonic() + GIVE_WAY_SECONDS
        while (left := until - monotonic()) > 0:
            if not self._running and monotonic() - self._last_ended >= QUIET_SECONDS:
                return
            await asyncio.sleep(min(QUIET_SECONDS, left))  # the end of a quiet time is no event

    async def _acquire(self, free: asyncio.Semaphore, most_seconds: float | None) -> None:
        """Wait for a turn. The metrics count only callers that had to wait."""
        if not free.locked():
            await free.acquire()
            return
        began = perf_counter()
        self.waiting += 1
        try:
            async with asyncio.timeout(most_seconds):
                await free.acquire()
        except TimeoutError:
            self._metrics.called(RECALL_WAIT, OWN, perf_counter() - began, failure="timeout")
            raise QueueTimeout(f"no search began within {most_seconds:g} s") from None
        finally:
            self.waiting -= 1
        self._metrics.called(RECALL_WAIT, OWN, perf_counter() - began)


_MESSAGES: Final = 30
"""The encoder's figures weigh as much as this many messages."""
_SPREAD: Final = 0.1
"""Assumed standard deviation of cosines between unrelated texts, for an encoder without figures."""
_LEAST: Final = 0.6
"""The deviation is at least this share of the encoder's."""
SAME: Final = 0.95
"""Minimum cosine of a message that repeats the question."""
MIDDLE: Final = 1.0
STEEPNESS: Final = 1.7
"""A cosine `MIDDLE` deviations above the background is a similarity of 0.5; 1.5 deviations are 0.7."""
_STEEPEST: Final = 700.0
"""Maximum exponent: the exponential function of a greater one overflows."""


@cache
def calibration() -> dict[str, Any]:
    """Return the figures of calibration.toml."""
    return tomllib.loads((files("aforesaid.recall") / "calibration.toml").read_text(encoding="utf-8"))


class Background(NamedTuple):
    """Mean and standard deviation of the cosine between a question and messages that do not answer it."""

    mean: float = 0.0
    deviation: float = 1.0

    @classmethod
    def of(cls, mean: float, deviation: float, messages: int, encoder: str) -> Background:
        """Combine the figures of this many messages with those of the encoder."""
        known = calibration()["encoders"].get(encoder, {"mean": mean, "deviation": _SPREAD})
        share = messages / (messages + _MESSAGES)
        variance = share * deviation**2 + (1 - share) * known["deviation"] ** 2
        # Messages that are much alike have hardly any deviation; small differences would look large.
        spread = max(math.sqrt(variance), _LEAST * known["deviation"])
        return cls(share * mean + (1 - share) * known["mean"], spread)

    @classmethod
    def usual(cls, mean: float, deviation: float, cosines: NDArray[np.float32], compared: int) -> Background:
        """Return mean and deviation of the compared messages without those that repeat the question.

        Their cosine says nothing about other messages: in a small memory, a question that was asked before would make
        its own answer look far away.
        """
        repeated = cosines[cosines >= SAME].astype(float)
        rest = compared - len(repeated)
        if not len(repeated) or rest <= 0:
            return cls(mean, deviation)
        usual = (compared * mean - float(repeated.sum())) / rest
        squares = (compared * (deviation**2 + mean**2) - float((repeated**2).sum())) / rest
        return cls(usual, math.sqrt(max(squares - usual**2, 0.0)))

    def standard(self, cosine: float) -> float:
        """Return a cosine as a number of standard deviations above the mean."""
        return (cosine - self.mean) / self.deviation

    def similarities(self, standards: Numbers) -> list[float | None]:
        """Return the similarities of values in standard deviations; None for exactly zero, which means not compared."""
        near = logistics(STEEPNESS * (standards - MIDDLE))
        return [value if compared else None for value, compared in zip(near, standards.tolist(), strict=True)]


def similarity(standard: float) -> float:
    """Return the similarity, 0 to 1, of a value in standard deviations above the background.

    Answers to an ordinary question are above 0.7, other messages below.
    """
    return logistic(STEEPNESS * (standard - MIDDLE))


def logistics(values: Numbers) -> list[float]:
    """Return the logistic function of many values. Vectorised: a loop would take most of the time of a small search."""
    result: list[float] = (1 / (1 + np.exp(-np.clip(values, -_STEEPEST, _STEEPEST)))).tolist()
    return result


def logistic(value: float) -> float:
    """Return 1 / (1 + exp(-value)) without overflow."""
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))
