"""Shows a form again that was refused: with what was typed, and with what is wrong beside each field.

The page that the form was on is rendered again by its own route, then `refill` fills the form in. So every form of the
panel has this, without scripts too. With scripts, forms that are sent in the background stay as they are, and
`panel.js` puts the same messages beside the fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Message, Scope

from aforesaid.server.refill import Typed, refill

CAME_FROM: Final = "came_from"
"""The parameter of a form's address that names the page of the form, where the form is shown again."""
_AGAIN: Final = "aforesaid.form_again"
"""Marks the request for a page that shows a refused form: if that page fails too, there is no third try."""
_ABOUT_THE_BODY: Final = frozenset({b"content-type", b"content-length", b"transfer-encoding"})


async def form_again(request: Request, status: int, detail: str, wrong: Mapping[str, str]) -> Response | None:
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
    html = refill(
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
    """The address of a page of this server."""

    path: str
    query: str

    def __str__(self) -> str:
        """Return the address without the server."""
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
