"""The routes of the proxy: chats, and requests that have nothing to do with memory and are passed on unchanged."""

from __future__ import annotations

import asyncio
import json
import logging
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from aiohttp import ClientError, ClientResponse
from fastapi import HTTPException, Request, Response
from starlette.responses import JSONResponse
from starlette.routing import Route

from aforesaid.domain.checks import json_object
from aforesaid.extras import re
from aforesaid.server.auth import Credential, Role
from aforesaid.server.authentication import admitted, state_of
from aforesaid.server.proxy.chats import REFUSED, attempts, dumped, remembered
from aforesaid.server.proxy.protocols import ANTHROPIC, OLLAMA, PROTOCOLS, X_API_KEY, Endpoint, Protocol
from aforesaid.server.proxy.relay import Exchange, read, relayed, send, while_connected
from aforesaid.server.proxy.upstream import returned
from aforesaid.server.state import AppState
from aforesaid.settings import Provider

_log: Final = logging.getLogger("aforesaid.server.proxy")


def read_object(raw: bytes) -> dict[str, Any]:
    """Return the JSON object of a request. Raises 400 for anything else."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise HTTPException(400, "The request is no JSON.") from None
    if not isinstance(body, dict):
        raise HTTPException(400, "The request is no JSON object.")
    return body


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
    headers = exchange.request.headers
    exchange.memory = await remembered(protocol, here.proxy_memory, headers, body, who, model, here.finish)
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


async def _answered(
    protocol: Protocol, exchange: Exchange, body: dict[str, Any], plain: bytes
) -> ClientResponse | Response:
    """Send a chat on, with what is remembered if there is something. A model that refuses that is asked again."""
    model = exchange.provider.name, str(body.get("model"))
    strict = exchange.here.upstream.strict_models
    tries = attempts(protocol, body, plain, exchange.outcome, strict=model in strict)
    attempt = next(tries)
    while True:
        answer = await send(exchange, attempt.body)
        if attempt.is_last or answer.status not in REFUSED:
            if attempt.in_question and answer.ok:
                strict[model] = True
            return answer
        content = await read(exchange, answer)
        try:
            attempt = tries.send(content)
        except StopIteration:
            return Response(content, answer.status, returned(answer.headers))


# Routes of Starlette, without what FastAPI does before each request: somebody waits for the first word.
CHATS: Final = tuple(
    Route(each.route, partial(chat, each), methods=["POST"], include_in_schema=False) for each in PROTOCOLS
)


_SECONDS: Final = 10.0
"""Maximum time for the list of a provider beside the first. A list without it is better than none."""
_VERSION: Final = "anthropic-version"
_ANTHROPIC_VERSION: Final = "2023-06-01"
_FIELDS: Final = {"/models": "data", "/api/tags": "models"}
"""The field of each kind of list that has the models."""


async def list_models(endpoint: Endpoint, request: Request) -> Response:
    """Return the models of all upstreams; the answer of the only one as it comes, if there is one."""
    here, _ = state_of(request), await admitted(request, "reader")
    if _VERSION in request.headers and not endpoint.at_root:
        endpoint = endpoint._replace(key_header=X_API_KEY, provider=ANTHROPIC)
    first, *others = here.upstream.upstreams(endpoint.provider)
    exchange = Exchange(here, request, first, endpoint)
    if not others:
        return await relayed(exchange, await send(exchange, None))
    lists = asyncio.gather(*(_listed(here, request, each, endpoint) for each in others))
    try:
        answer = await send(exchange, None)
        content = await read(exchange, answer)
        more = [each for of_provider in await lists for each in of_provider]
    finally:
        lists.cancel()
    field = _FIELDS[endpoint.path]
    found = json_object(content) if answer.ok else None
    if found is None or not isinstance(found.get(field), list):
        return Response(content, answer.status, returned(answer.headers))
    return JSONResponse({**found, field: [*found[field], *more]})


async def _listed(here: AppState, request: Request, provider: Provider, endpoint: Endpoint) -> list[dict[str, Any]]:
    """Return the models of a provider that requests are sent to by their names; none if it does not answer."""
    headers = {}
    if provider.name == ANTHROPIC and not endpoint.at_root:
        endpoint = endpoint._replace(key_header=X_API_KEY)
        headers = {_VERSION: request.headers.get(_VERSION, _ANTHROPIC_VERSION)}
    try:
        async with asyncio.timeout(_SECONDS):
            answer = await here.upstream.send(request, provider, endpoint, None, headers)
            found = json_object(await answer.read()) if answer.ok else None
    except (ClientError, TimeoutError) as error:
        _log.warning("the models of %s are not listed: %s %s", provider.name, type(error).__name__, error)
        return []
    models = [] if found is None else found.get(_FIELDS[endpoint.path])
    listed = []
    for model in models if isinstance(models, list) else ():
        name = model.get("id", model.get("name")) if isinstance(model, dict) else None
        if not isinstance(name, str) or here.upstream.routed(name) != provider.name:
            continue
        # Lists of OpenAI and of Anthropic have different fields.
        if endpoint.at_root:
            listed.append(model)
        elif _VERSION in request.headers:
            shown = {"type": "model", "display_name": model["id"], "created_at": "1970-01-01T00:00:00Z"}
            listed.append(shown | model)
        else:
            listed.append({"object": "model", "created": 0, "owned_by": provider.name} | model)
    return listed


_ID_CHARACTERS: Final = 255
_RESPONSE: Final = re.compile(r"(?!(?:cancel|compact|input_items|input_tokens)$)\w[\w:-]*", re.ASCII)
"""Ids of responses. Names of what is below a response are none: clients make `/responses/input_items` of
`/responses/./input_items`, and the provider would be asked for something else than was meant."""
_MODEL: Final = re.compile(r"[^?#%;\\]+")
"""Ids of models, which may have slashes."""
_NATIVE: Final = partial(Endpoint, at_root=True, provider=OLLAMA)
_TO_ANTHROPIC: Final = partial(Endpoint, key_header=X_API_KEY, provider=ANTHROPIC)
_MODELS: Final = "/models"


class PassThrough(NamedTuple):
    method: str
    route: str
    endpoint: Endpoint
    """`{id}` in its path is taken from the request."""
    role: Role = "app"


_ROUTES: Final = (
    PassThrough("POST", "/v1/embeddings", Endpoint("/embeddings")),
    PassThrough("GET", "/v1/models/{model:path}", Endpoint(_MODELS), "reader"),
    PassThrough("POST", "/v1/responses/input_tokens", Endpoint("/responses/input_tokens")),
    PassThrough("POST", "/v1/responses/compact", Endpoint("/responses/compact")),
    PassThrough("GET", "/v1/responses/{id}", Endpoint("/responses/{id}")),
    PassThrough("DELETE", "/v1/responses/{id}", Endpoint("/responses/{id}")),
    PassThrough("POST", "/v1/responses/{id}/cancel", Endpoint("/responses/{id}/cancel")),
    PassThrough("GET", "/v1/responses/{id}/input_items", Endpoint("/responses/{id}/input_items")),
    PassThrough("POST", "/v1/messages/count_tokens", _TO_ANTHROPIC("/messages/count_tokens")),
    PassThrough("GET", "/api/ps", _NATIVE("/api/ps"), "reader"),
    PassThrough("GET", "/api/version", _NATIVE("/api/version"), "reader"),
    PassThrough("POST", "/api/show", _NATIVE("/api/show"), "reader"),
    PassThrough("POST", "/api/embed", _NATIVE("/api/embed")),
    PassThrough("POST", "/api/embeddings", _NATIVE("/api/embeddings")),
)


async def pass_on(what: PassThrough, request: Request) -> Response:
    """Pass a request on, to the provider of the model that it names."""
    here, who = state_of(request), await admitted(request, what.role)
    raw = await request.body()
    body = read_object(raw) if what.method == "POST" and "id" not in request.path_params else {}
    # Ids that could lead elsewhere on the provider's server are refused.
    endpoint = what.endpoint
    if "id" in request.path_params:
        name = _checked_id(_RESPONSE, request.path_params["id"], "response")
        endpoint = endpoint._replace(path=endpoint.path.replace("{id}", name))
    elif endpoint.path == _MODELS:
        path = f"{_MODELS}/{_checked_id(_MODEL, request.path_params['model'], 'model')}"
        endpoint = _TO_ANTHROPIC(path) if _VERSION in request.headers else Endpoint(path)
    await here.proxy_memory.check_response(who, request.path_params.get("id", body.get("previous_response_id")))
    provider, model = here.upstream.choose(body.get("model"), endpoint.provider)
    exchange = Exchange(here, request, provider, endpoint, model=model)
    if body and model is not None and model != body.get("model"):
        raw = dumped({**body, "model": model})

    async def passed_on() -> Response:
        return await relayed(exchange, await send(exchange, raw or None))

    return await while_connected(exchange, passed_on())


def _checked_id(form: re.Pattern[str], given: str, kind: str) -> str:
    """Return an id, quoted for an address. Raises 404 for one that could lead elsewhere on the provider's server."""
    leads_away = any(part in {"", ".", ".."} for part in given.split("/"))
    if leads_away or len(given) > _ID_CHARACTERS or not given.isprintable() or form.fullmatch(given) is None:
        raise HTTPException(404, f"There is no {kind} with this id.")
    return quote(given, safe="/:@+,=~")


_LISTS: Final = {"/v1/models": Endpoint(_MODELS), "/api/tags": _NATIVE("/api/tags")}


PASSED_ON: Final = tuple(
    Route(path, handler, methods=[method], include_in_schema=False)
    for method, path, handler in (
        *(("GET", path, partial(list_models, endpoint)) for path, endpoint in _LISTS.items()),
        *((each.method, each.route, partial(pass_on, each)) for each in _ROUTES),
    )
)
