"""Shows a refused form again, with what was typed and what is wrong beside each field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from html.parser import HTMLParser
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Message, Scope

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


Attributes = Sequence[tuple[str, str | None]]
Typed = Mapping[str, Sequence[str]]
"""The values of each field, by its name. A field can have several: boxes of the same name that are checked."""

_LEFT_ALONE: Final = frozenset({"hidden", "file", "password", "submit", "button"})
"""Types of inputs that keep the value they were rendered with."""
_CHOSEN: Final = frozenset({"checkbox", "radio"})


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def fill_form(
    html: str, *, method: str, path: str, action: Mapping[str, str], typed: Typed, wrong: Mapping[str, str]
) -> str | None:
    """Return a page with its form for `method` and `path` filled in; None if the page has no such form.

    The parameters in `action` are added to the address that the form is sent to. `wrong` has a message for each field
    by its name; messages about something else than a field of the form are shown above all fields.
    """
    found = _Form(html, method.lower(), path, action, typed, wrong)
    if found.start is None:
        return None
    others = [message for name, message in wrong.items() if name not in found.explained]
    above = "".join(f'<p class="notice bad" role="alert">{escape(message)}</p>' for message in others)
    edits = sorted([*found.edits, _Edit(found.start, found.start, above)], key=lambda edit: (edit.start, edit.end))
    pieces, last = [], 0
    for edit in edits:
        pieces += [html[last : edit.start], edit.text]
        last = edit.end
    return "".join([*pieces, html[last:]])


class _Form(HTMLParser):
    """Finds a form in a page, and collects the edits that fill it in."""

    def __init__(
        self, html: str, method: str, path: str, action: Mapping[str, str], typed: Typed, wrong: Mapping[str, str]
    ) -> None:
        super().__init__(convert_charrefs=True)
        self.edits: list[_Edit] = []
        self.explained: set[str] = set()
        """The fields that have their message."""
        self.start: int | None = None
        """Where the contents of the form begin."""
        self._method, self._path, self._action, self._typed, self._wrong = method, path, action, typed, wrong
        self._lines = [0, *(place + 1 for place, character in enumerate(html) if character == "\n")]
        self._inside = False
        self._details: list[tuple[int, int, Attributes]] = []
        self._textarea: tuple[str, int] | None = None
        self._select = ""
        self._option: tuple[int, int, Attributes] | None = None
        self._option_text = ""
        self.feed(html)
        self.close()

    def _place(self) -> int:
        line, column = self.getpos()
        return self._lines[line - 1] + column

    def handle_starttag(self, tag: str, attrs: Attributes) -> None:
        start = self._place()
        end = start + len(self.get_starttag_text() or "")
        values = dict(attrs)
        if tag == "details" and not self._inside:
            self._details.append((start, end, attrs))
        elif tag == "form" and self.start is None and self._is_wanted(values):
            self._inside, self.start = True, end
            self.edits.append(_Edit(start, end, _tag("form", self._sent_on(attrs))))
            self.edits += [
                _Edit(begin, finish, _tag("details", [*given, ("open", None)]))
                for begin, finish, given in self._details
                if "open" not in dict(given)
            ]
        elif self._inside:
            name = values.get("name") or ""
            if tag == "option":
                self._option, self._option_text = (start, end, attrs), ""
            elif tag == "input":
                self._input(attrs, name, start, end)
            elif tag in {"textarea", "select"}:
                if name in self._wrong:
                    self.edits.append(_Edit(start, end, _tag(tag, _marked(attrs, name))))
                self._textarea = (name, end) if tag == "textarea" else self._textarea
                self._select = name if tag == "select" else self._select

    def _is_wanted(self, values: Mapping[str, str | None]) -> bool:
        action = urlsplit(values.get("action") or "").path
        return (values.get("method") or "get").lower() == self._method and action == self._path

    def _sent_on(self, attrs: Attributes) -> Attributes:
        """Return the attributes of the form with the parameters added to its action."""
        address = urlsplit(dict(attrs).get("action") or "")
        query = urlencode(
            [*(each for each in parse_qsl(address.query) if each[0] not in self._action), *self._action.items()]
        )
        return [each if each[0] != "action" else ("action", address._replace(query=query).geturl()) for each in attrs]

    def _input(self, attrs: Attributes, name: str, start: int, end: int) -> None:
        kind = (dict(attrs).get("type") or "text").lower()
        given = list(attrs)
        if kind in _CHOSEN:
            chosen = (dict(attrs).get("value") or "on") in self._typed.get(name, ())
            given = [each for each in given if each[0] != "checked"] + ([("checked", None)] if chosen else [])
        elif kind not in _LEFT_ALONE and name in self._typed:
            given = [each for each in given if each[0] != "value"] + [("value", self._typed[name][0])]
        if kind != "hidden" and name in self._wrong:
            given = list(_marked(given, name))
        self.edits.append(_Edit(start, end, _tag("input", given)))
        if kind != "hidden":
            self._explain(name, end)

    def handle_data(self, data: str) -> None:
        self._option_text += data

    def handle_endtag(self, tag: str) -> None:
        place = self._place()
        if tag == "details" and not self._inside and self._details:
            self._details.pop()
        elif not self._inside:
            return
        elif tag == "form":
            self._inside = False
        elif tag == "textarea" and self._textarea is not None:
            name, begin = self._textarea
            if name in self._typed:
                # A line break right after the tag is not part of the text.
                self.edits.append(_Edit(begin, place, "\n" + escape(self._typed[name][0])))
            self._explain(name, place + len("</textarea>"))
        elif tag == "option" and self._option is not None and self._select in self._typed:
            start, end, attrs = self._option
            value = dict(attrs).get("value")
            chosen = (self._option_text.strip() if value is None else value) in self._typed[self._select]
            given = [each for each in attrs if each[0] != "selected"] + ([("selected", None)] if chosen else [])
            self.edits.append(_Edit(start, end, _tag("option", given)))
        elif tag == "select":
            self._explain(self._select, place + len("</select>"))

    def _explain(self, name: str, place: int) -> None:
        """Put the message about a field at a place, once."""
        if name in self._wrong and name not in self.explained:
            self.explained.add(name)
            message = escape(self._wrong[name])
            self.edits.append(_Edit(place, place, f'<b class="wrong" id="wrong-{name}" role="alert">{message}</b>'))


def _marked(attrs: Attributes, name: str) -> Attributes:
    """Return the attributes of a field with those that mark it as wrong and point at its message."""
    described = " ".join(filter(None, (dict(attrs).get("aria-describedby"), f"wrong-{name}")))
    kept = [each for each in attrs if each[0] not in {"aria-describedby", "aria-invalid"}]
    return [*kept, ("aria-invalid", "true"), ("aria-describedby", described)]


def _tag(name: str, attrs: Attributes) -> str:
    written = "".join(f" {key}" if value is None else f' {key}="{escape(value)}"' for key, value in attrs)
    return f"<{name}{written}>"


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
    shown = None if page is None else await _get(request, page)
    if shown is None:
        return None
    html = fill_form(
        shown.body.decode(),
        method=request.method,
        path=request.url.path,
        # The address of the answer is that of the form, which is no page.
        action={CAME_FROM: str(page)} if request.method == "POST" else {},
        typed=typed,
        wrong=wrong or {"": detail},
    )
    if html is None:
        return None
    headers = MutableHeaders(raw=[each for each in shown.headers if each[0].lower() != b"content-length"])
    answer = Response(html, status)
    answer.raw_headers = [*headers.raw, (b"content-length", str(len(answer.body)).encode())]
    return answer


class Page(NamedTuple):
    path: str
    query: str

    def __str__(self) -> str:
        return f"{self.path}?{self.query}" if self.query else self.path


class _Shown(NamedTuple):
    headers: list[tuple[bytes, bytes]]
    body: bytes


async def _typed(request: Request) -> Typed:
    """Return what was typed into the fields of a form; files are left out."""
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
    known = own and came.path.startswith("/") and "\\" not in came.path and _is_page(request, came.path)
    return Page(came.path, came.query) if known else None


def _is_page(request: Request, path: str) -> bool:
    """Tell whether a path can be asked for. A form that was refused is shown at the address that it was sent to."""
    scope = {"type": "http", "method": "GET", "path": path, "root_path": request.scope.get("root_path", "")}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.router.routes)


async def _get(request: Request, page: Page) -> _Shown | None:
    """Ask the application for a page on behalf of whoever sent a request. None if it is not a page."""
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
    return _Shown(headers, b"".join(part.get("body", b"") for part in parts))
