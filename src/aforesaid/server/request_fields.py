"""Which field of a request an argument of the library came from."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
        model = request.app.openapi()["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {})
        for name in model.get("properties", ()):
            yield name, f"body.{name}"
