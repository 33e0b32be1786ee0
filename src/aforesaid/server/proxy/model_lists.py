"""Lists of models: `/v1/models` and `/api/tags` name the models of all upstreams.

If several providers are behind the proxy (`server.upstreams`), each is asked, and the lists are joined. A model is
listed if a request that names it goes to the provider that has it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import ClientError
from fastapi import Request, Response
from starlette.responses import JSONResponse

from aforesaid.server.dependencies import admitted, state_of
from aforesaid.server.proxy.protocols import messages
from aforesaid.server.proxy.protocols.protocol import X_API_KEY, Endpoint
from aforesaid.server.proxy.relay import Exchange, read, relayed, send
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
