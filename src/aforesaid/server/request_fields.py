"""Which field of a request an argument of the library came from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from starlette.requests import Request

_OTHER_NAMES: Final = {
    "user": ("user_name",),
    "text": ("content", "fact"),
    "query": ("q",),
    "containing": ("q",),
    "before": ("cursor",),
    "expires": ("expires_at",),
    "memory": ("number",),
    "summary": ("number",),
}
"""What requests call arguments, where the names differ."""

_PARAMETER: Final = re.compile(r"\{\w+\}")

UNKNOWN: Final = "extra_forbidden"
"""The framework's type of error for a field that a request must not have."""


def field_of_request(request: Request, argument: str) -> str | None:
    """Return the field that an argument came from, such as `query.user` or `body.content`; None if there is none.

    For an operation of the API, this is a field that its description has. `argument` can go on with a dot, as in
    `settings.time_zone`; `body` is the whole body. A form of the panel names its fields as the library does.
    """
    operation = _description_of(request)
    if operation is None:
        return f"{'query' if request.method == 'GET' else 'body'}.{argument}"
    first, dot, rest = argument.partition(".")
    described = dict(_fields(request, operation))
    found = next((described[name] for name in (first, *_OTHER_NAMES.get(first, ())) if name in described), None)
    return None if found is None else f"{found}{dot}{rest}"


class UnknownFields:
    """Says which fields there are, for fields of one request that are unknown."""

    def __init__(self, request: Request) -> None:
        """Look up the operation that a request calls."""
        description = request.app.openapi()
        operation = _description_of(request) or {}
        content = operation.get("requestBody", {}).get("content", {})
        self._schemas: dict[str, Any] = description["components"]["schemas"]
        self._body: dict[str, Any] = content.get("application/json", {}).get("schema", {})
        self._query = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]

    def describe(self, place: Sequence[str | int]) -> str | None:
        """Return what to send instead of the unknown field at a place, such as `("body", "messages", 0, "texts")`.

        None if nothing is known about the place.
        """
        where, *path, name = place
        if where == "query":
            if name in _properties(self._schemas, self._body):
                return "Unknown parameter; send it in the body"
            return f"Unknown parameter; {_one_of(self._query) or 'this route takes none'}"
        known = _one_of(_properties(self._schemas, self._body, path))
        if name in self._query and not path:
            return "Unknown field; send it in the query string"
        return f"Unknown field; {known}" if known else None


def _one_of(names: Sequence[str]) -> str:
    return f"use one of {', '.join(names)}" if names else ""


def _properties(schemas: dict[str, Any], schema: dict[str, Any], path: Sequence[str | int] = ()) -> list[str]:
    """Return the names of the fields of the object that a path leads to, in a value that a schema describes."""
    if "$ref" in schema:
        return _properties(schemas, schemas[schema["$ref"].rpartition("/")[2]], path)
    if "anyOf" in schema:
        return next(filter(None, (_properties(schemas, each, path) for each in schema["anyOf"])), [])
    if not path:
        return list(schema.get("properties", ()))
    step, *rest = path
    inner = schema.get("items", {}) if isinstance(step, int) else schema.get("properties", {}).get(step, {})
    return _properties(schemas, inner, rest)


def _description_of(request: Request) -> dict[str, Any] | None:
    """Return what the API's description says about the operation that a request calls."""
    for template, operations in request.app.openapi()["paths"].items():
        pattern = _PARAMETER.sub("[^/]+", re.escape(template).replace(r"\{", "{").replace(r"\}", "}"))
        if request.method.lower() in operations and re.fullmatch(pattern, request.url.path):
            found: dict[str, Any] = operations[request.method.lower()]
            return found
    return None


def _fields(request: Request, operation: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return each field that an operation describes: its name, and its name with its place in the request."""
    for each in operation.get("parameters", ()):
        yield each["name"], f"{each['in']}.{each['name']}"
    if "requestBody" in operation:
        yield "body", "body"
        schema = operation["requestBody"]["content"].get("application/json", {}).get("schema", {})
        for name in _properties(request.app.openapi()["components"]["schemas"], schema):
            yield name, f"body.{name}"
