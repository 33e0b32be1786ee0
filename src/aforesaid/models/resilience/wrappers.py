"""Wrappers around a model: retries, circuit breaker, deadline, limit of concurrent calls, fallback."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, Generic, Literal, NamedTuple, Protocol, TypeVar

from aforesaid.domain.scope import Scope
from aforesaid.errors import ModelError, ModelGarbled, ModelRefused, ModelUnavailable, NoModel
from aforesaid.extras import how_to_install
from aforesaid.settings import Operation, RerankOperation, Resilience, SpeechOperation

What = TypeVar("What")
Got = TypeVar("Got")
Got_co = TypeVar("Got_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Ask(Generic[What]):
    """One request to a model. Times are in the event loop's clock."""

    operation: Operation | SpeechOperation | RerankOperation
    what: What
    answer_by: float
    """Deadline of the first piece. A chain gives each model a share of the time."""
    over_by: float
    """Deadline of the whole answer."""
    scope: Scope | None = None
    """The user whose spending limit applies."""


class Service(Protocol[What, Got_co]):
    """Answers, in one piece or in many.

    A plain call is a stream of one piece, so that each wrapper is written once. It raises ModelError; once a piece was
    yielded, nothing is tried again.
    """

    def call(self, ask: Ask[What]) -> AsyncGenerator[Got_co, None]:
        """Yield the answer."""


class Priced(Protocol):
    """An answer, or a piece of it, that says what it cost. Of many pieces, only the last one does."""

    @property
    def prompt_tokens(self) -> int:
        """Tokens that were read."""

    @property
    def reply_tokens(self) -> int:
        """Tokens that were written."""


async def begin(service: Service[What, Got], ask: Ask[What]) -> AsyncGenerator[Got, None]:
    """Wait for the first piece and return all pieces. A failure here can be retried with another model."""
    pieces = service.call(ask)
    try:
        first = await anext(pieces)
    except StopAsyncIteration:
        raise ModelGarbled(f"the model was asked to {ask.operation} and returned nothing") from None
    return _with_first(first, pieces)


async def _with_first(first: Got, rest: AsyncGenerator[Got, None]) -> AsyncGenerator[Got, None]:
    async with aclosing(rest):
        yield first
        async for piece in rest:
            yield piece


async def only(service: Service[What, Got], ask: Ask[What]) -> Got:
    last: list[Got] = []
    async with aclosing(await begin(service, ask)) as pieces:
        async for piece in pieces:
            last[:] = [piece]
    return last[0]


_log: Final = logging.getLogger("aforesaid.models")


class BreakerState(NamedTuple):
    """The state of a circuit breaker."""

    state: Literal["closed", "open", "half-open"]
    """Closed: calls pass. Open: calls fail at once. Half-open: a test call is running."""
    failures: int
    """Number of consecutive failures."""
    retry_in: float | None
    """Seconds until the next test call; None if closed."""
    error: str | None
    """The last failure; None after a success."""
    answered: bool
    """Whether it ever answered since the process began."""


class BreakerOpen(ModelUnavailable):
    """The breaker is open: no call was made."""


class Breaker:
    """Opens after a number of consecutive failures; then lets one probe through per interval; closes at a success.

    Only an unavailable provider counts as a failure, not a refused request or a malformed reply. With c concurrent
    calls, a dead provider gets at most failures + c - 1 calls before the breaker opens.
    """

    def __init__(self, name: str, resilience: Resilience, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._limit = resilience.failures
        self._interval = resilience.probe_seconds
        self._clock = clock
        self._failures = 0
        self._answered = False
        self._error: ModelUnavailable | None = None
        self._next_probe: float | None = None
        """None while closed."""
        self._probes = 0

    def check(self) -> None:
        """Raise BreakerOpen while the breaker is open and no test call is due."""
        if self._next_probe is not None and (left := self._next_probe - self._clock()) > 0:
            raise BreakerOpen(
                f"{self.name} is left alone after {self._failures} failures in a row; the next try is in {left:.1f} s. "
                f"The last failure: {self._error}",
                retry_after=left,
            )

    def admit(self) -> bool:
        """Let a call pass, or raise BreakerOpen. Return whether it is the test call of this interval."""
        self.check()
        if self._next_probe is None:
            return False
        self._next_probe = self._clock() + self._interval
        self._probes += 1
        return True

    def done(self, *, probe: bool) -> None:
        """Record that an admitted call has ended."""
        self._probes -= probe

    def answered(self) -> None:
        if self._next_probe is not None:
            _log.warning("%s answers again", self.name)
        self._failures, self._error, self._next_probe, self._answered = 0, None, None, True

    def failed(self, error: ModelUnavailable) -> None:
        self._failures += 1
        self._error = error
        if self._next_probe is None and self._failures >= self._limit:
            self._next_probe = self._clock() + self._interval
            _log.warning(
                "%s failed %d times in a row and is left alone for %g s: %s",
                self.name,
                self._failures,
                self._interval,
                error,
            )

    def state(self) -> BreakerState:
        error = None if self._error is None else str(self._error)
        if self._next_probe is None:
            return BreakerState("closed", self._failures, None, error, self._answered)
        state: Literal["open", "half-open"] = "half-open" if self._probes else "open"
        return BreakerState(state, self._failures, max(0.0, self._next_probe - self._clock()), error, self._answered)


class Checked(Generic[What, Got]):
    """Fails at once while a breaker is open, before the call queues for a slot."""

    def __init__(self, inner: Service[What, Got], breaker: Breaker) -> None:
        self._inner = inner
        self._breaker = breaker

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Yield the answer, or raise BreakerOpen."""
        self._breaker.check()
        async with aclosing(self._inner.call(ask)) as pieces:
            async for piece in pieces:
                yield piece


class Guarded(Generic[What, Got]):
    """Reports the results of calls to a breaker."""

    def __init__(self, inner: Service[What, Got], breaker: Breaker) -> None:
        self._inner = inner
        self._breaker = breaker

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Yield the answer, or raise BreakerOpen."""
        probe = self._breaker.admit()
        try:
            async with aclosing(self._inner.call(ask)) as pieces:
                async for piece in pieces:
                    # Counted at the first piece, because the caller may stop before the last one.
                    self._breaker.answered()
                    yield piece
        except ModelUnavailable as error:
            self._breaker.failed(error)
            raise
        except (ModelRefused, ModelGarbled):
            self._breaker.answered()
            raise
        finally:
            self._breaker.done(probe=probe)


class ConcurrencyLimit:
    """The concurrent calls allowed at one provider, shared by its models."""

    def __init__(self, name: str, count: int) -> None:
        self.name = name
        self.count = count
        self._free = asyncio.Semaphore(count)

    async def take(self, until: float) -> None:
        """Wait for a free slot, in order of arrival. Raises ModelUnavailable at the deadline."""
        try:
            async with asyncio.timeout_at(until):
                await self._free.acquire()
        except TimeoutError:
            raise ModelUnavailable(
                f"{self.name} is busy: its limit of {self.count} concurrent calls was in use until the deadline. "
                f"Raise its concurrency or the timeout"
            ) from None

    def give_back(self) -> None:
        self._free.release()


class Limited(Generic[What, Got]):
    """Holds a slot from the request to the last piece."""

    def __init__(self, inner: Service[What, Got], limit: ConcurrencyLimit) -> None:
        self._inner = inner
        self._limit = limit

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        await self._limit.take(ask.answer_by)
        try:
            async with aclosing(self._inner.call(ask)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            self._limit.give_back()


class Deadline(Generic[What, Got]):
    """Aborts calls that take too long: until the first piece, between two pieces, or in total."""

    def __init__(self, inner: Service[What, Got], name: str, *, stall: float) -> None:
        self._inner = inner
        self._name = name
        self._stall = stall

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Yield the pieces that arrive in time. Raises ModelUnavailable on a timeout."""
        time = asyncio.get_running_loop().time
        started, next_by, came = time(), min(ask.answer_by, ask.over_by), 0
        async with aclosing(self._inner.call(ask)) as pieces:
            while True:
                try:
                    # The timeout covers waiting only: the caller's work between two pieces is never cancelled.
                    async with asyncio.timeout_at(next_by):
                        piece = await anext(pieces)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    what = f"fell silent after {came} pieces" if came else "did not answer"
                    raise self._late(what, time() - started, ask) from None
                if came and time() >= ask.over_by:
                    # Pieces that arrive without waiting would never hit the timeout.
                    raise self._late(f"was not done after {came} pieces", time() - started, ask)
                came += 1
                yield piece
                next_by = min(ask.over_by, time() + self._stall)

    def _late(self, what: str, seconds: float, ask: Ask[What]) -> ModelUnavailable:
        return ModelUnavailable(
            f"{self._name} {what}; given up after {seconds:.1f} s. If it is only slow, raise the timeout of "
            f"{ask.operation!r}"
        )


class Fallback(Generic[What, Got]):
    """Calls models in order until one begins to answer.

    Each gets an equal share of the time that is left, so that one which hangs does not use up the time of the next. A
    spending limit ends it: the next model would cost as well.
    """

    def __init__(self, chain: Sequence[Service[What, Got]]) -> None:
        self._chain = chain

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        async with aclosing(await self._begin(ask)) as pieces:
            async for piece in pieces:
                yield piece

    async def _begin(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        time = asyncio.get_running_loop().time
        failures: list[ModelError] = []
        for number, service in enumerate(self._chain):
            now = time()
            share = (ask.answer_by - now) / (len(self._chain) - number)
            try:
                return await begin(service, replace(ask, answer_by=now + share))
            except (ModelUnavailable, ModelRefused, ModelGarbled) as error:
                failures.append(error)
                if number + 1 < len(self._chain):
                    _log.warning("%s falls back to the next model: %s", ask.operation, error)
        raise _together(ask, failures)


def _together(ask: Ask[What], failures: list[ModelError]) -> ModelError:
    """Combine errors: the result is retryable if one of them is, otherwise it needs a person."""
    if not failures:
        return NoModel(f"no model is configured to {ask.operation}")
    if len(failures) == 1:
        return failures[0]
    text = f"no model of the chain did {ask.operation!r}: " + "; ".join(str(error) for error in failures)
    waits = [error.retry_after for error in failures if isinstance(error, ModelUnavailable)]
    if waits:
        return ModelUnavailable(text, retry_after=min((wait for wait in waits if wait is not None), default=None))
    kind = ModelRefused if any(isinstance(error, ModelRefused) for error in failures) else ModelGarbled
    return kind(text)


class _SaidAlready(logging.Filter):
    """Drops stamina's log records about retries: this module logs them, with the error."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not str(getattr(record, "stamina.caused_by", "")).startswith("ModelUnavailable(")


_SAID_ALREADY: Final = _SaidAlready()


class Retry(Generic[What, Got]):
    """Asks again when a model is unavailable: after longer and longer pauses, or when the server said so.

    Never after the first piece, never past the deadline, and not while the breaker is open.
    """

    def __init__(
        self,
        inner: Service[What, Got],
        attempts: int,
        *,
        first_pause: float = 0.25,
        longest_pause: float = 5.0,
        jitter: float = 0.5,
    ) -> None:
        self._inner = inner
        self._attempts = attempts
        self._first_pause = first_pause
        self._longest_pause = longest_pause
        self._jitter = jitter

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        async with aclosing(await self._begin(ask)) as pieces:
            async for piece in pieces:
                yield piece

    async def _begin(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        try:
            import stamina  # noqa: PLC0415 - only programs that use a model need it
        except ImportError as error:
            raise ModelError(f"calling a model needs stamina; {how_to_install('models')}") from error
        logging.getLogger("stamina").addFilter(_SAID_ALREADY)
        time = asyncio.get_running_loop().time
        pause = 0.0

        def again(error: Exception) -> bool | float:
            if not isinstance(error, ModelUnavailable) or isinstance(error, BreakerOpen):
                return False
            wait = pause if error.retry_after is None else error.retry_after
            if wait >= ask.answer_by - time():
                return False
            _log.info("retrying %s: %s", ask.operation, error)
            return True if error.retry_after is None else wait

        async for attempt in stamina.retry_context(
            on=again,
            attempts=self._attempts,
            timeout=None,
            wait_initial=self._first_pause,
            wait_max=self._longest_pause,
            wait_jitter=self._jitter,
        ):
            with attempt:
                pause = attempt.next_wait + self._jitter
                return await begin(self._inner, ask)
        raise AssertionError("stamina lets the last error through")


class RunningCalls:
    """The running calls. Closing cancels them and prevents new ones."""

    def __init__(self) -> None:
        self._running: set[asyncio.Timeout] = set()
        self._closed = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run a call. Raises ModelUnavailable if `close` is called before it ends."""
        if self._closed:
            raise ModelUnavailable(_WHY)
        # A timeout whose deadline `close` sets to now: it ends the call without cancelling its caller.
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._running.add(limit)
                try:
                    yield
                finally:
                    self._running.discard(limit)
        except TimeoutError:
            if limit.expired():
                raise ModelUnavailable(_WHY) from None
            raise

    def close(self) -> None:
        self._closed = True
        for limit in self._running:
            limit.reschedule(asyncio.get_running_loop().time())


_WHY = "the memory was closed before the model answered"
