"""Sends requests to the providers, and chooses the provider by the model."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from io import BytesIO
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from aiohttp import ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from cachetools import LRUCache
from multidict import CIMultiDictProxy
from starlette.requests import Request
from yarl import URL

from aforesaid.errors import NoModel
from aforesaid.models.redact import hide, hide_address
from aforesaid.server.proxy.caller import PRIVATE_HEADERS
from aforesaid.server.proxy.protocols.protocol import BEARER, Endpoint
from aforesaid.settings import Provider, Settings

_TIMEOUT: Final = ClientTimeout(total=None, sock_connect=10.0, sock_read=600.0)
_CONNECTIONS: Final = 1_000
_STRICT_MODELS: Final = 1_000
_LARGE: Final = 1024 * 1024
"""What has more bytes is sent piece by piece."""
_KEPT_BACK: Final = frozenset(
    {
        "authorization", "x-api-key", "cookie", "host", "origin", "referer", "content-length", "connection",
        "keep-alive", "transfer-encoding", "upgrade", "te", "trailer", "accept-encoding", "expect", "x-csrf-token",
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
        self._client: ClientSession | None = None
        self.strict_models: LRUCache[tuple[str, str], bool] = LRUCache(_STRICT_MODELS)
        """Providers and models that refused a system message in the middle of a conversation."""
        for provider in settings.providers.values():
            hide(provider.api_key)
            hide_address(provider.base_url)

    def choose(self, model: object, preferred: str | None = None) -> tuple[Provider, str | None]:
        """Return the provider for a model, and the name that it knows the model by. `PROVIDER:MODEL` names both.

        Otherwise the first pattern of `server.upstreams` that fits the model decides; then `preferred`, the provider
        that a protocol is usually spoken with, if it is configured; then `server.upstream`; then `models.chat`.
        """
        providers = self._settings.providers
        wanted = model if isinstance(model, str) and model else None
        if wanted is not None:
            name, colon, rest = wanted.partition(":")
            if colon and name in providers:
                return providers[name], rest
        chain = self._settings.route("chat").chain
        chosen = None if wanted is None else self.routed(wanted)
        if chosen is None and preferred in providers:
            chosen = preferred
        if chosen is None:
            chosen = self._settings.server.upstream or (chain[0].provider if chain else None)
        if chosen is None or chosen not in providers:
            raise NoModel(
                "there is no model behind this proxy; name one in aforesaid.toml, such as "
                'models.default = "ollama:llama3.2", or set server.upstream to one of the providers'
            )
        return providers[chosen], wanted or (chain[0].model if chain else None)

    def upstreams(self, preferred: str | None = None) -> list[Provider]:
        """Return the provider of models that no setting names, and then all that `server.upstreams` names."""
        first = self.choose(None, preferred)[0]
        names = dict.fromkeys(each.provider for each in self._settings.server.upstreams)
        return [first, *(self._settings.providers[name] for name in names if name != first.name)]

    def routed(self, model: str) -> str | None:
        """Return the provider that `server.upstreams` names for a model."""
        routes = self._settings.server.upstreams
        return next((each.provider for each in routes if fnmatchcase(model, each.model)), None)

    async def send(
        self,
        request: Request,
        provider: Provider,
        endpoint: Endpoint,
        body: bytes | None,
        more: Mapping[str, str] | None = None,
    ) -> ClientResponse:
        """Send a request on, with `more` headers. Its answer is read by whoever gets it, and has to be closed."""
        if self._client is None:
            # Nothing of the environment, where a proxy may be set that is not meant for this; and nothing of one
            # client, such as a cookie, for another.
            self._client = ClientSession(
                connector=TCPConnector(limit=_CONNECTIONS),
                timeout=_TIMEOUT,
                cookie_jar=DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=("User-Agent", "Content-Type"),
            )
        parts = urlsplit(provider.base_url)
        query = "&".join(each for each in (parts.query, request.url.query) if each)
        below = parts.path.rstrip("/")
        if endpoint.at_root:
            below = below.removesuffix("/v1")
        address = urlunsplit((parts.scheme, parts.netloc, below + endpoint.path, query, ""))
        headers = {
            name: value
            for name, value in request.headers.items()
            if name not in _KEPT_BACK and not name.startswith((*PRIVATE_HEADERS, "x-forwarded-", "sec-"))
        }
        # The proxy reads the reply while it passes it on, so it must not be compressed.
        headers |= {"accept-encoding": "identity", **(more or {})}
        if provider.api_key is not None:
            key = str.__str__(provider.api_key)
            headers[endpoint.key_header] = f"Bearer {key}" if endpoint.key_header == BEARER else key
        return await self._client.request(
            request.method,
            URL(address, encoded=True),
            headers=headers,
            data=body if body is None or len(body) < _LARGE else BytesIO(body),
            allow_redirects=False,
        )

    async def close(self) -> None:
        """Let go of all connections."""
        if self._client is not None:
            await self._client.close()


def returned(headers: CIMultiDictProxy[str]) -> dict[str, str]:
    """Return what of the headers of an answer goes back to the client."""
    return {name: ", ".join(headers.getall(name)) for name in headers if name.lower() not in _NOT_RETURNED}
