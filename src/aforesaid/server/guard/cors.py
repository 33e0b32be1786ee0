"""Which pages of other servers may call the API and the proxy from a browser (CORS, `server.origins`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aforesaid.server.options import ANY_ORIGIN

_BELOW: Final = ("/api/", "/v1/", "/mcp")
"""Where keys are used. Pages of the panel, which use cookies, are never open to other pages."""
_EXPOSED: Final = (
    "X-Aforesaid-Memory", "X-Aforesaid-Reason", "X-Aforesaid-Tokens", "X-Request-Id", "Request-Id", "Retry-After",
    "ETag", "Link",
)  # fmt: skip
"""Headers of answers that a page may read."""
_PREFLIGHT_SECONDS: Final = 600


def cors(origins: Sequence[str]) -> dict[str, Any]:
    """Return the arguments of Starlette's middleware. Cookies are never accepted from other pages."""
    return {
        "allow_origins": list(origins),
        "allow_methods": ["GET", "POST", "PUT", "PATCH", "DELETE"],
        "allow_headers": ["*"],
        "expose_headers": list(_EXPOSED),
        "max_age": _PREFLIGHT_SECONDS,
        "allow_private_network": True,  # browsers ask before a public page may call a server in a private network
    }


def may_call(path: str, origin: str, origins: Sequence[str]) -> bool:
    """Return whether a page of this origin may call this path."""
    return path.startswith(_BELOW) and (ANY_ORIGIN in origins or origin.lower() in origins)
