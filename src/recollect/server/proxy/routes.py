"""The routes of the proxy."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import httpx2
from fastapi import APIRouter, HTTPException, Request, Response
from starlette.responses import StreamingResponse

from recollect.errors import ModelUnavailable
from recollect.memory import UserMemory
from recollect.models.redact import redact
from recollect.server.auth import Credential
from recollect.server.needs import App, Here, Reader, Served, TheMemory
from recollect.server.proxy.remembering import Remembered
from recollect.server.proxy.reply import Reply
from recollect.server.proxy.upstream import returned
from recollect.settings import Provider

router = APIRouter(prefix="/v1", tags=["proxy"], include_in_schema=False)

USER: Final = "x-recollect-user"
THREAD: Final = "x-recollect-thread"
SPACE: Final = "x-recollect-space"
MEMORY: Final = "x-recollect-memory"
_TOO_LONG: Final = b"context_length_exceeded"
_REFUSED: Final = 400


@dataclass(slots=True)
class Exchange:
    """One request that is passed on."""

    here: Served
    request: Request
    provider: Provider
    path: str
    person: UserMemory | None = None
    remembered: Remembered | None = None


@router.post("/chat/completions")
async def chat(request: Request, who: App, here: Here, memory: TheMemory) -> Response:
    """Answer a chat, with memory."""
    raw = await request.body()
    body = _object(raw)
    provider, model = here.upstream.choose(body.get("model"))
    exchange = Exchange(here, request, provider, "/chat/completions")
    if _wants_memory(request, body):
        exchange.person = _person(request, who, body, memory)
        exchange.remembered = await here.remembering.before(exchange.person, body, model, here.finish)
    changed = body if model is None else {**body, "model": model}
    added = None if exchange.remembered is None else exchange.remembered.messages
    plain = raw if changed == body else _dumped(changed)
    first = plain if added is None else _dumped({**changed, "messages": added})
    answer = await _sent(exchange, first)
    if added is not None and answer.status_code == _REFUSED:
        # Perhaps it is the memory that the model has no room for.
        content = await _read(answer)
        if _TOO_LONG not in content:
            return Response(content, answer.status_code, returned(answer.headers))
        answer = await _sent(exchange, plain)
    if exchange.remembered is not None:
        # Nobody hears a reply to what could still be lost.
        await exchange.remembered.stored.wait()
    return _relayed(exchange, answer)


@router.post("/embeddings")
async def embeddings(request: Request, who: App, here: Here) -> Response:
    """Pass a request for vectors on."""
    del who
    raw = await request.body()
    body = _object(raw)
    provider, model = here.upstream.choose(body.get("model"))
    changed = body if model is None else {**body, "model": model}
    exchange = Exchange(here, request, provider, "/embeddings")
    return _relayed(exchange, await _sent(exchange, raw if changed == body else _dumped(changed)))


@router.get("/models")
@router.get("/models/{model:path}")
async def models(request: Request, who: Reader, here: Here, model: str | None = None) -> Response:
    """Pass on which models there are."""
    del who
    provider, _ = here.upstream.choose(None)
    exchange = Exchange(here, request, provider, "/models" if model is None else f"/models/{model}")
    return _relayed(exchange, await _sent(exchange, None))


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


def _person(request: Request, who: Credential, body: dict[str, Any], memory: TheMemory) -> UserMemory:
    """Return whose memory a chat is about: as a header says, or the request's field, or the key."""
    named = [request.headers.get(USER), body.get("user"), body.get("safety_identifier"), who.user, who.name]
    user = next(str(each) for each in named if isinstance(each, str) and each)
    thread = request.headers.get(THREAD) or None
    return who.person(memory, user, space=request.headers.get(SPACE) or None, thread=thread)


async def _sent(exchange: Exchange, body: bytes | None) -> httpx2.Response:
    try:
        return await exchange.here.upstream.send(exchange.request, exchange.provider, exchange.path, body)
    except httpx2.HTTPError as error:
        words = redact(f"{exchange.provider.name} cannot be reached: {type(error).__name__} {error}")
        raise ModelUnavailable(words) from error


async def _read(answer: httpx2.Response) -> bytes:
    try:
        return await answer.aread()
    finally:
        await answer.aclose()


def _relayed(exchange: Exchange, answer: httpx2.Response) -> Response:
    """Pass an answer back as it comes, and store what the assistant says in it."""
    headers = returned(answer.headers)
    if exchange.remembered is not None:
        headers["X-Recollect-Memory"] = exchange.remembered.state
        headers["X-Recollect-Tokens"] = str(exchange.remembered.tokens)
    return StreamingResponse(_relay(exchange, answer), answer.status_code, headers)


async def _relay(exchange: Exchange, answer: httpx2.Response) -> AsyncIterator[bytes]:
    reply = Reply(answer.headers.get("content-type", ""))
    heard = exchange.person is not None and answer.is_success
    stored = False
    try:
        async for data in answer.aiter_raw():
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
        exchange.here.finish(answer.aclose())


async def _keep(exchange: Exchange, reply: Reply) -> None:
    """Store a reply. The client's next request, which will have it too, waits for its turn until this is done."""
    assert exchange.person is not None  # noqa: S101 - only then anything is heard
    await exchange.here.remembering.after(exchange.person, reply.text())
