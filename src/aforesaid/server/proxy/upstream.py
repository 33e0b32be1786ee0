"""Sends requests to the providers, and chooses the provider by the model."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from io import BytesIO
from time import perf_counter
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from cachetools import LRUCache
from multidict import CIMultiDictProxy
from starlette.requests import Request
from yarl import URL

from aforesaid.domain.report import Component
from aforesaid.errors import NoModel
from aforesaid.memory import Memory
from aforesaid.models.client import hide, hide_address, plain_address, redact
from aforesaid.server.proxy.caller import PRIVATE_HEADERS
from aforesaid.server.proxy.protocols import BEARER, Endpoint
from aforesaid.settings import Provider, Settings
from aforesaid.telemetry import CALLERS, UPSTREAM, Key

_log: Final = logging.getLogger("aforesaid.server.proxy")

PATIENCE_SECONDS: Final = 20.0
"""A request without an answer counts as failed after this time, or twice the usual one, and is still waited for."""
_USUAL: Final = 0.95
_NOT_THE_CLIENT: Final = frozenset({401, 402, 403, 408, 429})
"""Statuses below 500 that are no fault of the client: the key is the operator's, and so are its credit and limits."""
_CLIENT_FAULT: Final = 400
_SERVER_FAULT: Final = 500
_NOT_IMPLEMENTED: Final = 501
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


@dataclass(slots=True)
class ProviderCalls:
    """What a provider did with the requests that were sent to it."""

    name: str
    address: str
    failures: int = 0
    error: str | None = None
    """How the last of them failed; None if it has answered since."""
    reached: bool = False
    """Whether the last failure came as an answer. Then a list of models does not tell that the models work again."""
    last_answer: datetime | None = None
    last_failure: datetime | None = None
    answered_at: float = float("-inf")
    """When it last answered, by the clock of `perf_counter`."""
    in_vain: float = 0.0
    """Seconds that clients waited since its last answer before they hung up."""

    @property
    def state(self) -> str:
        if self.error is not None:
            return "failing"
        return "not called yet" if self.last_answer is None else "working"

    def answered(self) -> None:
        if self.error is not None:
            _log.warning("%s answers again", self.name)
        self.failures, self.error, self.reached, self.in_vain = 0, None, False, 0.0
        self.last_answer, self.answered_at = datetime.now(UTC), perf_counter()

    def failed(self, error: str, *, reached: bool) -> None:
        """Record a failure. The first one is logged."""
        if self.error is None:
            _log.warning("%s at %s: %s", self.name, self.address, error)
        self.failures, self.error, self.reached = self.failures + 1, error, reached
        self.last_failure = datetime.now(UTC)

    def hung_up(self, waited: float) -> None:
        """Record a client that did not wait for the answer. Clients that all do so have no provider that answers."""
        self.in_vain += waited
        if self.in_vain >= PATIENCE_SECONDS:
            self.failed(f"no answer in {self.in_vain:.0f} s, until the clients hung up", reached=False)


class Upstream:
    """The providers behind the proxy, and the connections to them.

    Every request is passed on, whatever became of those before it: the client decides whether to try again.
    """

    def __init__(self, settings: Settings, memory: Memory) -> None:
        self._settings = settings
        self._memory = memory
        self._calls: dict[str, ProviderCalls] = {}
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
        return await self._counted(
            provider,
            self._client.request(
                request.method,
                URL(address, encoded=True),
                headers=headers,
                data=body if body is None or len(body) < _LARGE else BytesIO(body),
                allow_redirects=False,
            ),
            is_work=request.method == "POST",
        )

    async def _counted(
        self, provider: Provider, answering: Awaitable[ClientResponse], *, is_work: bool
    ) -> ClientResponse:
        """Return the answer of a provider when it begins, and count what became of the request."""
        calls, began, loop = self.calls_of(provider), perf_counter(), asyncio.get_running_loop()
        # What is counted if nothing else happens: the client hung up.
        failure: str | None = "abandoned"
        waiting: asyncio.TimerHandle

        def look() -> None:
            nonlocal failure, waiting
            waited = perf_counter() - began
            counted = self._memory.metrics.snapshot().get(Key(UPSTREAM, provider.name))
            patience = max(PATIENCE_SECONDS, 0.0 if counted is None else 2 * counted.within(_USUAL))
            if failure == "abandoned" and waited >= patience and calls.answered_at < began:
                calls.failed(f"no answer for {waited:.0f} s", reached=False)
                failure = "timeout"
            waiting = loop.call_later(PATIENCE_SECONDS, look)

        waiting = loop.call_later(PATIENCE_SECONDS, look)
        try:
            answer = await answering
            failure = _failure(answer.status)
        except ClientError as error:
            failure = "unavailable"
            calls.failed(redact(f"{type(error).__name__} {error}"), reached=False)
            raise
        except asyncio.CancelledError:
            if failure == "abandoned":
                calls.hung_up(perf_counter() - began)
            raise
        finally:
            waiting.cancel()
            self._memory.metrics.called(UPSTREAM, provider.name, perf_counter() - began, failure=failure)
        if failure is not None and failure not in CALLERS:
            if is_work:
                calls.failed(f"answered with {answer.status} {answer.reason}", reached=True)
        elif is_work or not calls.reached:
            calls.answered()
        return answer

    def broke_off(self, provider: Provider, error: ClientError) -> None:
        self.calls_of(provider).failed(redact(f"broke off: {type(error).__name__} {error}"), reached=False)

    def calls_of(self, provider: Provider) -> ProviderCalls:
        if provider.name not in self._calls:
            self._calls[provider.name] = ProviderCalls(provider.name, plain_address(provider.base_url))
        return self._calls[provider.name]

    def states(self) -> list[ProviderCalls]:
        """Return what each provider did that is configured for the proxy or was asked."""
        try:
            configured = self.upstreams()
        except NoModel:
            configured = []
        known = {each.name: self.calls_of(each) for each in configured}
        return list((known | self._calls).values())

    def health(self) -> Component:
        """Return the health of the providers. One fails from its first failed request until it answers one."""
        states = self.states()
        issues = tuple(f"{each.name} at {each.address}: {each.error}" for each in states if each.error is not None)
        facts = tuple((each.name, each.state) for each in states) or (("providers", "none"),)
        answers = [each.last_answer for each in states if each.last_answer is not None]
        return Component("upstream", "failing" if issues else "active", max(answers, default=None), issues, facts)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()


def _failure(status: int) -> str | None:
    """Return the kind of failure that a status means; None for an answer. Of the client's own faults it is known."""
    if status in _NOT_THE_CLIENT or (status >= _SERVER_FAULT and status != _NOT_IMPLEMENTED):
        return str(status)
    return "invalid" if status >= _CLIENT_FAULT else None


def returned(headers: CIMultiDictProxy[str]) -> dict[str, str]:
    """Return what of the headers of an answer goes back to the client."""
    return {name: ", ".join(headers.getall(name)) for name in headers if name.lower() not in _NOT_RETURNED}
