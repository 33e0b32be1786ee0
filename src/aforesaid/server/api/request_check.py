"""Refuses requests with input that their route would not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

from fastapi import Request
from fastapi.exceptions import HTTPException, RequestValidationError
from fastapi.routing import APIRoute

from aforesaid.server.request_fields import UNKNOWN

if TYPE_CHECKING:
    from fastapi._compat import ModelField
    from fastapi.dependencies.models import Dependant

_EMPTY_BODIES: Final = frozenset({b"", b"{}", b"null"})
"""Bodies that say nothing: some clients send one with every POST."""


async def check_request(request: Request) -> None:
    """Refuse parameters and bodies that the route of a request does not take, which it would ignore.

    Raises RequestValidationError (422), or HTTPException (415) for a body that is not declared as JSON.
    """
    route = request.scope["route"]
    assert isinstance(route, APIRoute)  # noqa: S101 - a dependency of such routes alone
    _check_query(request, route)
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    if has_body and "requestBody" not in (route.openapi_extra or {}):  # a route that reads the body itself describes it
        await _check_body(request, route)


def _check_query(request: Request, route: APIRoute) -> None:
    given = Counter(name for name, _ in request.query_params.multi_items())
    if not given:
        return
    known = {field.alias: field for field in _parameters(route.dependant)}
    wrong = [_error(UNKNOWN, "Unknown parameter", "query", name) for name in given if name not in known]
    wrong += [
        _error("repeated", "Send this parameter only once", "query", name)
        for name, count in given.items()
        if count > 1 and name in known and not _is_list(known[name])
    ]
    if wrong:
        raise RequestValidationError(wrong)


async def _check_body(request: Request, route: APIRoute) -> None:
    body = (await request.body()).strip()
    if route.body_field is None:
        if body not in _EMPTY_BODIES:
            text = "This route takes no body; send parameters in the query string"
            raise RequestValidationError([_error("no_body", text, "body")])
    elif body and not _is_json(sent := request.headers.get("content-type", "")):
        instead = f", not `{sent}`" if sent else ""
        raise HTTPException(415, f"The body must be JSON with the header `Content-Type: application/json`{instead}.")


def _is_json(content_type: str) -> bool:
    """Return whether the framework reads a body as JSON."""
    main, _, subtype = content_type.partition(";")[0].strip().lower().partition("/")
    return main == "application" and (subtype == "json" or subtype.endswith("+json"))


def _parameters(dependant: Dependant) -> Iterator[ModelField]:
    """Return the query parameters of a route and its dependencies."""
    yield from dependant.query_params
    for each in dependant.dependencies:
        yield from _parameters(each)


def _is_list(parameter: ModelField) -> bool:
    annotation = parameter.field_info.annotation
    return any(get_origin(each) is list for each in (annotation, *get_args(annotation)))


def _error(kind: str, text: str, *place: str) -> dict[str, Any]:
    return {"type": kind, "loc": place, "msg": text, "input": None}
