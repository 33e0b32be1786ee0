"""The routes of the proxy, and who calls them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from aiohttp import ClientResponse
from fastapi import HTTPException, Request, Response
from starlette.datastructures import Headers
from starlette.routing import Route

from aforesaid.errors import quoted
from aforesaid.server.auth import Credential
from aforesaid.server.auth.authentication import admitted, state_of
from aforesaid.server.proxy.app_prompts import is_task
from aforesaid.server.proxy.caller import NoMemory, caller_of
from aforesaid.server.proxy.conversations import text_of
from aforesaid.server.proxy.protocols import PROTOCOLS
from aforesaid.server.proxy.protocols.openai import Protocol
from aforesaid.server.proxy.proxy_memory import MemoryOutcome
from aforesaid.server.proxy.relay import Exchange, read, relayed, send, while_connected
from aforesaid.server.proxy.upstream import returned


def read_object(raw: bytes) -> dict[str, Any]:
    """Return the JSON object of a request. Raises 400 for anything else."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise HTTPException(400, "The request is no JSON.") from None
    if not isinstance(body, dict):
        raise HTTPException(400, "The request is no JSON object.")
    return body


def dumped(body: Mapping[str, Any]) -> bytes:
    """Return a JSON object as bytes. Half of a surrogate pair, which has none, becomes a question mark."""
    return json.dumps(body, ensure_ascii=False).encode(errors="replace")


MEMORY: Final = "x-aforesaid-memory"
_ABOUT_ROLES: Final = re.compile(rb"\brole|system message|system prompt|alternat", re.IGNORECASE)
"""What the errors of chat templates say that accept a system message at the beginning alone, or none at all."""
_REFUSED: Final = frozenset({400, 422, 500})
"""Statuses of such errors, and of requests that are too long. llama.cpp answers 500 where a template fails."""
_NOT_WANTED: Final = NoMemory("the request asks for none")
_APP_TASK: Final = NoMemory("a task of the app, such as a title")


async def chat(protocol: Protocol, request: Request) -> Response:
    here, who = state_of(request), await admitted(request, "app")
    raw = await request.body()
    body = read_object(raw)
    await here.proxy_memory.check_response(who, body.get("previous_response_id"))
    provider, model = here.upstream.choose(body.get("model"), protocol.endpoint.provider)
    exchange = Exchange(here, request, provider, protocol.endpoint, reads=partial(protocol.reply, body))
    exchange.model = model
    return await while_connected(exchange, _chat(protocol, exchange, who, body, raw))


async def _chat(protocol: Protocol, exchange: Exchange, who: Credential, body: dict[str, Any], raw: bytes) -> Response:
    here, model = exchange.here, exchange.model
    exchange.memory = await _remembered(protocol, exchange, who, body, model)
    changed = body if model is None else {**body, "model": model}
    reply = await _answered(protocol, exchange, changed, raw if changed == body else dumped(changed))
    if exchange.outcome is not None:
        try:
            await here.proxy_memory.wait_until_stored(exchange.outcome)
        except asyncio.CancelledError:
            if isinstance(reply, ClientResponse):
                reply.close()
            raise
    return await relayed(exchange, reply)


async def _remembered(
    protocol: Protocol, exchange: Exchange, who: Credential, body: dict[str, Any], model: str | None
) -> MemoryOutcome | NoMemory:
    """Find what is remembered for a chat, and begin to store what is new in it."""
    here, headers = exchange.here, exchange.request.headers
    if not _wanted(headers):
        return _NOT_WANTED
    messages = protocol.messages(body)
    if isinstance(messages, NoMemory):
        return messages
    if is_task(_texts(messages, "user"), "\n".join(_texts(messages, "system"))):
        return _APP_TASK
    fields, chat = protocol.user_fields, protocol.chat_field
    caller = caller_of(headers, body, who, here.memory, user_fields=fields, chat_field=chat)
    if isinstance(caller, NoMemory):
        return caller
    limits, previous = protocol.limits(body), protocol.previous(body)
    return await here.proxy_memory.before(caller, messages, model, here.finish, limits=limits, previous=previous)


async def _answered(
    protocol: Protocol, exchange: Exchange, body: dict[str, Any], plain: bytes
) -> ClientResponse | Response:
    """Send a chat on, with what is remembered if there is something. A model that refuses that is asked again."""
    text = None if exchange.outcome is None else exchange.outcome.text
    if text is None or not (text.stable or text.for_question):
        return await send(exchange, plain)
    model = exchange.provider.name, str(body.get("model"))
    strict = exchange.here.upstream.strict_models
    folded = model in strict
    write = protocol.insert_in_question if folded else protocol.insert
    try:
        with_memory = dumped(write(body, text))
    except RecursionError:  # it is nested so deep that it can be read and not written
        return await _without_memory(exchange, plain)
    answer = await send(exchange, with_memory)
    if answer.status not in _REFUSED:
        return answer
    content = await read(exchange, answer)
    if protocol.too_long.search(content):
        return await _without_memory(exchange, plain)
    if not folded and _ABOUT_ROLES.search(content):
        again = await send(exchange, dumped(protocol.insert_in_question(body, text)))
        if again.ok:
            strict[model] = True
        return again
    return Response(content, answer.status, returned(answer.headers))


async def _without_memory(exchange: Exchange, plain: bytes) -> ClientResponse:
    """Send a chat on as the client sent it, and note that for the headers and the receipt."""
    if exchange.outcome is not None:
        exchange.outcome.text = None
    if exchange.receipt is not None:
        exchange.receipt.sent_without_memory()
    return await send(exchange, plain)


def _wanted(headers: Headers) -> bool:
    """Return whether a request asks for memory, as it does unless it says otherwise."""
    wish = headers.get(MEMORY, "on").lower()
    if wish not in {"on", "off"}:
        raise HTTPException(400, f"{MEMORY} must be on or off, not {quoted(wish)}.")
    return wish == "on"


def _texts(messages: Sequence[object], role: str) -> list[str]:
    return [text_of(each.get("content")) for each in messages if isinstance(each, dict) and each.get("role") == role]


# Routes of Starlette, without what FastAPI does before each request: somebody waits for the first word.
CHATS: Final = tuple(
    Route(each.route, partial(chat, each), methods=["POST"], include_in_schema=False) for each in PROTOCOLS
)
