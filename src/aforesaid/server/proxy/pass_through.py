"""Routes of the proxied APIs that have nothing to do with memory. Their requests are passed on unchanged."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from aiohttp import ClientError
from fastapi import HTTPException, Request, Response
from starlette.responses import JSONResponse
from starlette.routing import Route

from aforesaid.server.auth import Role
from aforesaid.server.auth.authentication import admitted, state_of
from aforesaid.server.proxy.protocols import messages, ollama
from aforesaid.server.proxy.protocols.openai import X_API_KEY, Endpoint
from aforesaid.server.proxy.relay import Exchange, read, relayed, send, while_connected
from aforesaid.server.proxy.routes import dumped, read_object
from aforesaid.server.proxy.upstream import returned
from aforesaid.server.state import AppState
from aforesaid.settings import Provider

_log: Final = logging.getLogger("aforesaid.server.proxy")

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
        endpoint = endpoint._replace(key_header=X_API_KEY, provider=messages.PROVIDER)
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
    found = _object(content) if answer.ok else None
    if found is None or not isinstance(found.get(field), list):
        return Response(content, answer.status, returned(answer.headers))
    return JSONResponse({**found, field: [*found[field], *more]})


async def _listed(here: AppState, request: Request, provider: Provider, endpoint: Endpoint) -> list[dict[str, Any]]:
    """Return the models of a provider that requests are sent to by their names; none if it does not answer."""
    headers = {}
    if provider.name == messages.PROVIDER and not endpoint.at_root:
        endpoint = endpoint._replace(key_header=X_API_KEY)
        headers = {_VERSION: request.headers.get(_VERSION, _ANTHROPIC_VERSION)}
    try:
        async with asyncio.timeout(_SECONDS):
            answer = await here.upstream.send(request, provider, endpoint, None, headers)
            found = _object(await answer.read()) if answer.ok else None
    except (ClientError, TimeoutError) as error:
        _log.warning("the models of %s are not listed: %s %s", provider.name, type(error).__name__, error)
        return []
    models = [] if found is None else found.get(_FIELDS[endpoint.path])
    named = [each for each in models if isinstance(each, dict)] if isinstance(models, list) else []
    return [_in_format(each, provider, request, endpoint) for each in named if _goes_to(here, each, provider)]


def _goes_to(here: AppState, model: Mapping[str, Any], provider: Provider) -> bool:
    name = model.get("id", model.get("name"))
    return isinstance(name, str) and here.upstream.routed(name) == provider.name


def _in_format(model: dict[str, Any], provider: Provider, request: Request, endpoint: Endpoint) -> dict[str, Any]:
    """Return a model in the format of the list: those of OpenAI and of Anthropic have different fields."""
    if endpoint.at_root:
        return model
    if _VERSION in request.headers:
        return {"type": "model", "display_name": model["id"], "created_at": "1970-01-01T00:00:00Z", **model}
    return {"object": "model", "created": 0, "owned_by": provider.name, **model}


def _object(content: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


_ID_CHARACTERS: Final = 255
_RESPONSE: Final = re.compile(r"(?!(?:cancel|compact|input_items|input_tokens)$)\w[\w:-]*", re.ASCII)
"""Ids of responses. Names of what is below a response are none: clients make `/responses/input_items` of
`/responses/./input_items`, and the provider would be asked for something else than was meant."""
_MODEL: Final = re.compile(r"[^?#%;\\]+")
"""Ids of models, which may have slashes."""
_NATIVE: Final = partial(Endpoint, at_root=True, provider=ollama.PROVIDER)
_ANTHROPIC: Final = partial(Endpoint, key_header=X_API_KEY, provider=messages.PROVIDER)
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
    PassThrough("POST", "/v1/messages/count_tokens", _ANTHROPIC("/messages/count_tokens")),
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
    endpoint = _endpoint(what.endpoint, request)
    await here.proxy_memory.check_response(who, request.path_params.get("id", body.get("previous_response_id")))
    provider, model = here.upstream.choose(body.get("model"), endpoint.provider)
    exchange = Exchange(here, request, provider, endpoint, model=model)
    if body and model is not None and model != body.get("model"):
        raw = dumped({**body, "model": model})
    return await while_connected(exchange, _passed_on(exchange, raw))


async def _passed_on(exchange: Exchange, raw: bytes) -> Response:
    return await relayed(exchange, await send(exchange, raw or None))


def _endpoint(endpoint: Endpoint, request: Request) -> Endpoint:
    """Return where the provider answers a request. Ids that could lead elsewhere on its server are refused."""
    if "id" in request.path_params:
        name = _checked_id(_RESPONSE, request.path_params["id"], "response")
        return endpoint._replace(path=endpoint.path.replace("{id}", name))
    if endpoint.path != _MODELS:
        return endpoint
    path = f"{_MODELS}/{_checked_id(_MODEL, request.path_params['model'], 'model')}"
    return _ANTHROPIC(path) if "anthropic-version" in request.headers else Endpoint(path)


def _checked_id(form: re.Pattern[str], given: str, kind: str) -> str:
    """Return an id, quoted for an address. Raises 404 for one that could lead elsewhere on the provider's server."""
    leads_away = any(part in {"", ".", ".."} for part in given.split("/"))
    if leads_away or len(given) > _ID_CHARACTERS or not given.isprintable() or form.fullmatch(given) is None:
        raise HTTPException(404, f"There is no {kind} with this id.")
    return quote(given, safe="/:@+,=~")


_LISTS: Final = {"/v1/models": Endpoint(_MODELS), "/api/tags": _NATIVE("/api/tags")}


def _route(method: str, path: str, handler: Callable[[Request], Awaitable[Response]]) -> Route:
    return Route(path, handler, methods=[method], include_in_schema=False)


ROUTES: Final = (
    *(_route("GET", path, partial(list_models, endpoint)) for path, endpoint in _LISTS.items()),
    *(_route(each.method, each.route, partial(pass_on, each)) for each in _ROUTES),
)
