"""Remove secrets from logs and error texts."""

from __future__ import annotations

import logging
import re
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

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
        """Remove the secrets of a record; always return True."""
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
