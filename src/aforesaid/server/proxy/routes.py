"""The routes of the proxy."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import ClientError, ClientResponse
from fastapi import APIRouter, HTTPException, Request, Response
from starlette.responses import StreamingResponse
from starlette.routing import Route

from aforesaid.errors import ModelUnavailable
from aforesaid.memory import Memory, UserMemory
from aforesaid.models.redact import redact
from aforesaid.server.auth import Credential
from aforesaid.server.dependencies import App, Reader, StateDep, admitted, state_of
from aforesaid.server.proxy.remembering import Asking, Remembered
from aforesaid.server.proxy.reply import Reply
from aforesaid.server.proxy.upstream import returned
from aforesaid.server.state import AppState
from aforesaid.settings import Provider

router = APIRouter(prefix="/v1", tags=["proxy"], include_in_schema=False)

USER: Final = "x-aforesaid-user"
THREAD: Final = "x-aforesaid-thread"
SPACE: Final = "x-aforesaid-space"
MEMORY: Final = "x-aforesaid-memory"
_TOO_LONG: Final = b"context_length_exceeded"
_REFUSED: Final = 400
_AT_ONCE: Final = 1024 * 1024
"""An answer of so many bytes that is no stream is read before it is passed back."""


@dataclass(slots=True)
class Exchange:
    """One request that is passed on."""

    here: AppState
    request: Request
    provider: Provider
    path: str
    person: UserMemory | None = None
    remembered: Remembered | None = None


async def chat(request: Request) -> Response:
    """Answer a chat, with memory."""
    here, who = state_of(request), await admitted(request, "app")
    raw = await request.body()
    body = _object(raw)
    provider, model = here.upstream.choose(body.get("model"))
    exchange = Exchange(here, request, provider, "/chat/completions")
    if _wants_memory(request, body):
        exchange.person = _person(request, who, body, here.memory)
        asking = Asking(exchange.person, who.actor)
        exchange.remembered = await here.remembering.before(asking, body, model, here.finish)
    changed = body if model is None else {**body, "model": model}
    added = None if exchange.remembered is None else exchange.remembered.messages
    plain = raw if changed == body else _dumped(changed)
    first = plain if added is None else _dumped({**changed, "messages": added})
    answer = await _sent(exchange, first)
    if added is not None and answer.status == _REFUSED:
        # Perhaps it is the memory that the model has no room for.
        content = await _read(exchange, answer)
        if _TOO_LONG not in content:
            return Response(content, answer.status, returned(answer.headers))
        answer = await _sent(exchange, plain)
    if exchange.remembered is not None:
        # Nobody hears a reply to what could still be lost.
        await exchange.remembered.stored.wait()
    return await _relayed(exchange, answer)


CHAT: Final = Route("/v1/chat/completions", chat, methods=["POST"], include_in_schema=False)
"""A route without what FastAPI does before each: somebody waits for the first word of a reply."""


@router.post("/embeddings")
async def embeddings(request: Request, who: App, here: StateDep) -> Response:
    """Pass a request for vectors on."""
    del who
    raw = await request.body()
    body = _object(raw)
    provider, model = here.upstream.choose(body.get("model"))
    changed = body if model is None else {**body, "model": model}
    exchange = Exchange(here, request, provider, "/embeddings")
    return await _relayed(exchange, await _sent(exchange, raw if changed == body else _dumped(changed)))


@router.get("/models")
@router.get("/models/{model:path}")
async def models(request: Request, who: Reader, here: StateDep, model: str | None = None) -> Response:
    """Pass on which models there are."""
    del who
    provider, _ = here.upstream.choose(None)
    exchange = Exchange(here, request, provider, "/models" if model is None else f"/models/{model}")
    return await _relayed(exchange, await _sent(exchange, None))


def _object(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise HTTPException(400, "The request is no JSON.") from None
    if not isinstance(body, dict):
        raise HTTPException(400, "The request is no JSON object.")
    return body


def _dumped(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode(errors="replace")


def _wants_memory(request: Request, body: dict[str, Any]) -> bool:
    wish = request.headers.get(MEMORY, "on").lower()
    if wish not in {"on", "off"}:
        raise HTTPException(400, f"{MEMORY} is on or off, not {wish!r}.")
    return wish == "on" and isinstance(body.get("messages"), list)


def _person(request: Request, who: Credential, body: dict[str, Any], memory: Memory) -> UserMemory:
    """Return whose memory a chat is about: as a header says, or the request's field, or the key."""
    named = [request.headers.get(USER), body.get("user"), body.get("safety_identifier"), who.user, who.name]
    user = next(str(each) for each in named if isinstance(each, str) and each)
    thread = request.headers.get(THREAD) or None
    return who.person(memory, user, space=request.headers.get(SPACE) or None, thread=thread, audited=False)


async def _sent(exchange: Exchange, body: bytes | None) -> ClientResponse:
    try:
        return await exchange.here.upstream.send(exchange.request, exchange.provider, exchange.path, body)
    except ClientError as error:
        raise _unreachable(exchange, error) from error


async def _read(exchange: Exchange, answer: ClientResponse) -> bytes:
    try:
        return await answer.read()
    except ClientError as error:
        raise _unreachable(exchange, error) from error


def _unreachable(exchange: Exchange, error: ClientError) -> ModelUnavailable:
    return ModelUnavailable(redact(f"{exchange.provider.name} cannot be reached: {type(error).__name__} {error}"))


async def _relayed(exchange: Exchange, answer: ClientResponse) -> Response:
    """Pass an answer back as it comes, and store what the assistant says in it."""
    headers = returned(answer.headers)
    if exchange.remembered is not None:
        headers["X-Aforesaid-Memory"] = exchange.remembered.state
        headers["X-Aforesaid-Tokens"] = str(exchange.remembered.tokens)
    reply = Reply(answer.headers.get("content-type", ""))
    if reply.streams or (answer.content_length or _AT_ONCE) >= _AT_ONCE:
        return StreamingResponse(_relay(exchange, answer, reply), answer.status, headers)
    content = await _read(exchange, answer)
    if exchange.person is not None and answer.ok:
        reply.feed(content)
        exchange.here.finish(_keep(exchange, reply))
    return Response(content, answer.status, headers)


async def _relay(exchange: Exchange, answer: ClientResponse, reply: Reply) -> AsyncIterator[bytes]:
    heard = exchange.person is not None and answer.ok
    stored = False
    try:
        async for data in answer.content.iter_any():
            if heard:
                reply.feed(data)
            if reply.ended and not stored:
                stored = True
                exchange.here.finish(_keep(exchange, reply))
            yield data
    finally:
        if heard and not stored:
            # Also when the client hung up, or the provider did: what had been said until then was heard.
            exchange.here.finish(_keep(exchange, reply))
        answer.close()


async def _keep(exchange: Exchange, reply: Reply) -> None:
    """Store a reply. The client's next request, which will have it too, waits for its turn until this is done."""
    assert exchange.person is not None  # noqa: S101 - only then anything is heard
    await exchange.here.remembering.after(exchange.person, reply.text())
