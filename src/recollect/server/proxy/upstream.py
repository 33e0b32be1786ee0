"""Passing requests on to the provider, and its answers back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import httpx2
from starlette.requests import Request

from recollect.errors import NoModel
from recollect.models.redact import hide, hide_address
from recollect.settings import Provider, Settings

_TIMEOUT: Final = httpx2.Timeout(600.0, connect=10.0)
_LIMITS: Final = httpx2.Limits(max_connections=1_000, max_keepalive_connections=100)
_KEPT_BACK: Final = frozenset(
    {
        "authorization", "cookie", "host", "origin", "referer", "content-length", "connection", "keep-alive",
        "transfer-encoding", "upgrade", "te", "trailer", "accept-encoding", "expect", "x-csrf-token",
        "proxy-authorization", "proxy-connection", "forwarded",
    }
)  # fmt: skip
"""What is between a client and this server, or between it and the provider."""
_NOT_RETURNED: Final = frozenset(
    {
        "connection", "keep-alive", "transfer-encoding", "upgrade", "trailer", "content-length", "date", "server",
        "set-cookie", "content-security-policy", "strict-transport-security", "alt-svc",
    }
)  # fmt: skip


class Upstream:
    """The providers behind the proxy, and the connections to them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client: httpx2.AsyncClient | None = None
        for provider in settings.providers.values():
            hide(provider.api_key)
            hide_address(provider.base_url)

    def choose(self, model: object) -> tuple[Provider, str | None]:
        """Return the provider for a model, and the name that it knows the model by. `PROVIDER:MODEL` names both."""
        providers = self._settings.providers
        if isinstance(model, str):
            name, colon, rest = model.partition(":")
            if colon and name in providers:
                return providers[name], rest
        chain = self._settings.route("chat").chain
        chosen = self._settings.server.upstream or (chain[0].provider if chain else None)
        if chosen is None or chosen not in providers:
            raise NoModel(
                "there is no model behind this proxy; name one in recollect.toml, such as "
                'models.default = "ollama:llama3.2", or set server.upstream to one of the providers'
            )
        wanted = model if isinstance(model, str) and model else None
        return providers[chosen], wanted or (chain[0].model if chain else None)

    async def send(self, request: Request, provider: Provider, path: str, body: bytes | None) -> httpx2.Response:
        """Send a request on. Its answer is read by whoever gets it, and has to be closed."""
        if self._client is None:
            # Nothing of the environment: a proxy that is set there is not meant for this.
            self._client = httpx2.AsyncClient(timeout=_TIMEOUT, limits=_LIMITS, trust_env=False)
        parts = urlsplit(provider.base_url)
        query = "&".join(each for each in (parts.query, request.url.query) if each)
        address = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + path, query, ""))
        headers = {
            name: value
            for name, value in request.headers.items()
            if name not in _KEPT_BACK and not name.startswith(("x-recollect-", "x-forwarded-", "sec-"))
        }
        # What is read along in must not be packed.
        headers["accept-encoding"] = "identity"
        if provider.api_key is not None:
            headers["authorization"] = f"Bearer {str.__str__(provider.api_key)}"
        sent = self._client.build_request(request.method, address, headers=headers, content=body)
        return await self._client.send(sent, stream=True)

    async def close(self) -> None:
        """Let go of all connections."""
        if self._client is not None:
            await self._client.aclose()


def returned(headers: Mapping[str, str]) -> dict[str, str]:
    """Return what of the headers of an answer goes back to the client."""
    return {name: value for name, value in headers.items() if name.lower() not in _NOT_RETURNED}
