"""Spans for OpenTelemetry, by its conventions for generative AI. Off unless the setting `tracing.enabled` is on.

Nothing here imports OpenTelemetry until a `Tracing` is made. Spans hold no text that people or models wrote, unless
`tracing.content` is on too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from aforesaid.errors import InvalidInput
from aforesaid.extras import how_to_install

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

_SCOPE: Final = "aforesaid"
_OPERATIONS: Final = {"embed": "embeddings", "rerank": "retrieval"}
"""The conventions' names of operations; all others are `chat`."""

SpanKind: TypeAlias = Literal["internal", "client", "server"]
Value: TypeAlias = str | int | float | bool | None


class ModelSpan:
    """The span of one call to a model. It is ended once, whatever happens."""

    def __init__(self, span: Span, *, content: bool) -> None:
        self._span = span
        self._content = content
        self._ended = False

    def headers(self) -> dict[str, str]:
        """Return the headers that make a server's spans children of this one."""
        from opentelemetry import propagate, trace  # noqa: PLC0415 - an extra

        carried: dict[str, str] = {}
        propagate.inject(carried, trace.set_span_in_context(self._span))
        return carried

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make it the parent of what the block begins. The block must not yield to a caller."""
        from opentelemetry import trace  # noqa: PLC0415 - an extra

        with trace.use_span(self._span, record_exception=False, set_status_on_exception=False):
            yield

    def note(self, **values: Value) -> None:
        """Set attributes. A double underscore is written as a dot; None is left out."""
        self._span.set_attributes(_named(values))

    def note_text(self, name: str, messages: Sequence[Mapping[str, Any]]) -> None:
        """Set what was said, as the conventions write messages, if texts may be part of spans."""
        if self._content:
            said = [
                {"role": each.get("role"), "parts": [{"type": "text", "content": each.get("content")}]}
                for each in messages
            ]
            self._span.set_attribute(name, json.dumps(said, ensure_ascii=False))

    def end(self, failure: str | None = None) -> None:
        """End the span; with `failure` as a failed one. Later calls do nothing."""
        if self._ended:
            return
        self._ended = True
        if failure is not None:
            from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 - an extra

            self._span.set_attribute("error.type", failure)
            self._span.set_status(Status(StatusCode.ERROR, failure))
        self._span.end()


class Tracing:
    """Makes spans with one provider of them."""

    on: ClassVar[bool] = False
    """Whether this process has made one."""

    def __init__(self, provider: TracerProvider, *, content: bool = False, owned: bool = False) -> None:
        """`content` says whether spans hold what was asked and answered, `owned` whether `close` ends the provider."""
        Tracing.on = True
        self._provider = provider
        self._owned = owned
        self._tracer = provider.get_tracer(_SCOPE)
        self._content = content

    @contextmanager
    def span(self, name: str, kind: SpanKind = "internal", **values: Value) -> Iterator[ModelSpan]:
        """Make a span around a block, with the spans of the block below it. An exception makes it a failed one."""
        from opentelemetry.trace import SpanKind as Kind  # noqa: PLC0415 - an extra

        with self._tracer.start_as_current_span(
            name, kind=Kind[kind.upper()], attributes=_named(values), record_exception=False
        ) as span:
            try:
                yield ModelSpan(span, content=self._content)
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                raise

    @contextmanager
    def request(self, name: str, headers: Mapping[str, str], **values: Value) -> Iterator[ModelSpan]:
        """Make the span of a request that came in, below the one that its headers name (`traceparent`)."""
        from opentelemetry import context, propagate  # noqa: PLC0415 - an extra

        token = context.attach(propagate.extract(dict(headers)))
        try:
            with self.span(name, "server", **values) as span:
                yield span
        finally:
            context.detach(token)

    def model_call(self, operation: str, provider: str, model: str | None, **values: Value) -> ModelSpan:
        """Begin the span of a call to a model, below the current one. The caller ends it."""
        from opentelemetry.trace import SpanKind as Kind  # noqa: PLC0415 - an extra

        named = _OPERATIONS.get(operation, "chat")
        attributes: dict[str, Value] = {
            "gen_ai__operation__name": named,
            "gen_ai__provider__name": provider,
            "gen_ai__request__model": model,
            "aforesaid__operation": operation,
        }
        span = self._tracer.start_span(
            f"{named} {model}" if model else named, kind=Kind.CLIENT, attributes=_named({**attributes, **values})
        )
        return ModelSpan(span, content=self._content)

    def close(self) -> None:
        """Send what is left. Takes up to some seconds. A provider of the application goes on."""
        if self._owned:
            self._provider.shutdown()
        else:
            self._provider.force_flush()


def current_headers() -> dict[str, str]:
    """Return the headers that make a server's spans children of the current span; none without tracing."""
    if not Tracing.on:
        return {}
    from opentelemetry import propagate  # noqa: PLC0415 - an extra

    carried: dict[str, str] = {}
    propagate.inject(carried)
    return carried


def open_tracing(endpoint: str | None, *, content: bool) -> Tracing:
    """Return a tracing that sends spans by OTLP over HTTP. Raises InvalidInput if its packages are missing.

    If the application has set a provider of its own, that one is used instead. Without an `endpoint`, the variables of
    OpenTelemetry count, such as OTEL_EXPORTER_OTLP_ENDPOINT.
    """
    try:
        from opentelemetry import trace  # noqa: PLC0415 - an extra
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError as error:
        raise InvalidInput(
            f"tracing.enabled needs the package {error.name}; {how_to_install('tracing')}", "tracing.enabled"
        ) from None
    if isinstance(provider := trace.get_tracer_provider(), TracerProvider):
        return Tracing(provider, content=content)
    own = TracerProvider(resource=Resource.create({"service.name": _SCOPE}))
    own.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return Tracing(own, content=content, owned=True)


def _named(values: Mapping[str, Value]) -> dict[str, str | int | float | bool]:
    return {name.replace("__", "."): value for name, value in values.items() if value is not None}
