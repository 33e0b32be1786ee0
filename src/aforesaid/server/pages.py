"""Pages for browsers: one environment of templates, in which everything is escaped."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from aforesaid import __version__

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


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:  # noqa: ANN401
    """Answer with a page. Its template knows `who`, `csrf` and `version` beside what is passed."""
    who = getattr(request.state, "who", None)
    known = {"request": request, "who": who, "csrf": (who and who.csrf) or "", "version": __version__}
    return HTMLResponse(environment.get_template(template).render(known | values), status)
