"""Errors of this server in the formats that clients of the proxy read: OpenAI's, Anthropic's and Ollama's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

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
