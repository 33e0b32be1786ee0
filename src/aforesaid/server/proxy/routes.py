"""The routes of the proxy."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from aiohttp import ClientError, ClientResponse
from fastapi import APIRouter, HTTPException, Request, Response
from starlette.responses import StreamingResponse
from starlette.routing import Route

from aforesaid.errors import ModelUnavailable, quoted
from aforesaid.models.redact import redact
from aforesaid.server.auth import Credential
from aforesaid.server.dependencies import App, Reader, StateDep, admitted, state_of
from aforesaid.server.proxy.app_prompts import is_task
from aforesaid.server.proxy.caller import Caller, NoMemory, caller_of
from aforesaid.server.proxy.insertion import insert, insert_in_question
from aforesaid.server.proxy.proxy_memory import MemoryOutcome
from aforesaid.server.proxy.reply import Reply
from aforesaid.server.proxy.turns import text_of
from aforesaid.server.proxy.upstream import returned
from aforesaid.server.state import AppState
from aforesaid.settings import Provider

router = APIRouter(prefix="/v1", tags=["proxy"], include_in_schema=False)

MEMORY: Final = "x-aforesaid-memory"
_TOO_LONG: Final = b"context_length_exceeded"
_ABOUT_ROLES: Final = re.compile(rb"\brole|system message|system prompt|alternat", re.IGNORECASE)
"""What the errors of chat templates say that accept a system message at the beginning alone, or none at all."""
_REFUSED: Final = frozenset({400, 422, 500})
"""Statuses of such errors, and of requests that are too long. llama.cpp answers 500 where a template fails."""
_AT_ONCE: Final = 1024 * 1024
"""Answers below this many bytes that are no streams are read as a whole before they are passed back."""
_NOT_WANTED: Final = NoMemory("the request asks for none")
_APP_TASK: Final = NoMemory("a task of the app, such as a title")
_NO_MESSAGES: Final = NoMemory("the request has no list of messages")
_ID_CHARACTERS: Final = 255


@dataclass(slots=True)
class Exchange:
    """One request that is passed on."""

    here: AppState
    request: Request
    provider: Provider
    path: str
    memory: MemoryOutcome | NoMemory | None = None
    """What the memory did; None for requests that are no chats."""

    @property
    def outcome(self) -> MemoryOutcome | None:
        """What the memory did, where it did something."""
        return self.memory if isinstance(self.memory, MemoryOutcome) else None


async def chat(request: Request) -> Response:
    """Answer a chat, with memory."""
    here, who = state_of(request), await admitted(request, "app")
    raw = await request.body()
    body = _object(raw)
    provider, model = here.upstream.choose(body.get("model"))
    exchange = Exchange(here, request, provider, "/chat/completions")
    caller = _caller(request, who, body, here)
    if isinstance(caller, NoMemory):
        exchange.memory = caller
    else:
        exchange.memory = await here.proxy_memory.before(caller, body, model, here.finish)
    changed = body if model is None else {**body, "model": model}
    answer = await _answered(exchange, changed, raw if changed == body else _dumped(changed))
    if exchange.outcome is not None:
        await here.proxy_memory.wait_until_stored(exchange.outcome)
    return await _relayed(exchange, answer)


async def _answered(exchange: Exchange, body: dict[str, Any], plain: bytes) -> ClientResponse | Response:
    """Send a chat on, with what is remembered if there is something. A model that refuses that is asked again."""
    text = None if exchange.outcome is None else exchange.outcome.text
    if text is None or not (text.stable or text.for_question):
        return await _sent(exchange, plain)
    model = exchange.provider.name, str(body.get("model"))
    strict = exchange.here.upstream.strict_models
    folded = model in strict
    write = insert_in_question if folded else insert
    answer = await _sent(exchange, _dumped({**body, "messages": write(body["messages"], text)}))
    if answer.status not in _REFUSED:
        return answer
    content = await _read(exchange, answer)
    if _TOO_LONG in content:
        return await _sent(exchange, plain)
    if not folded and _ABOUT_ROLES.search(content):
        again = await _sent(exchange, _dumped({**body, "messages": insert_in_question(body["messages"], text)}))
        if again.ok:
            strict[model] = True
        return again
    return Response(content, answer.status, returned(answer.headers))


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
    exchange = Exchange(here, request, provider, "/models" if model is None else f"/models/{_model_id(model)}")
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


def _model_id(model: str) -> str:
    """Return a model's id, quoted for an address, or refuse what could lead elsewhere on the provider's server."""
    parts = model.split("/")
    if len(model) > _ID_CHARACTERS or not model.isprintable() or any(part in {"", ".", ".."} for part in parts):
        raise HTTPException(404, "There is no model with this id.")
    if any(sign in model for sign in "?#%\\"):
        raise HTTPException(404, "There is no model with this id: it has a character that no id has.")
    return "/".join(quote(part, safe=":@+,=~") for part in parts)


def _caller(request: Request, who: Credential, body: dict[str, Any], here: AppState) -> Caller | NoMemory:
    """Return whose memory a chat is about, or why it is about nobody's."""
    wish = request.headers.get(MEMORY, "on").lower()
    if wish not in {"on", "off"}:
        raise HTTPException(400, f"{MEMORY} must be on or off, not {quoted(wish)}.")
    if wish == "off":
        return _NOT_WANTED
    messages = body.get("messages")
    if not isinstance(messages, list):
        return _NO_MESSAGES
    if is_task(_texts(messages, "user"), "\n".join(_texts(messages, "system"))):
        return _APP_TASK
    return caller_of(request.headers, body, who, here.memory)


def _texts(messages: list[object], role: str) -> list[str]:
    return [text_of(each.get("content")) for each in messages if isinstance(each, dict) and each.get("role") == role]


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


async def _relayed(exchange: Exchange, answer: ClientResponse | Response) -> Response:
    """Pass an answer back as it comes, and store what the assistant says in it."""
    if isinstance(answer, Response):
        answer.headers.update(_headers(exchange))
        return answer
    headers = returned(answer.headers) | _headers(exchange)
    reply = Reply(answer.headers.get("content-type", ""))
    if reply.streams or (answer.content_length or _AT_ONCE) >= _AT_ONCE:
        return StreamingResponse(_relay(exchange, answer, reply), answer.status, headers)
    content = await _read(exchange, answer)
    if exchange.outcome is not None and answer.ok:
        reply.feed(content)
        exchange.here.finish(exchange.here.proxy_memory.after(exchange.outcome, reply.texts()))
    return Response(content, answer.status, headers)


def _headers(exchange: Exchange) -> dict[str, str]:
    """Return the headers that say what the memory did, and why it did nothing."""
    memory = exchange.memory
    if memory is None:
        return {}
    if isinstance(memory, NoMemory):
        return {"X-Aforesaid-Memory": "off", "X-Aforesaid-Reason": memory.reason}
    tokens = 0 if memory.text is None else memory.text.tokens
    headers = {"X-Aforesaid-Memory": memory.state, "X-Aforesaid-Tokens": str(tokens)}
    if memory.failures:
        headers["X-Aforesaid-Reason"] = "; ".join(memory.failures.values())
    return headers


async def _relay(exchange: Exchange, answer: ClientResponse, reply: Reply) -> AsyncIterator[bytes]:
    outcome = exchange.outcome if answer.ok else None
    stored = False

    def store() -> None:
        # The client's next request, which holds this reply, waits for its turn until this is done.
        if outcome is not None and not stored:
            said = reply.texts()
            exchange.here.finish(exchange.here.proxy_memory.after(outcome, said, partial=reply.partial))

    try:
        async for data in answer.content.iter_any():
            if outcome is not None:
                reply.feed(data)
            if reply.ended and not stored:
                store()
                stored = True
            yield data
    finally:
        # Also when the client hung up, or the provider did: what had been said until then was heard.
        store()
        answer.close()
