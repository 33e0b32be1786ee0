"""Pages for browsers: one environment of templates, in which everything is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from aforesaid import __version__
from aforesaid.server.languages import Language, OfferedLanguages, current, translate_error
from aforesaid.server.languages.current import plural_in_page, translate_in_page

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
        "languages": _offered(request),
    }
    return HTMLResponse(environment.get_template(template).render(known | values), status)


def _offered(request: Request) -> list[Language]:
    """Return the languages to choose from, by name."""
    offered: OfferedLanguages = request.app.state.languages
    return sorted(offered.by_code.values(), key=lambda each: each.name.casefold())
