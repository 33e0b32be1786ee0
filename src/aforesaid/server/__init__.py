"""The memory over HTTP: REST API, control panel, OpenAI-compatible proxy, MCP. Needs the extra `server`.

    app = create_app(memory)                 an ASGI application over an open memory
    aforesaid serve                          the same, with a port, a ready link and a graceful stop

Who asks, and whose memory it is
    Every route but `/healthz`, `/readyz` and the sign-in page needs a credential: a key (`Authorization: Bearer …`) or
    the cookie that the ready link sets. `auth.Credential` says who it is, what they may do (`admin`, `app`, `reader`)
    and in which space. Routes declare what they need and get it passed:

        from aforesaid.server.authentication import Admin, App, Reader, MemoryDep

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

import ipaddress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aforesaid.errors import InvalidInput
from aforesaid.settings import Serving, Settings

if TYPE_CHECKING:
    from aforesaid.server.app import create_app

__all__ = ["ServerOptions", "create_app"]

_LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
ANY_ORIGIN: Final = "*"
_EVERYWHERE: Final = ("0.0.0.0", "::", "")  # noqa: S104 - compared with, never bound to


@dataclass(frozen=True, slots=True)
class ServerOptions:
    serving: Serving = field(default_factory=Serving)
    auth: bool = True
    keys: Path | None = None
    """The file of the keys; None keeps them in memory."""
    settings: Settings = field(default_factory=Settings)
    """Where the models are that the proxy passes requests on to."""

    def __post_init__(self) -> None:
        """Refuse to let everybody in from everywhere."""
        if not self.auth and not is_loopback(self.serving.host):
            raise InvalidInput(
                f"{self.serving.host} can be reached by other machines, and without keys everybody there could read "
                "all memories; leave authentication on, or listen on 127.0.0.1"
            )
        if not self.auth and ANY_ORIGIN in self.serving.origins:
            raise InvalidInput(
                "server.origins is * and authentication is off, so every web page that is opened on this machine could "
                "read all memories; leave authentication on, or name the origins"
            )

    @property
    def names(self) -> frozenset[str]:
        """The names that a request may call the server by."""
        # A server on all addresses does not know its names; further ones have to be given.
        host = self.serving.host
        own = () if host in _EVERYWHERE else (f"[{host}]" if ":" in host else host,)
        return frozenset(name.lower() for name in (*_LOOPBACK_NAMES, *own, *self.serving.hosts))


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def __getattr__(name: str) -> object:
    # Loaded on first use: MCP over standard input needs no web server.
    if name != "create_app":
        raise AttributeError(f"module 'aforesaid.server' has no attribute {name!r}")
    return import_module("aforesaid.server.app").create_app
