"""Errors as problem details (RFC 9457), as pages, and in the formats of the proxy's clients."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pydantic import BaseModel, Field
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from aforesaid import __version__, errors
from aforesaid.models.client import redact
from aforesaid.server.form_errors import UNKNOWN, UnknownFields, field_of_request, form_with_errors
from aforesaid.server.languages import current, plural_in_page, translate_error, translate_in_page

PANEL: Final = Path(__file__).parent / "panel"
STATIC: Final = PANEL / "static"

environment: Final = Environment(
    loader=FileSystemLoader(PANEL / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
"""Add filters and globals for pages here."""
environment.globals["_"] = translate_in_page
environment.globals["_n"] = plural_in_page
environment.filters["translate_error"] = translate_error
environment.globals["bold"] = lambda value: Markup("<b>{}</b>").format(value)
environment.globals["code"] = lambda value: Markup("<code>{}</code>").format(value)
environment.globals["link"] = lambda address, words: Markup('<a href="{}">{}</a>').format(address, words)


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:  # noqa: ANN401
    """Answer with a page. Its template knows `who`, `csrf`, `version` and the languages beside what is passed."""
    who = getattr(request.state, "who", None)
    known = {
        "request": request,
        "who": who,
        "csrf": (who and who.csrf) or "",
        "version": __version__,
        "language": current(),
        "languages": sorted(request.app.state.languages.by_code.values(), key=lambda each: each.name.casefold()),
    }
    return HTMLResponse(environment.get_template(template).render(known | values), status)


_OPENAI: Final = "/v1/"
_ANTHROPIC: Final = "/v1/messages"
_ANTHROPIC_HEADER: Final = "anthropic-version"
"""A header that clients of Anthropic's API send. Lists of models have the same path in both APIs."""
OLLAMA_PATHS: Final = frozenset(
    {
        "/api/chat", "/api/generate", "/api/tags", "/api/show", "/api/version", "/api/ps", "/api/embed",
        "/api/embeddings",
    }
)  # fmt: skip
"""Paths of Ollama's API. All others below `/api/` are Aforesaid's own."""
_ANTHROPIC_KINDS: Final = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
}
_SERVER_ERROR: Final = 500


def error_body(path: str, headers: Mapping[str, str], status: int, kind: str, detail: str) -> dict[str, Any] | None:
    """Return the JSON object of an error for the client of a path; None for paths that are not the proxy's."""
    if path in OLLAMA_PATHS:
        return {"error": detail}
    if not path.startswith(_OPENAI):
        return None
    if path.startswith(_ANTHROPIC) or _ANTHROPIC_HEADER in headers:
        other = "api_error" if status >= _SERVER_ERROR else "invalid_request_error"
        return {"type": "error", "error": {"type": _ANTHROPIC_KINDS.get(status, other), "message": detail}}
    code = kind.replace("-", "_")
    return {"error": {"message": detail, "type": code, "param": None, "code": code}}


MEDIA_TYPE: Final = "application/problem+json"
_NAMESPACE: Final = "urn:aforesaid:problem:"

_STATUS: Final[tuple[tuple[type[errors.AforesaidError], int, str], ...]] = (
    (errors.TooLarge, 413, "too-large"),
    (errors.WrongState, 409, "wrong-state"),
    (errors.InvalidInput, 422, "invalid-input"),
    (errors.NotFound, 404, "not-found"),
    (errors.SourcesChanged, 409, "conflict"),
    (errors.SpendingLimit, 429, "spending-limit"),
    (errors.NoModel, 503, "no-model"),
    (errors.ModelUnavailable, 503, "model-unavailable"),
    (errors.ModelError, 502, "model-failed"),
    (errors.StoreFull, 507, "store-full"),
    (errors.StoreError, 503, "store-unavailable"),
    (errors.AforesaidError, 500, "failed"),
)
"""HTTP status and problem type per error class. The first match wins."""

_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")

_MOST_WRONG: Final = 100
"""Maximum wrong fields that an answer names: a batch can have a hundred thousand."""


class Wrong(BaseModel):
    """One error in a request."""

    where: str = Field(examples=["body.importance"], description="The field: where it was sent, and its name.")
    what: str = Field(examples=["Input should be less than or equal to 10"])


class Problem(BaseModel):
    """Problem details (RFC 9457)."""

    type: str = Field(examples=["urn:aforesaid:problem:not-found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["there is no memory 7"])
    errors: list[Wrong] = Field(default=[], description="Each field that is wrong, and what is wrong with it.")


class Refusal(NamedTuple):
    """Why a request is refused. `kind` is the last part of the problem's type."""

    status: int
    kind: str
    detail: str
    wrong: Sequence[Wrong] = ()
    headers: Mapping[str, str] | None = None


def problem(refused: Refusal) -> Response:
    title, kind, wrong = HTTPStatus(refused.status).phrase, _NAMESPACE + refused.kind, list(refused.wrong)
    body = Problem(type=kind, title=title, status=refused.status, detail=refused.detail, errors=wrong)
    return JSONResponse(body.model_dump(), refused.status, headers=refused.headers, media_type=MEDIA_TYPE)


def _answer(request: Request, refused: Refusal) -> Response:
    """Return a problem as a page, in the format of the proxy's clients, or as problem details."""
    if _wants_page(request):
        status, title = refused.status, HTTPStatus(refused.status).phrase
        shown = page(request, "problem.html", status=status, title=title, detail=refused.detail)
        shown.headers.update(refused.headers or {})
        return shown
    return protocol_problem(request.scope, refused)


def protocol_problem(scope: Scope, refused: Refusal) -> Response:
    """Return a problem in the format of the proxy's clients on their paths, and as problem details elsewhere."""
    body = error_body(scope["path"], Headers(scope=scope), refused.status, refused.kind, refused.detail)
    return problem(refused) if body is None else JSONResponse(body, refused.status, headers=refused.headers)


async def _refused(request: Request, refused: Refusal) -> Response:
    """Answer with a problem; if a form led to it and a browser shows the answer, with the form."""
    if _wants_page(request):
        fields = {each.where.partition(".")[2]: each.what for each in refused.wrong}
        shown = await form_with_errors(request, refused.status, refused.detail, fields)
        if shown is not None:
            return shown
    return _answer(request, refused)


def refusal(request: Request, error: HTTPException) -> Response:
    """Answer with what an HTTP error says; show a browser that is not signed in where to do so."""
    if error.status_code == HTTPStatus.UNAUTHORIZED and request.method == "GET" and _wants_page(request):
        after = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
        return RedirectResponse(f"/login?next={quote(after, safe='/')}", 303)
    phrase = HTTPStatus(error.status_code).phrase
    detail = str(error.detail)
    headers = dict(error.headers or {})
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        # Of all routes at this address: the framework names the methods of the first one alone. An address without a
        # route is that of a file of the panel.
        routes: Sequence[BaseRoute] = request.app.routes
        scopes = {method: {**request.scope, "method": method} for method in _METHODS}
        allowed = [
            method for method, scope in scopes.items() if any(route.matches(scope)[0] is Match.FULL for route in routes)
        ]
        headers["Allow"] = ", ".join(allowed or ["GET", "HEAD"])
        detail = f"This route does not support this method; use {headers['Allow']}."
    elif detail == HTTPStatus.NOT_FOUND.phrase:  # The framework raised it: no route matched.
        detail = "There is no such page or route."
    detail = translate_error(detail)
    kind = phrase.lower().replace(" ", "-")
    return _answer(request, Refusal(error.status_code, kind, detail, headers=headers))


def declared(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Declare problems that a route answers with, for its description."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


def install(app: FastAPI) -> None:
    """Answer every failure of an application with a problem."""

    async def ours(request: Request, error: Exception) -> Response:
        assert isinstance(error, errors.AforesaidError)  # noqa: S101 - registered for these alone
        status, kind = next((status, kind) for cls, status, kind in _STATUS if isinstance(error, cls))
        headers = {}
        if isinstance(error, errors.ModelUnavailable) and error.retry_after is not None:
            headers["Retry-After"] = str(math.ceil(error.retry_after))
        # Half of a surrogate pair in what was sent cannot be sent back.
        said = translate_error(redact(str(error)).encode(errors="backslashreplace").decode())
        wrong = []
        if isinstance(error, errors.InvalidInput) and error.field is not None:
            where = field_of_request(request, error.field)
            wrong = [] if where is None else [Wrong(where=where, what=said)]
        return await _refused(request, Refusal(status, kind, said, wrong, headers))

    async def unfit(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101
        found = error.errors()
        unknown = UnknownFields(request) if any(each["type"] == UNKNOWN for each in found) else None
        wrong = []
        for each in found[:_MOST_WRONG]:
            place, what = each["loc"], str(each["msg"])
            where = ".".join(str(part).encode(errors="backslashreplace").decode() for part in place)
            if each["type"] == "json_invalid":  # The second part is then a position, not a field.
                where, what = str(place[0]), f"{what} at character {place[1]}"
            if each["type"] == UNKNOWN and unknown is not None:
                what = unknown.describe(place) or what
            wrong.append(Wrong(where=where, what=translate_error(what)))
        detail = "; ".join(f"{each.where}: {each.what}" for each in wrong)
        if len(found) > len(wrong):
            detail += f"; and {len(found) - len(wrong):,} more"
        return await _refused(request, Refusal(422, "invalid-input", detail, wrong))

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101
        return refusal(request, error)

    async def unexpected(request: Request, _: Exception) -> Response:
        # What happened is in the log of the server, which its caller may not be allowed to read.
        detail = translate_error("Something went wrong here; the server's log says what.")
        return _answer(request, Refusal(500, "failed", detail))

    app.add_exception_handler(errors.AforesaidError, ours)
    app.add_exception_handler(RequestValidationError, unfit)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(Exception, unexpected)


def _wants_page(request: Request) -> bool:
    """Return whether a browser shows to somebody what is answered."""
    asked = "text/html" in request.headers.get("accept", "") and "authorization" not in request.headers
    return asked and not request.url.path.startswith(("/api", "/v1", "/mcp"))
