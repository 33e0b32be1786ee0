"""The memory over HTTP: REST API, control panel, OpenAI-compatible proxy, MCP. Needs the extra `server`.

    app = create_app(memory)                 an ASGI application over an open memory
    aforesaid serve                          the same, with a port, a ready link and a graceful stop

Who asks, and whose memory it is
    Every route but `/healthz`, `/readyz` and the sign-in page needs a credential: a key (`Authorization: Bearer …`) or
    the cookie that the ready link sets. `auth.Credential` says who it is, what they may do (`admin`, `app`, `reader`)
    and in which space. Routes declare what they need and get it passed:

        from aforesaid.server.auth.authentication import Admin, App, Reader, MemoryDep

        @router.get("/api/…")
        async def route(who: Reader, memory: MemoryDep) -> …:
            person = who.person(memory, "ann")      # a UserMemory inside the credential's space; audited

    `who.person` is the only way from a request to a user: it takes the space from the credential.

Where the control panel goes
    `server/panel/__init__.py` has `router`; every page is a route on it, best in modules of its own. Templates are in
    `panel/templates/`, files in `panel/static/` (served under `/static/`, without a credential). A page:

        from aforesaid.server.problems import page

        @router.get("/users")
        async def users(request: Request, who: Reader, memory: MemoryDep) -> Response:
            return page(request, "users.html", users=await memory.users(who.space_of(None)))

    Every template knows `who` (the credential), `csrf` (the token) and `version`. A browser that is not signed in is
    sent to the sign-in page. Requests that change something must carry the token: as the form's field `csrf`, or as
    the header `X-CSRF-Token` (htmx: `hx-headers='{"X-CSRF-Token": "{{ csrf }}"}'` on the body). That is checked where
    the credential is, so a route that needs one cannot forget it.
    The Content-Security-Policy allows files of our own and nothing else: no inline scripts, no inline styles.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aforesaid.server.app import create_app
    from aforesaid.server.options import ServerOptions

__all__ = ["ServerOptions", "create_app"]

_HOME = {"ServerOptions": "options", "create_app": "app"}


def __getattr__(name: str) -> object:
    # Loaded on first use: MCP over standard input needs no web server.
    if name not in _HOME:
        raise AttributeError(f"module 'aforesaid.server' has no attribute {name!r}")
    return getattr(import_module(f"aforesaid.server.{_HOME[name]}"), name)
