"""Count calls, their latency and their tokens."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, nullcontext
from time import perf_counter
from typing import Final, Generic, TypeVar

from aforesaid.errors import ModelError
from aforesaid.models.resilience.contract import Ask, Priced, Service, What
from aforesaid.telemetry import Metrics, kind_of
from aforesaid.telemetry.tracing import ModelSpan

Cost = TypeVar("Cost", bound=Priced)

_log: Final = logging.getLogger("aforesaid.models")


class Metered(Generic[What, Cost]):
    """Counts the calls that are sent: number, latency, tokens and result."""

    def __init__(self, inner: Service[What, Cost], model: str, metrics: Metrics) -> None:
        self._inner = inner
        self._model = model
        self._metrics = metrics

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Cost, None]:
        """Yield the answer."""
        seconds, prompt, reply = 0.0, 0, 0
        # The default, if nothing else happens: the caller was cancelled.
        failure: str | None = "abandoned"
        span = self._span(ask)
        try:
            async with aclosing(self._inner.call(ask)) as pieces:
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
            self._metrics.called(
                ask.operation, self._model, seconds, prompt_tokens=prompt, reply_tokens=reply, failure=failure
            )
            if span is not None:
                span.note(gen_ai__usage__input_tokens=prompt or None, gen_ai__usage__output_tokens=reply or None)
                span.end(failure)
            ended = failure or f"{prompt} + {reply} tokens"
            _log.debug("%s by %s: %s, %.2f s", ask.operation, self._model, ended, seconds)

    def _span(self, ask: Ask[What]) -> ModelSpan | None:
        """Begin the span of a call, if tracing is on."""
        tracing = self._metrics.tracing
        if tracing is None:
            return None
        provider, _, model = self._model.partition(":")
        span = tracing.model_call(ask.operation, provider, model)
        messages = getattr(ask.what, "messages", ())
        span.note_text("gen_ai.input.messages", [{"role": each.role, "content": each.content} for each in messages])
        return span
