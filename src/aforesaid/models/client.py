"""The client of one provider, the translation of its errors, its health, and the removal of secrets from texts."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Generic
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

from aforesaid.domain.checks import now
from aforesaid.domain.report import Component
from aforesaid.errors import ModelError, ModelRefused, ModelUnavailable, NoModel
from aforesaid.extras import how_to_install, re
from aforesaid.models.resilience import Ask, BreakerState, Got, Result, What
from aforesaid.settings import Provider

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from aforesaid.models.chat import Chat


_MASK: Final = "…"
_SHORTEST: Final = 8
"""Minimum length of a secret. Shorter keys, such as `ollama` or `none`, are placeholders and occur in normal text."""

_KNOWN: Final[set[str]] = set()
"""All known secrets of this process."""

_LOOKS_SECRET: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(\bbearer\s+)[^\s'\",;]+",
        r"([?&](?:key|api[-_]?key|token|access_token|secret|password)=)[^\s&'\"]+",
        r"(://)[^/@\s'\"]+(?=@)",
        r"()\b(?:sk|pk|gsk|xai|hf)[-_][\w*.-]{8,}",
        r"()\bAIza[\w-]{20,}",
    )
)
"""Headers, addresses, and keys that are known by their beginning. The first group stays."""

_LOGGERS: Final = (
    "aforesaid.models",
    "aforesaid.recall",
    "aforesaid.upkeep",
    "openai",
    "openai._base_client",
    "openai._response",
    "openai._legacy_response",
    "httpx2",
    "httpcore2.connection",
    "httpcore2.http11",
    "httpcore2.http2",
    "httpcore2.proxy",
    "httpcore2.socks",
    "httpx",
    "httpcore.connection",
    "httpcore.http11",
    "httpcore.http2",
    "httpcore.proxy",
    "httpcore.socks",
    "stamina",
)
"""Whoever may speak about a request. A filter of a logger does not hold for the loggers below it: each is named."""


def hide(*secrets: str | None) -> None:
    """Register secrets that are removed from now on."""
    for secret in secrets:
        if secret is not None and len(secret) >= _SHORTEST:
            _KNOWN.update((str(secret), quote(secret, safe="")))


def hide_address(url: str) -> None:
    """Register the secrets of a URL: user, password and query values."""
    parts = urlsplit(url)
    hide(parts.username, parts.password, *(value for _, value in parse_qsl(parts.query)))


def plain_address(url: str) -> str:
    """Return a URL without its secrets."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def redact(text: str) -> str:
    """Return a text without registered secrets and without text that looks like a secret."""
    for secret in sorted(_KNOWN, key=len, reverse=True):
        text = text.replace(secret, _MASK)
    for pattern in _LOOKS_SECRET:
        text = pattern.sub(rf"\g<1>{_MASK}", text)
    return text


class SecretFilter(logging.Filter):
    """Removes secrets from log records and tracebacks. Add it to your own handlers to cover every logger."""

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        if (clean := redact(said)) != said:
            record.msg, record.args = clean, ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = redact(record.exc_text)
        return True


_FILTER: Final = SecretFilter()


def guard_logs() -> None:
    """Add the filter to all loggers that log requests to models. A second call does nothing."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)


_MISSING: Final = f"calling a model needs the OpenAI client; {how_to_install('models')}"
_LONGEST_QUOTE: Final = 300
_TRY_LATER: Final = frozenset({408, 409, 425, 429})
_TOO_MANY: Final = 429
_NOT_FOUND: Final = 404
_SERVER_FAULT: Final = 500
_NOT_IMPLEMENTED: Final = 501


async def load_library() -> None:
    """Import the OpenAI library in a thread: it takes a second, for which the event loop would stand still.

    Callers do it before a deadline begins, so that the first call of a program has as much time as the others. Raises
    NoModel if it is not installed, so that everything is done as without a model.
    """
    if "openai" not in sys.modules:
        try:
            await asyncio.to_thread(import_module, "openai")
        except ImportError as error:
            raise NoModel(_MISSING) from error


class Client:
    """Opened with the first call. It retries nothing and waits for as long as it is let: that is decided elsewhere."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self._opened: AsyncOpenAI | None = None
        self._opening = asyncio.Lock()
        guard_logs()
        hide(provider.api_key)
        hide_address(provider.base_url)

    async def open(self) -> AsyncOpenAI:
        async with self._opening:
            if self._opened is None:
                await load_library()
                # Loading certificates takes about 0.1 s, so it is done in a thread.
                self._opened = await asyncio.to_thread(self._make)
            return self._opened

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    def _make(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI  # noqa: PLC0415 - only programs that use a model need it

        parts = urlsplit(self.provider.base_url)
        return AsyncOpenAI(
            # The library would append its paths to the query of the URL.
            base_url=urlunsplit((*parts[:3], "", "")),
            default_query=dict(parse_qsl(parts.query)),
            # Without a key, the library would send OPENAI_API_KEY from the environment to this server.
            api_key=self.provider.api_key or "none",
            max_retries=0,
            timeout=None,
        )

    def failure(self, error: Exception, model: str) -> ModelError:
        """Convert an error of the library to a ModelError, with secrets removed."""
        if isinstance(error, ModelError):
            return error
        from openai import APIConnectionError, APIError, APIStatusError  # noqa: PLC0415 - loaded by now

        name = f"{self.provider.name}:{model}"
        if isinstance(error, APIStatusError):
            status, why = error.status_code, _quoted(error)
            if status == _TOO_MANY and "insufficient_quota" in {error.code, error.type}:
                return ModelRefused(f"{name} has no quota left: {why}. Check its plan and billing")
            if status in _TRY_LATER or (status >= _SERVER_FAULT and status != _NOT_IMPLEMENTED):
                what = "asks to slow down" if status == _TOO_MANY else "failed"
                return ModelUnavailable(f"{name} {what}: {why}", retry_after=_retry_after(error.response.headers))
            if status in {401, 403}:
                return ModelRefused(f"{name} rejects the key: {why}. Check the api_key of {self.provider.name!r}")
            if status == _NOT_FOUND:
                where = plain_address(self.provider.base_url)
                return ModelRefused(f"{name} does not exist at {where}: {why}. Check the model's name and the base_url")
            return ModelRefused(f"{name} rejects the request: {why}")
        if isinstance(error, APIConnectionError):
            where = plain_address(self.provider.base_url)
            # The library's own message only says that there was an error.
            why = _quoted(error.__cause__ or error)
            return ModelUnavailable(f"{name} cannot be reached at {where}: {why}. Is it running?")
        why = _quoted(error)
        if isinstance(error, APIError):
            return ModelUnavailable(f"{name} closed the connection: {why}")
        return ModelUnavailable(
            f"{name} returned an unreadable response ({type(error).__name__}: {why}). If this goes on, "
            f"check the base_url"
        )


@dataclass(frozen=True)
class Sent(Generic[What, Got]):
    """A service that sends one request to a server, and yields the answer in one piece."""

    client: Client
    model: str
    send: Callable[[AsyncOpenAI, What], Awaitable[Result[Got]]]

    async def call(self, ask: Ask[What]) -> AsyncGenerator[Result[Got], None]:
        try:
            answer = await self.send(await self.client.open(), ask.what)
        except Exception as error:
            # Whatever the library raises, callers know ModelError alone; and its own texts may repeat the key.
            raise self.client.failure(error, self.model) from None
        yield answer


def _quoted(error: BaseException) -> str:
    """Return an error's text, shortened and redacted, since servers may repeat the request."""
    text = redact(" ".join(str(error).split())).rstrip(".") or type(error).__name__
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header, given as a number or a date."""
    for header, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[header]) / scale)
        except (KeyError, ValueError):
            continue
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - now() / 1_000_000)
    except (KeyError, ValueError):
        return None


def models_health(chat: Chat | None) -> Component:
    """Return the health of all providers. No provider at all is healthy: everything works without a model."""
    health = component("models", {} if chat is None else chat.states(), "none: everything is done without a model")
    if chat is None or not chat.states() or "openai" in sys.modules or find_spec("openai") is not None:
        return health
    return replace(health, status="failing", issues=(_MISSING, *health.issues))


def component(name: str, states: Mapping[str, BreakerState], without: str) -> Component:
    """Return the health of services with circuit breakers; `without` describes the case without services.

    A service fails from its first failed call until it answers one, also while its breaker is still closed.
    """
    if not states:
        return Component(name, "active", None, (), (("providers", without),))
    issues = tuple(f"{each}: {state.error}" for each, state in states.items() if state.error is not None)
    facts = tuple((each, shown(state)) for each, state in states.items())
    return Component(name, "failing" if issues else "active", None, issues, facts)


def shown(state: BreakerState) -> str:
    if state.retry_in is None:
        working = "working" if state.answered else "not called yet"
        return working if not state.failures else f"{state.failures} failures in a row"
    return f"{state.state}, tried again in {state.retry_in:.0f} s"
