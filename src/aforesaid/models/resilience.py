"""Wrappers around models that may be down, slow or expensive.

Every wrapper is a `Service` around a `Service`: it takes an `Ask` and yields what comes back. They compose in any
order; this is the order in which a model is wrapped, from the caller to the wire:

    Fallback    tries the next model when one fails
    Retry       calls the same model again after a pause
    Checked     fails at once if the provider's breaker is open
    Limited     limits concurrent calls
    Guarded     the breaker: counts failures, lets one probe through per interval
    Budgeted    limits tokens per day
    Metered     measures time and tokens
    Deadline    limits the duration
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from time import perf_counter
from typing import Final, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

from aforesaid.domain.checks import now
from aforesaid.domain.scope import Scope
from aforesaid.errors import (
    ModelError,
    ModelGarbled,
    ModelRefused,
    ModelUnavailable,
    NoModel,
    SpendingLimit,
    StoreError,
)
from aforesaid.extras import how_to_install
from aforesaid.settings import Operation, RerankOperation, Resilience, SpeechOperation, Spending
from aforesaid.store import Store
from aforesaid.store.people import Spend, TokensSpent
from aforesaid.telemetry import Metrics, kind_of
from aforesaid.telemetry.tracing import ModelSpan

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


@dataclass(frozen=True, slots=True)
class Result(Generic[Got]):
    """An answer in one piece, and what it cost."""

    value: Got
    prompt_tokens: int = 0
    reply_tokens: int = 0


async def begin(service: Service[What, Got], ask: Ask[What]) -> AsyncGenerator[Got, None]:
    """Wait for the first piece and return all pieces. A failure here can be retried with another model."""
    pieces = service.call(ask)
    try:
        first = await anext(pieces)
    except StopAsyncIteration:
        raise ModelGarbled(f"the model was asked to {ask.operation} and returned nothing") from None

    async def whole() -> AsyncGenerator[Got, None]:
        async with aclosing(pieces):
            yield first
            async for piece in pieces:
                yield piece

    return whole()


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


@dataclass(frozen=True)
class Checked(Generic[What, Got]):
    """Fails at once while a breaker is open, before the call queues for a slot."""

    inner: Service[What, Got]
    breaker: Breaker

    def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Return the answer, or raise BreakerOpen."""
        self.breaker.check()
        return self.inner.call(ask)


@dataclass(frozen=True)
class Guarded(Generic[What, Got]):
    """Reports the results of calls to a breaker."""

    inner: Service[What, Got]
    breaker: Breaker

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Yield the answer, or raise BreakerOpen."""
        probe = self.breaker.admit()
        try:
            async with aclosing(self.inner.call(ask)) as pieces:
                async for piece in pieces:
                    # Counted at the first piece, because the caller may stop before the last one.
                    self.breaker.answered()
                    yield piece
        except ModelUnavailable as error:
            self.breaker.failed(error)
            raise
        except (ModelRefused, ModelGarbled):
            self.breaker.answered()
            raise
        finally:
            self.breaker.done(probe=probe)


class ConcurrencyLimit:
    """The concurrent calls allowed at one provider, shared by its models."""

    def __init__(self, name: str, count: int) -> None:
        self.name = name
        self.count = count
        self._free = asyncio.Semaphore(count)

    @asynccontextmanager
    async def slot(self, until: float) -> AsyncIterator[None]:
        """Wait for a free slot, in order of arrival, and hold it. Raises ModelUnavailable at the deadline."""
        try:
            async with asyncio.timeout_at(until):
                await self._free.acquire()
        except TimeoutError:
            raise ModelUnavailable(
                f"{self.name} is busy: its limit of {self.count} concurrent calls was in use until the deadline. "
                f"Raise its concurrency or the timeout"
            ) from None
        try:
            yield
        finally:
            self._free.release()


@dataclass(frozen=True)
class Limited(Generic[What, Got]):
    """Holds a slot from the request to the last piece."""

    inner: Service[What, Got]
    limit: ConcurrencyLimit

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        async with self.limit.slot(ask.answer_by), aclosing(self.inner.call(ask)) as pieces:
            async for piece in pieces:
                yield piece


@dataclass(frozen=True)
class Deadline(Generic[What, Got]):
    """Aborts calls that take too long: until the first piece, between two pieces, or in total."""

    inner: Service[What, Got]
    name: str
    stall: float

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        """Yield the pieces that arrive in time. Raises ModelUnavailable on a timeout."""
        time = asyncio.get_running_loop().time
        started, next_by, came = time(), min(ask.answer_by, ask.over_by), 0
        async with aclosing(self.inner.call(ask)) as pieces:
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
                next_by = min(ask.over_by, time() + self.stall)

    def _late(self, what: str, seconds: float, ask: Ask[What]) -> ModelUnavailable:
        return ModelUnavailable(
            f"{self.name} {what}; given up after {seconds:.1f} s. If it is only slow, raise the timeout of "
            f"{ask.operation!r}"
        )


@dataclass(frozen=True)
class Fallback(Generic[What, Got]):
    """Calls models in order until one begins to answer.

    Each gets an equal share of the time that is left, so that one which hangs does not use up the time of the next. A
    spending limit ends it: the next model would cost as well.
    """

    chain: Sequence[Service[What, Got]]

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
        time = asyncio.get_running_loop().time
        failures: list[ModelError] = []
        for left, service in zip(range(len(self.chain), 0, -1), self.chain, strict=True):
            now = time()
            try:
                pieces = await begin(service, replace(ask, answer_by=now + (ask.answer_by - now) / left))
            except (ModelUnavailable, ModelRefused, ModelGarbled) as error:
                failures.append(error)
                if left > 1:
                    _log.warning("%s falls back to the next model: %s", ask.operation, error)
                continue
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece
            return
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


@dataclass(frozen=True)
class Retry(Generic[What, Got]):
    """Asks again when a model is unavailable: after longer and longer pauses, or when the server said so.

    Never after the first piece, never past the deadline, and not while the breaker is open.
    """

    inner: Service[What, Got]
    attempts: int
    first_pause: float = 0.25
    longest_pause: float = 5.0
    jitter: float = 0.5

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Got, None]:
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
            attempts=self.attempts,
            timeout=None,
            wait_initial=self.first_pause,
            wait_max=self.longest_pause,
            wait_jitter=self.jitter,
        ):
            with attempt:
                pause = attempt.next_wait + self.jitter
                pieces = await begin(self.inner, ask)
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece


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


_Payer: TypeAlias = tuple[str, str] | None


class SpendingLedger(Protocol):
    """Counts the tokens of each day, shared by all processes."""

    async def spent(self, day: date, scope: Scope | None) -> int:
        """Return the tokens that a user spent on a day, or with None the total of all users."""

    async def spend(self, day: date, scope: Scope | None, tokens: int) -> None:
        """Add spent tokens to the total and, with a scope, to its user."""


class MemoryLedger:
    """Counts tokens in this process only."""

    def __init__(self) -> None:
        self._spent: Counter[tuple[date, _Payer]] = Counter()

    async def spent(self, day: date, scope: Scope | None) -> int:
        return self._spent[day, _payer(scope)]

    async def spend(self, day: date, scope: Scope | None, tokens: int) -> None:
        for payer in {_payer(scope), None}:
            self._spent[day, payer] += tokens


class Budget:
    """The limits and the reserved tokens, shared by all models."""

    def __init__(self, limits: Spending, ledger: SpendingLedger, clock: Callable[[], int] = now) -> None:
        self._limits = limits
        self._ledger = ledger
        self._clock = clock
        self._pending: Counter[_Payer] = Counter()

    async def check(self, scope: Scope | None) -> None:
        """Raise SpendingLimit if spent and reserved tokens reach a limit."""
        limits: list[tuple[int | None, Scope | None, str]] = [(self._limits.tokens_per_day, None, "all users together")]
        if scope is not None:
            limits.append((self._limits.tokens_per_user_and_day, scope, f"user {scope.user!r}"))
        day = self.today()
        known = [
            (limit, payer, whose, await self._ledger.spent(day, payer))
            for limit, payer, whose in limits
            if limit is not None
        ]
        # Reserved tokens are read last and without awaiting, because the caller reserves right after this.
        for limit, payer, whose, spent in known:
            if (used := spent + self._pending[_payer(payer)]) >= limit:
                raise SpendingLimit(
                    f"{whose} used {used:,} of {limit:,} tokens on {day} (UTC). Raise the limit in [spending], or wait "
                    f"until tomorrow"
                )

    async def book(self, scope: Scope | None, tokens: int) -> None:
        """Count spent tokens. A failing ledger is only logged, because the answer is already paid for."""
        try:
            await self._ledger.spend(self.today(), scope, tokens)
        except StoreError as error:
            _log.warning("%d tokens could not be counted: %s", tokens, error)

    @contextmanager
    def reserve(self, scope: Scope | None, tokens: int) -> Iterator[None]:
        """Reserve an estimate during a call, so that concurrent calls together respect the limit."""
        payers = {_payer(scope), None}
        self._pending.update(dict.fromkeys(payers, tokens))
        try:
            yield
        finally:
            self._pending.subtract(dict.fromkeys(payers, tokens))

    def today(self) -> date:
        """Return the current day in UTC."""
        return datetime.fromtimestamp(self._clock() / 1_000_000, UTC).date()


Cost = TypeVar("Cost", bound=Priced)


@dataclass(frozen=True)
class Budgeted(Generic[What, Cost]):
    """Asks only while there is something left to spend, and books what it took.

    Where a provider does not say what an answer cost, it is estimated. A call that failed costs nothing here.
    """

    inner: Service[What, Cost]
    budget: Budget
    estimate: Callable[[What], int]
    estimate_reply: Callable[[Cost], int]

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Cost, None]:
        """Yield the answer, or raise SpendingLimit."""
        await self.budget.check(ask.scope)
        guess = self.estimate(ask.what)
        told = guessed = 0
        try:
            with self.budget.reserve(ask.scope, guess):
                async with aclosing(self.inner.call(ask)) as pieces:
                    async for piece in pieces:
                        told += piece.prompt_tokens + piece.reply_tokens
                        guessed += self.estimate_reply(piece)
                        yield piece
        finally:
            if tokens := told or (guessed and guess + guessed):
                await self.budget.book(ask.scope, tokens)


def _payer(scope: Scope | None) -> _Payer:
    return None if scope is None else (scope.space, scope.user)


@dataclass(frozen=True)
class Metered(Generic[What, Cost]):
    """Counts the calls that are sent: number, latency, tokens and result."""

    inner: Service[What, Cost]
    model: str
    metrics: Metrics

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Cost, None]:
        seconds, prompt, reply = 0.0, 0, 0
        # The default, if nothing else happens: the caller was cancelled.
        failure: str | None = "abandoned"
        span = self._span(ask)
        try:
            async with aclosing(self.inner.call(ask)) as pieces:
                while True:
                    began = perf_counter()
                    try:
                        with nullcontext() if span is None else span.current():
                            piece = await anext(pieces)
                    except StopAsyncIteration:
                        break
                    finally:
                        # Only waiting is measured, not the caller's work between two pieces.
                        seconds += perf_counter() - began
                    prompt, reply = prompt + piece.prompt_tokens, reply + piece.reply_tokens
                    yield piece
            failure = None
        except ModelError as error:
            failure = kind_of(error)
            raise
        finally:
            self.metrics.called(
                ask.operation, self.model, seconds, prompt_tokens=prompt, reply_tokens=reply, failure=failure
            )
            if span is not None:
                span.note(gen_ai__usage__input_tokens=prompt or None, gen_ai__usage__output_tokens=reply or None)
                span.end(failure)
            ended = failure or f"{prompt} + {reply} tokens"
            _log.debug("%s by %s: %s, %.2f s", ask.operation, self.model, ended, seconds)

    def _span(self, ask: Ask[What]) -> ModelSpan | None:
        """Begin the span of a call, if tracing is on."""
        tracing = self.metrics.tracing
        if tracing is None:
            return None
        provider, _, model = self.model.partition(":")
        span = tracing.model_call(ask.operation, provider, model)
        messages = getattr(ask.what, "messages", ())
        span.note_text("gen_ai.input.messages", [{"role": each.role, "content": each.content} for each in messages])
        return span


class StoreLedger:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def spent(self, day: date, scope: Scope | None) -> int:
        return await self._store.read(TokensSpent(day, scope))

    async def spend(self, day: date, scope: Scope | None, tokens: int) -> None:
        await self._store.apply([Spend(day, scope, tokens)])


def wrapped(
    service: Service[What, Cost],
    name: str,
    breaker: Breaker,
    limit: ConcurrencyLimit,
    resilience: Resilience,
    metrics: Metrics,
    budgeted: Callable[[Service[What, Cost]], Service[What, Cost]] = lambda service: service,
) -> Service[What, Cost]:
    """Wrap a service in what every call to a server needs, up to the check of its breaker."""
    service = Metered(Deadline(service, name, resilience.stall_seconds), name, metrics)
    return Checked(Limited(Guarded(budgeted(service), breaker), limit), breaker)
