"""The memory over HTTP: REST API, control panel, OpenAI-compatible proxy, MCP. Needs the extra `server`.

    app = create_app(memory)                 an ASGI application over an open memory
    aforesaid serve                          the same, with a port, a ready link and a graceful stop

Every route but `/healthz`, `/readyz` and the sign-in page needs a credential: a key (`Authorization: Bearer …`) or the
cookie that the ready link sets. Routes declare what they need (`Reader`, `App`, `Admin` and `MemoryDep` of
`authentication`). `who.person(memory, "ann")` is the only way from a request to a user: it takes the space from the
credential, and audits.

Pages of the panel answer with `problems.page`, whose templates know `who`, `csrf` and `version`. Requests that change
something carry the token as the form's field `csrf` or the header `X-CSRF-Token`; that is checked where the credential
is. The Content-Security-Policy allows files of our own and nothing else: no inline scripts, no inline styles.
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
