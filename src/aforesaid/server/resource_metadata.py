"""OAuth protected resource metadata (RFC 9728): tells clients of MCP how to authenticate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

MCP_PATH: Final = "/mcp"
WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
"""The address of the metadata. The path of the resource may follow."""
_HEADERS: Final = {"Access-Control-Allow-Origin": "*", "Cache-Control": "max-age=3600"}
"""Clients in a browser read it from pages of other servers. It has no secrets."""


def metadata_address(request: Request) -> str:
    """Return the address of the metadata, under the name that the request called the server by."""
    return f"{_origin(request)}{WELL_KNOWN}{MCP_PATH}"


def routes(authorization_servers: Sequence[str]) -> list[Route]:
    """Return the routes of the metadata. Without authorization servers, keys are made by the operator."""

    async def metadata(request: Request) -> JSONResponse:
        found: dict[str, object] = {
            "resource": f"{_origin(request)}{MCP_PATH}",
            "resource_name": "Aforesaid",
            "bearer_methods_supported": ["header"],
        }
        if authorization_servers:
            found["authorization_servers"] = list(authorization_servers)
        return JSONResponse(found, headers=_HEADERS)

    return [
        Route(path, metadata, methods=["GET"], include_in_schema=False) for path in (WELL_KNOWN, WELL_KNOWN + MCP_PATH)
    ]


def _origin(request: Request) -> str:
    return f"{request.url.scheme}://{request.url.netloc}"
