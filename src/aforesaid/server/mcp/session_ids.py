"""Session ids over HTTP, bound to the key of the client that they were made for.

The server keeps no sessions: an id is a random number with a signature made with the key, so any server of the same
store can check it, also after a restart. With another key it counts as unknown.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Final

from starlette.requests import Request

SESSION_HEADER: Final = "mcp-session-id"
_NONCE_BYTES: Final = 16


def new_session(request: Request) -> str:
    """Return a new session id for the sender of a request."""
    nonce = secrets.token_hex(_NONCE_BYTES)
    return f"{nonce}.{_signature(request, nonce)}"


def is_own_session(request: Request) -> bool:
    """Return whether a request has no session id, or one that was made for the same key."""
    session = request.headers.get(SESSION_HEADER)
    if session is None:
        return True
    nonce, _, signature = session.partition(".")
    return hmac.compare_digest(signature.encode(), _signature(request, nonce).encode())


def session_of(request: object) -> str | None:
    """Return the session id of a request, which was checked before; None over standard input and output."""
    return request.headers.get(SESSION_HEADER) if isinstance(request, Request) else None


def _signature(request: Request, nonce: str) -> str:
    # Whatever the sender proved their identity with; a server without authentication has one session space for all.
    headers = request.headers
    key = headers.get("authorization") or headers.get("x-api-key") or headers.get("cookie") or ""
    return hmac.new(key.strip().encode(), nonce.encode(), hashlib.sha256).hexdigest()
