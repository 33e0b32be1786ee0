"""Passing a request on to its provider and the reply back, byte for byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import ClientError, ClientResponse
from fastapi import Request, Response
from starlette.responses import StreamingResponse

from aforesaid.background import begin
from aforesaid.errors import ModelUnavailable
from aforesaid.models.client import redact
from aforesaid.server.proxy.caller import NoMemory
from aforesaid.server.proxy.chats import headers_of
from aforesaid.server.proxy.protocols import Endpoint
from aforesaid.server.proxy.proxy_memory import MemoryOutcome, RequestReceipt
from aforesaid.server.proxy.reply import Reply, is_stream
from aforesaid.server.proxy.upstream import returned
from aforesaid.server.state import AppState
from aforesaid.settings import Provider
from aforesaid.telemetry.tracing import ModelSpan

_CLIENT_GONE: Final = 499
"""The status of requests whose client hung up, in metrics and logs; nobody gets it."""
_AT_ONCE: Final = 1024 * 1024
"""Replies below this many bytes that are no streams are read as a whole before they are passed back."""


@dataclass(slots=True)
class Exchange:
    here: AppState
    request: Request
    provider: Provider
    endpoint: Endpoint
    memory: MemoryOutcome | NoMemory | None = None
    """What the memory did; None for requests that are no chats."""
    reads: Callable[[str], Reply] | None = None
    """Makes a reader of the reply, by its content type."""
    model: str | None = None
    span: ModelSpan | None = None
    """The span of the call to the provider, if tracing is on."""

    @property
    def outcome(self) -> MemoryOutcome | None:
        return self.memory if isinstance(self.memory, MemoryOutcome) else None

    @property
    def receipt(self) -> RequestReceipt | None:
        return None if self.outcome is None else self.outcome.receipt

    @property
    def operation(self) -> str:
        return "embed" if "embed" in self.endpoint.path else "proxy"

    def end_span(self, failure: str | None = None, reply: Reply | None = None) -> None:
        """End the span of the call, with the tokens that the provider counted."""
        if self.span is None:
            return
        if reply is not None:
            texts = [{"role": "assistant", "content": text} for text in reply.texts()]
            self.span.note_text("gen_ai.output.messages", texts)
            counted = {
                "gen_ai__usage__input_tokens": reply.input_tokens,
                "gen_ai__usage__output_tokens": reply.output_tokens,
            }
            self.span.note(**counted, gen_ai__response__id=reply.id)
        self.span.end(failure)
        self.span = None


async def while_connected(exchange: Exchange, work: Awaitable[Response]) -> Response:
    """Return an answer, or cancel the work on it as soon as the client hangs up. The body of the request has been read.

    Whoever hangs up hears nothing of the answer, so nothing of it is stored, and the provider need not go on with it.
    What is being stored of the request goes on.
    """
    mine, gone = asyncio.current_task(), False

    async def watch() -> None:
        nonlocal gone
        while (await exchange.request.receive())["type"] != "http.disconnect":
            pass
        gone = True
        if mine is not None:
            mine.cancel()

    watching = begin(watch())
    try:
        return await work
    except asyncio.CancelledError:
        exchange.end_span("abandoned")
        if mine is None or not gone or mine.uncancel() > 0:
            raise
        return Response(status_code=_CLIENT_GONE)
    finally:
        watching.cancel()


async def send(exchange: Exchange, body: bytes | None) -> ClientResponse:
    """Send a request to its provider. Raises ModelUnavailable if that cannot be reached."""
    if exchange.receipt is not None:
        exchange.receipt.restart_clock()
    tracing = exchange.here.memory.metrics.tracing
    if tracing is not None:
        exchange.end_span()  # of a request that is sent again
        exchange.span = tracing.model_call(exchange.operation, exchange.provider.name, exchange.model)
    added = {} if exchange.span is None else exchange.span.headers()
    try:
        return await exchange.here.upstream.send(exchange.request, exchange.provider, exchange.endpoint, body, added)
    except ClientError as error:
        exchange.end_span("unavailable")
        raise _unreachable(exchange, error) from error


async def read(exchange: Exchange, answer: ClientResponse) -> bytes:
    """Return a whole reply. Raises ModelUnavailable if its connection breaks."""
    try:
        return await answer.read()
    except ClientError as error:
        exchange.here.upstream.broke_off(exchange.provider, error)
        raise _unreachable(exchange, error) from error


def _unreachable(exchange: Exchange, error: ClientError) -> ModelUnavailable:
    return ModelUnavailable(redact(f"{exchange.provider.name} cannot be reached: {type(error).__name__} {error}"))


async def relayed(exchange: Exchange, answer: ClientResponse | Response) -> Response:
    """Pass an answer back as it comes, and store what the assistant says in it."""
    if exchange.outcome is not None and (isinstance(answer, Response) or not answer.ok):
        exchange.here.proxy_memory.keep_receipt(exchange.outcome)
    if isinstance(answer, Response):
        exchange.end_span(str(answer.status_code))
        answer.headers.update(headers_of(exchange.memory))
        return answer
    headers = returned(answer.headers) | headers_of(exchange.memory)
    kind = answer.headers.get("content-type", "")
    reply = None if exchange.outcome is None or exchange.reads is None or not answer.ok else exchange.reads(kind)
    if is_stream(kind) or (answer.content_length or _AT_ONCE) >= _AT_ONCE:
        return StreamingResponse(_relay(exchange, answer, reply), answer.status, headers)
    content = await read(exchange, answer)
    if exchange.receipt is not None:
        exchange.receipt.note("first_byte")
    if reply is not None:
        reply.feed(content)
        _store_reply(exchange, reply)
    exchange.end_span(None if answer.ok else str(answer.status), reply)
    return Response(content, answer.status, headers)


def _store_reply(exchange: Exchange, reply: Reply) -> None:
    """Begin to store what the assistant said. The client's next request waits until that is done."""
    if exchange.outcome is not None:
        if exchange.receipt is not None:
            exchange.receipt.note("reply")
        exchange.here.finish(exchange.here.proxy_memory.after(exchange.outcome, reply))


async def _relay(exchange: Exchange, answer: ClientResponse, reply: Reply | None) -> AsyncIterator[bytes]:
    stored = reply is None
    try:
        async for data in answer.content.iter_any():
            if exchange.receipt is not None:
                exchange.receipt.note("first_byte")
            if reply is not None:
                reply.feed(data)
                if reply.ended and not stored:
                    _store_reply(exchange, reply)
                    stored = True
            yield data
    except ClientError as error:
        exchange.here.upstream.broke_off(exchange.provider, error)
        raise
    finally:
        # Also when the client or the provider hung up: what had come until then was heard.
        if reply is not None and not stored:
            _store_reply(exchange, reply)
        exchange.end_span(None if answer.ok else str(answer.status), reply)
        answer.close()
