"""Shows a refused form again, with what was typed and what is wrong beside each field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape, unescape
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Message, Scope

from aforesaid.extras import re

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
    template = request.app.state.templates.of(request.scope, request.url.path)
    found: dict[str, Any] | None = request.app.openapi()["paths"].get(template, {}).get(request.method.lower())
    return found


def _fields(request: Request, operation: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return each field that an operation describes: its name, and its name with its place in the request."""
    for each in operation.get("parameters", ()):
        yield each["name"], f"{each['in']}.{each['name']}"
    if "requestBody" in operation:
        yield "body", "body"
        schema = operation["requestBody"]["content"].get("application/json", {}).get("schema", {})
        for name in _properties(request.app.openapi()["components"]["schemas"], schema):
            yield name, f"body.{name}"


Typed = Mapping[str, Sequence[str]]
"""The values of each field, by its name. A field can have several: boxes of the same name that are checked."""

_LEFT_ALONE: Final = frozenset({"hidden", "file", "password", "submit", "button"})
"""Types of inputs that keep the value they were rendered with."""
_FORM: Final = re.compile(r"<form\b([^>]*)>")
_DETAILS: Final = re.compile(r"<(/?)details\b([^>]*)>")
_FIELD: Final = re.compile(r"<(input)\b([^>]*)>|<(textarea|select)\b([^>]*)>(.*?)</\3>", re.DOTALL)
_OPTION: Final = re.compile(r"<option\b([^>]*)>([^<]*)")
_ATTRIBUTE: Final = re.compile(r'([\w-]+)(?:="([^"]*)")?')
"""These fit the HTML of our own templates: attributes have double quotes, and values are escaped."""


def fill_form(
    html: str, *, method: str, path: str, action: Mapping[str, str], typed: Typed, wrong: Mapping[str, str]
) -> str | None:
    """Return a page with its form for `method` and `path` filled in; None if the page has no such form.

    The parameters in `action` are added to the address that the form is sent to. `wrong` has a message for each field
    by its name; messages about something else than a field of the form are shown above all fields.
    """
    for form in _FORM.finditer(html):
        attributes = _attributes(form[1])
        address = urlsplit(attributes.get("action") or "")
        if (attributes.get("method") or "get") == method.lower() and address.path == path:
            break
    else:
        return None
    explained: set[str] = set()

    def filled(field: re.Match[str]) -> str:
        tag, attributes, inside = field[1] or field[3], _attributes(field[2] or field[4] or ""), field[5]
        name, kind = attributes.get("name") or "", (attributes.get("type") or "text").lower()
        values = typed.get(name)
        if tag == "input" and kind in {"checkbox", "radio"}:
            _set(attributes, "checked", on=(attributes.get("value") or "on") in (values or ()))
        elif tag == "input" and kind not in _LEFT_ALONE and values is not None:
            attributes["value"] = values[0]
        elif tag == "textarea" and values is not None:
            inside = "\n" + escape(values[0])  # a line break right after the tag is not part of the text
        elif tag == "select" and values is not None:
            inside = _OPTION.sub(lambda option: _chosen(option, values), inside)
        if kind != "hidden" and name in wrong:
            described = attributes.get("aria-describedby")
            attributes |= {
                "aria-invalid": "true",
                "aria-describedby": " ".join(filter(None, (described, f"wrong-{name}"))),
            }
        whole = _tag(tag, attributes) + ("" if tag == "input" else f"{inside}</{tag}>")
        if kind == "hidden" or name not in wrong or name in explained:
            return whole
        explained.add(name)
        return f'{whole}<b class="wrong" id="wrong-{name}" role="alert">{escape(wrong[name])}</b>'

    end = html.index("</form>", form.end())
    fields = _FIELD.sub(filled, html[form.end() : end])
    others = [message for name, message in wrong.items() if name not in explained]
    above = "".join(f'<p class="notice bad" role="alert">{escape(message)}</p>' for message in others)
    query = [*(each for each in parse_qsl(address.query) if each[0] not in action), *action.items()]
    attributes |= {"action": address._replace(query=urlencode(query)).geturl()} if "action" in attributes else {}
    before, around = html[: form.start()], list[re.Match[str]]()
    for details in _DETAILS.finditer(before):
        around = around[:-1] if details[1] else [*around, details]
    for details in reversed(around):
        opened = _tag("details", _attributes(details[2]) | {"open": None})
        before = before[: details.start()] + opened + before[details.end() :]
    return f"{before}{_tag('form', attributes)}{above}{fields}{html[end:]}"


def _chosen(option: re.Match[str], values: Sequence[str]) -> str:
    attributes, text = _attributes(option[1]), option[2]
    value = attributes.get("value")
    _set(attributes, "selected", on=(unescape(text).strip() if value is None else value) in values)
    return _tag("option", attributes) + text


def _set(attributes: dict[str, str | None], name: str, *, on: bool) -> None:
    attributes.pop(name, None)
    if on:
        attributes[name] = None


def _attributes(written: str) -> dict[str, str | None]:
    """Return the attributes of a tag; None for one without a value."""
    found = _ATTRIBUTE.finditer(written)
    return {each[1]: None if each[2] is None else unescape(each[2]) for each in found}


def _tag(name: str, attributes: Mapping[str, str | None]) -> str:
    written = (f" {key}" if value is None else f' {key}="{escape(value)}"' for key, value in attributes.items())
    return f"<{name}{''.join(written)}>"


CAME_FROM: Final = "came_from"
"""The parameter of a form's address that names the page of the form, where the form is shown again."""
_AGAIN: Final = "aforesaid.form_again"
"""Marks the request for a page that shows a refused form: if that page fails too, there is no third try."""
_ABOUT_THE_BODY: Final = frozenset({b"content-type", b"content-length", b"transfer-encoding"})


async def form_with_errors(request: Request, status: int, detail: str, wrong: Mapping[str, str]) -> Response | None:
    """Return the page of a refused form, with the status of the refusal. None if there is no such page.

    `wrong` has a message for each field by its name; without any, `detail` is shown above the form.
    """
    if _AGAIN in request.scope:
        return None
    typed = await _typed(request)
    if request.method == "POST":
        page = page_of_form(request)
    elif wrong:
        # A page that is asked for with a wrong value can be shown without that value.
        page = Page(request.url.path, urlencode([each for each in _query(request) if each[0] not in wrong]))
    else:
        page = None
    if page is None or (shown := await _get(request, page)) is None:
        return None
    shown_headers, body = shown
    html = fill_form(
        body.decode(),
        method=request.method,
        path=request.url.path,
        # The address of the answer is that of the form, which is no page.
        action={CAME_FROM: str(page)} if request.method == "POST" else {},
        typed=typed,
        wrong=wrong or {"": detail},
    )
    if html is None:
        return None
    answer = Response(html, status)
    length = (b"content-length", str(len(answer.body)).encode())
    answer.raw_headers = [*(each for each in shown_headers if each[0].lower() != length[0]), length]
    return answer


class Page(NamedTuple):
    path: str
    query: str

    def __str__(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path


async def _typed(request: Request) -> Typed:
    items = _query(request) if request.method == "GET" else (await request.form()).multi_items()
    typed: dict[str, list[str]] = {}
    for name, value in items:
        if isinstance(value, str):
            typed.setdefault(name, []).append(value)
    return typed


def _query(request: Request) -> list[tuple[str, str]]:
    return parse_qsl(request.url.query, keep_blank_values=True)


def page_of_form(request: Request) -> Page | None:
    """Return the page that a form was sent from; None if it is not known, or not a page of this server."""
    named = request.query_params.get(CAME_FROM)
    came = urlsplit(request.headers.get("referer", "") if named is None else named)
    own = came.netloc == ("" if named is not None else request.url.netloc)
    if not own or not came.path.startswith("/") or "\\" in came.path:
        return None
    # A form that was refused is shown at the address that it was sent to, which may be no page.
    scope = {"type": "http", "method": "GET", "path": came.path, "root_path": request.scope.get("root_path", "")}
    known = any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes)
    return Page(came.path, came.query) if known else None


async def _get(request: Request, page: Page) -> tuple[list[tuple[bytes, bytes]], bytes] | None:
    """Return the headers and the HTML of a page, for whoever sent a request. None if it is not a page."""
    scope: Scope = {
        **request.scope,
        "method": "GET",
        "path": page.path,
        "raw_path": page.path.encode(),
        "query_string": page.query.encode(),
        "headers": [each for each in request.scope["headers"] if each[0] not in _ABOUT_THE_BODY],
        "path_params": {},
        "state": dict(request.scope.get("state", {})),
        _AGAIN: True,
    }
    received: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        received.append(message)

    await request.app.router(scope, receive, send)
    start, *parts = received
    headers = list(start["headers"])
    if start["status"] != 200 or not dict(headers).get(b"content-type", b"").startswith(b"text/html"):  # noqa: PLR2004
        return None
    return headers, b"".join(part.get("body", b"") for part in parts)
