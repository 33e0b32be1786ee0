"""Keeping secrets out of logs and error texts."""

from __future__ import annotations

import logging
import re
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit, urlunsplit

_MASK: Final = "…"
_SHORTEST: Final = 8
"""Shorter keys, such as `ollama` or `none`, stand in for no key at all, and would blacken half of a text."""

_KNOWN: Final[set[str]] = set()
"""Every secret that this process uses."""

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
    """Remember secrets, so that they are left out from now on."""
    for secret in secrets:
        if secret is not None and len(secret) >= _SHORTEST:
            _KNOWN.update((str(secret), quote(secret, safe="")))


def hide_address(url: str) -> None:
    """Remember what is secret in an address: its user, its password, the values of its query."""
    parts = urlsplit(url)
    hide(parts.username, parts.password, *(value for _, value in parse_qsl(parts.query)))


def plain_address(url: str) -> str:
    """Return an address without what may be secret in it."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def redact(text: str) -> str:
    """Leave out every secret that is known, and whatever looks like one."""
    for secret in sorted(_KNOWN, key=len, reverse=True):
        text = text.replace(secret, _MASK)
    for pattern in _LOOKS_SECRET:
        text = pattern.sub(rf"\g<1>{_MASK}", text)
    return text


class SecretFilter(logging.Filter):
    """Rewrites what is logged, tracebacks included. Add it to a handler of your own to be sure of every logger."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep every record, without its secrets."""
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
    """Filter everything that is logged about requests to models. Doing it twice is fine."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)
