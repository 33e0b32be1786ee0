"""The client of one provider, and the translation of its errors."""

from __future__ import annotations

import asyncio
import sys
from email.utils import parsedate_to_datetime
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from aforesaid.domain.checks import now
from aforesaid.errors import ModelError, ModelRefused, ModelUnavailable, NoModel
from aforesaid.extras import how_to_install
from aforesaid.models.redact import guard_logs, hide, hide_address, plain_address, redact
from aforesaid.settings import Provider

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openai import APIStatusError, AsyncOpenAI

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


def missing_library() -> str | None:
    """Return what to install before a model can be called; None if nothing is missing."""
    return _MISSING if "openai" not in sys.modules and find_spec("openai") is None else None


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
        """Return the OpenAI library's client; create it on the first call."""
        async with self._opening:
            if self._opened is None:
                await load_library()
                # Loading certificates takes about 0.1 s, so it is done in a thread.
                self._opened = await asyncio.to_thread(self._make)
            return self._opened

    async def close(self) -> None:
        """Close all connections."""
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
            return self._status(error, name)
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

    def _status(self, error: APIStatusError, name: str) -> ModelError:
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
