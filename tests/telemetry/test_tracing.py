"""Spans for OpenTelemetry: with its real SDK, in memory and sent to a receiver on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

import aforesaid
from aforesaid.assistant import Assistant
from aforesaid.errors import ModelUnavailable
from aforesaid.telemetry.tracing import Tracing
from aforesaid.testing import ScriptedModel
from aforesaid.testing.faults import ServerError
from server.serving import live

sdk = pytest.importorskip("opentelemetry.sdk.trace")
export = pytest.importorskip("opentelemetry.sdk.trace.export")
in_memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
WORD = "xylophone"
CALL = "chat scripted"
TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


class Recorded:
    """A tracing whose spans stay in memory."""

    def __init__(self, *, content: bool = False) -> None:
        self._exporter = in_memory.InMemorySpanExporter()
        provider = sdk.TracerProvider()
        provider.add_span_processor(export.SimpleSpanProcessor(self._exporter))
        self.tracing = Tracing(provider, content=content)

    def spans(self) -> dict[str, Any]:
        """Return the finished spans by name."""
        return {span.name: span for span in self._exporter.get_finished_spans()}

    def texts(self) -> str:
        return json.dumps([[span.name, dict(span.attributes)] for span in self._exporter.get_finished_spans()])


async def test_a_reply_of_the_assistant_has_spans_for_its_context_and_its_model(tmp_path: Path) -> None:
    recorded = Recorded()
    with ScriptedModel(["Your secret is safe."]) as model:
        async with aforesaid.connect(tmp_path / "m.db", embedder="none", settings=model.settings()) as memory:
            memory.metrics.tracing = recorded.tracing
            ann = memory.user("ann")
            async for _ in Assistant(memory).reply(ann, f"My secret is {WORD}."):
                pass
            await ann.search(WORD)
        headers = model.requests[-1].headers
    spans = recorded.spans()
    context, call, search = spans["context"], spans[CALL], spans["search"]
    assert call.attributes["gen_ai.operation.name"] == "chat"
    assert call.attributes["gen_ai.provider.name"]
    assert call.attributes["gen_ai.request.model"] == CALL.removeprefix("chat ")
    assert call.attributes["gen_ai.usage.input_tokens"] > 0
    assert call.attributes["gen_ai.usage.output_tokens"] > 0
    assert call.kind.name == "CLIENT"
    assert context.attributes["aforesaid.tokens"] > 0
    assert (search.attributes["gen_ai.operation.name"], search.attributes["aforesaid.hits"]) == ("retrieval", 1)
    assert headers["traceparent"].split("-")[2] == f"{call.context.span_id:016x}"
    assert WORD not in recorded.texts()


async def test_texts_are_part_of_spans_only_if_a_second_setting_says_so(tmp_path: Path) -> None:
    recorded = Recorded(content=True)
    with ScriptedModel(["Noted."]) as model:
        async with aforesaid.connect(tmp_path / "m.db", embedder="none", settings=model.settings()) as memory:
            memory.metrics.tracing = recorded.tracing
            async for _ in Assistant(memory).reply(memory.user("ann"), f"My secret is {WORD}."):
                pass
    messages = json.loads(recorded.spans()[CALL].attributes["gen_ai.input.messages"])
    assert WORD in messages[-1]["parts"][0]["content"]


async def test_a_failed_call_is_a_failed_span(tmp_path: Path) -> None:
    recorded = Recorded()
    with ScriptedModel() as model:
        model.fail(ServerError())
        settings = replace(model.settings(), resilience=replace(model.settings().resilience, attempts=1))
        async with aforesaid.connect(tmp_path / "m.db", embedder="none", settings=settings) as memory:
            memory.metrics.tracing = recorded.tracing
            assert memory.models is not None
            with pytest.raises(ModelUnavailable):
                await memory.models.text("chat", [])
    span = recorded.spans()[CALL]
    assert span.status.status_code.name == "ERROR"
    assert span.attributes["error.type"] == "unavailable"


@pytest.mark.parametrize("stream", [False, True])
def test_a_trace_goes_through_the_proxy_from_the_client_to_the_provider(stream: bool) -> None:  # noqa: FBT001
    received: list[bytes] = []
    with ScriptedModel([f"Yes, {WORD}."]) as model, receiver(received) as endpoint:
        chosen = model.settings()
        tracing = replace(chosen.tracing, enabled=True, endpoint=endpoint)
        with live(settings=replace(chosen, tracing=tracing)) as server:
            answer = httpx2.post(
                f"{server.address}/v1/chat/completions",
                json={"model": "m", "messages": [{"role": "user", "content": WORD}], "user": "ann", "stream": stream},
                headers={
                    "Authorization": f"Bearer {server.key()}",
                    "traceparent": f"00-{TRACE}-{PARENT}-01",
                },
                timeout=60,
            )
            assert answer.status_code == 200, answer.text
        sent_on = next(each.headers for each in model.requests if each.headers.get("traceparent"))
    spans = {span.name: span for body in received for span in parsed(body)}
    request, call, context = spans["POST"], spans["chat m"], spans["context"]
    assert {span.trace_id.hex() for span in (request, call, context)} == {TRACE}
    assert request.parent_span_id.hex() == PARENT
    assert call.parent_span_id == request.span_id
    assert sent_on["traceparent"] == f"00-{TRACE}-{call.span_id.hex()}-01"
    assert WORD.encode() not in b"".join(received)


@contextmanager
def receiver(received: list[bytes]) -> Iterator[str]:
    """A receiver of OTLP over HTTP on loopback, which keeps the bodies of what it gets."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(unpacked(body, self.headers.get("Content-Encoding")))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/traces"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def unpacked(body: bytes, encoding: str | None) -> bytes:
    import gzip  # noqa: PLC0415

    return gzip.decompress(body) if encoding == "gzip" else body


def parsed(body: bytes) -> list[Any]:
    """Return the spans of a request of OTLP."""
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    request = service.ExportTraceServiceRequest.FromString(body)
    return [span for resource in request.resource_spans for scope in resource.scope_spans for span in scope.spans]
