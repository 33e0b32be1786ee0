"""Configuration: the values that can be configured, with their types, limits and descriptions.

`settings.load` reads them, and says where each comes from.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args
from urllib.parse import urlsplit

from aforesaid.extras import re

WITHOUT: Final = "none"
"""At the end of a chain: continue without a model."""


class Secret(str):
    """A string that is not printed by accident, in logs, tracebacks or `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'…'"


@dataclass(frozen=True, slots=True)
class Choice:
    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


_SHOWN: Final = 4
_LONG_ENOUGH: Final = 16
"""Minimum length of a secret whose last four characters are shown."""

_PASSWORD: Final = re.compile(r"(://[^/@\s:]*:)[^@\s]+@")


def mask(secret: str) -> str:
    """Return a masked secret that shows its last four characters."""
    return "…" + (secret[-_SHOWN:] if len(secret) >= _LONG_ENOUGH else "")


def mask_url(address: str) -> str:
    return _PASSWORD.sub(r"\1…@", address)


def as_key(text: str) -> Secret | None:
    """Return a key, or None if it is not valid in an HTTP header."""
    return Secret(text) if text and text.isascii() and text.isprintable() and " " not in text else None


def read_key(path: Path) -> tuple[Secret | None, str]:
    """Read a key from a file that contains nothing else. Return it, or None and the reason."""
    try:
        key = as_key(path.read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError) as error:
        return None, f"it cannot be read ({error})"
    return key, "" if key else "it must contain a key and nothing else"


def read_password(path: Path) -> tuple[Secret | None, str]:
    """Read a password from a file that contains nothing else. Return it, or None and the reason."""
    try:
        password = Secret(path.read_text(encoding="utf-8").rstrip("\r\n"))
    except (OSError, UnicodeDecodeError) as error:
        return None, f"it cannot be read ({error})"
    return password or None, "" if password else "it is empty"


def open_to_others(path: Path) -> bool:
    """Return whether other users of this machine can read a file."""
    if os.name != "posix":
        return False
    try:
        return bool(path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except OSError:
        return False


UNSET: Final = "default"
"""The value that leaves a number to the provider's default."""

LARGEST: Final = 10**12
"""The largest whole number of most settings."""
_WORDS: Final[dict[str, bool]] = {
    **dict.fromkeys(("true", "1", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "no", "off"), False),
}


@dataclass(frozen=True, slots=True)
class ValueType:
    allowed: str
    """A description that completes the sentence "must be …"."""
    read: Callable[[object], object]
    """Validates a value and returns it, or raises ValueError."""
    parse: Callable[[str], object] = str
    """Parses the text of an environment variable into a value."""
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """Models in the order in which they are tried, and whether to continue without a model if all fail."""

    choices: tuple[Choice, ...]
    without: bool


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError(value)
    return value.strip()


def _texts(value: object) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple):
        raise ValueError(value)  # noqa: TRY004 - callers expect ValueError for every invalid value
    return tuple(_text(item) for item in items)


def _networks(value: object) -> tuple[str, ...]:
    found = _texts(value)
    for each in found:
        ip_network(each)
    return found


def _origins(value: object) -> tuple[str, ...]:
    found = _texts(value)
    for each in found:
        parts = urlsplit(each)
        if each != "*" and (not parts.scheme or not parts.netloc or f"{parts.scheme}://{parts.netloc}" != each):
            raise ValueError(each)
    return tuple(each.lower() for each in found)


def _secret(value: object) -> Secret:
    key = as_key(_text(value))
    if key is None:
        raise ValueError("not a key")
    return key


def _url(value: object) -> str:
    address = _text(value)
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or any(map(str.isspace, address)):
        raise ValueError(address)
    _ = parts.port  # raises ValueError if it is invalid
    return address


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(value)  # noqa: TRY004 - callers expect ValueError for every invalid value
    return value


def _choice(name: str) -> Choice:
    provider, separator, model = name.partition(":")
    if not separator or not provider.strip() or not model.strip():
        raise ValueError(name)
    return Choice(provider.strip(), model.strip())


def _chain(value: object) -> Chain:
    names = _texts(value)
    if not names:
        raise ValueError(value)
    without = names[-1] == WITHOUT
    return Chain(tuple(map(_choice, names[:-1] if without else names)), without)


def _split(given: str) -> object:
    return given.split(",")


TEXT: Final = ValueType("a text", _text)
TEXTS: Final = ValueType("a text or a list of texts", _texts, _split)
NETWORKS: Final = ValueType("an IP address, a network such as 10.0.0.0/8, or a list of them", _networks, _split)
ORIGINS: Final = ValueType(
    'an origin such as https://app.example.com, a list of them, or "*" for every page', _origins, _split
)
KEY: Final = ValueType("a key: printable characters without spaces", _secret, secret=True)
PASSWORD: Final = ValueType("a text", lambda value: Secret(_text(value)), secret=True)
URL: Final = ValueType("an address such as http://localhost:11434/v1", _url)
BOOLEAN: Final = ValueType("true or false", _boolean, lambda given: _WORDS.get(given.lower(), given))
MODEL: Final = ValueType(
    f'"provider:model", or {WITHOUT!r}', lambda value: None if (name := _text(value)) == WITHOUT else _choice(name)
)
CHAIN: Final = ValueType(f'"provider:model" or a list of them, where {WITHOUT!r} may stand last', _chain, _split)
SERVICES: Final = ValueType(CHAIN.allowed, lambda value: _chain(value).choices, _split)
"""A chain of speech services, where `none` has no effect: without a service, bots use text anyway."""
CHOICES: Final = ValueType(
    '"provider:model" or a list of them, where the model may be a pattern such as claude-*',
    lambda value: tuple(map(_choice, _texts(value))),
    _split,
)
"""Of lists, a single item needs no list."""


def _number(kind: type[int | float], words: str, least: float, most: float, *, unset: bool) -> ValueType:
    allowed = f'{words}, or "{UNSET}" to leave it to the provider' if unset else words

    def read(value: object) -> object:
        if unset and value == UNSET:
            return None
        if isinstance(value, bool) or not isinstance(value, int | kind) or not least <= value <= most:
            raise ValueError(allowed)  # also for infinity, and for what is no number
        return kind(value)

    return ValueType(allowed, read, lambda given: given if unset and given == UNSET else kind(given))


def whole(least: int, most: int, *, unset: bool = False) -> ValueType:
    return _number(int, f"a whole number from {least:,} to {most:,}", least, most, unset=unset)


def number(least: float, most: float, *, unset: bool = False) -> ValueType:
    return _number(float, f"a number from {least:g} to {most:g}", least, most, unset=unset)


def one_of(*words: str) -> ValueType:
    def read(value: object) -> object:
        if value not in words:
            raise ValueError(value)
        return value

    return ValueType(f"one of {', '.join(words)}", read)


Operation: TypeAlias = Literal["chat", "summarize", "day", "merge", "extract", "route", "embed"]
"""Operations that use a model. Each can have its own model."""

OPERATIONS: Final[tuple[Operation, ...]] = get_args(Operation)

SpeechOperation: TypeAlias = Literal["hear", "speak"]
"""Operations of speech services."""

Structured: TypeAlias = Literal["auto", "schema", "instructed"]
"""How a server is asked for JSON. `auto`: detected at the first call."""

ModelSize: TypeAlias = Literal["auto", "small", "large"]
"""How much a model is given at a time. `auto`: as its name or its first answers tell."""

RerankOperation: TypeAlias = Literal["rerank"]
"""The operation of a reranker."""

ProviderApi: TypeAlias = Literal["openai", "piper", "tei"]
"""The API of a server: OpenAI's, that of Piper's HTTP server, which does text to speech only, or that of Hugging Face's
text-embeddings-inference, whose `/rerank` differs from everybody else's."""

Answering: TypeAlias = Literal["called", "always"]
"""When a bot answers among several people: when its name is said, or always."""

VALUE_TYPE: Final = "value type"
FROM_FILE: Final = "from file"
NO_KEY: Final = "no key"
"""Names in the metadata of fields."""
_LEAST_BUDGET: Final = 256
"""Minimum tokens of a context."""
_DAY: Final = 24 * 60 * 60
_DAYS: Final = whole(1, 365_000)


def setting(default: Any, value_type: ValueType, *, from_file: bool = False) -> Any:  # noqa: ANN401 - the field's type
    """Return a field that can be configured: its key is its name, below the name of its table.

    With `from_file`, a second key that ends with `_file` names a file with the value.
    """
    return field(default=default, metadata={VALUE_TYPE: value_type, FROM_FILE: from_file})


@dataclass(frozen=True, slots=True)
class Provider:
    """A server with OpenAI's API, or another one that is named in `api`."""

    name: str
    base_url: str
    api_key: Secret | None = setting(None, KEY, from_file=True)
    concurrency: int = setting(4, whole(1, 10_000))
    """Maximum concurrent calls."""
    structured: Structured = setting("auto", one_of(*get_args(Structured)))
    api: ProviderApi = setting("openai", one_of(*get_args(ProviderApi)))
    size: ModelSize = setting("auto", one_of(*get_args(ModelSize)))


@dataclass(frozen=True, slots=True)
class Route:
    """The models and limits of one operation."""

    chain: tuple[Choice, ...] = setting((), CHAIN)
    """Models, tried in order. Empty: the operation runs without a model."""
    temperature: float | None = setting(None, number(0, 2, unset=True))
    max_tokens: int | None = setting(None, whole(1, 10_000_000, unset=True))
    timeout: float = setting(60.0, number(0.001, _DAY))
    """Timeout in seconds, including all retries and all models of the chain."""
    without: bool = False
    """Whether to continue without a model if none of the chain answers, instead of trying again later."""


@dataclass(frozen=True, slots=True)
class Resilience:
    attempts: int = setting(3, whole(1, 100))
    """Attempts per model before the next model of the chain is tried."""
    failures: int = setting(5, whole(1, 1_000_000))
    """Consecutive failures that open the circuit breaker."""
    probe_seconds: float = setting(30.0, number(0.001, _DAY))
    """Seconds between test calls while the circuit breaker is open."""
    stall_seconds: float = setting(20.0, number(0.001, _DAY))
    """Seconds without data after which a stream is aborted."""


@dataclass(frozen=True, slots=True)
class Spending:
    """Limits on tokens. None: no limit."""

    tokens_per_user_and_day: int | None = setting(None, whole(1, LARGEST))
    tokens_per_day: int | None = setting(None, whole(1, LARGEST))


@dataclass(frozen=True, slots=True)
class Serving:
    """The address and limits of `aforesaid serve`."""

    host: str = setting("127.0.0.1", TEXT)
    port: int = setting(5002, whole(0, 65_535))
    hosts: tuple[str, ...] = setting((), TEXTS)
    """Host names to accept besides loopback names."""
    keys: str | None = setting(None, TEXT)
    """The file with the hashes of the keys. None: next to the store."""
    upstream: str | None = setting(None, TEXT)
    """The provider that the proxy forwards requests to. None: the first provider of `models.chat`."""
    upstreams: tuple[Choice, ...] = setting((), CHOICES)
    """Providers of the proxy by model: `provider:pattern`, such as `anthropic:claude-*`. The first that fits counts."""
    origins: tuple[str, ...] = setting((), ORIGINS)
    """Web pages of other servers that may call the API and the proxy from a browser (CORS). `*` allows all of them."""
    requests_per_second: float = setting(50.0, number(0.01, 1_000_000))
    """Average requests per second per key."""
    burst: int = setting(200, whole(1, 1_000_000))
    """Maximum burst of requests per key."""
    body_bytes: int = setting(32 * 1024 * 1024, whole(1_000, LARGEST))
    """Maximum size of a request body, in bytes."""
    header_seconds: float = setting(10.0, number(0.1, 3_600))
    """The time in which the headers of a request must arrive."""
    body_seconds: float = setting(30.0, number(0.1, 3_600))
    """The time in which its body must arrive; a longer body gets a second more for each KiB."""
    connections: int = setting(1_000, whole(1, 1_000_000))
    """The largest number of open connections; further ones are closed at once."""
    trusted_proxies: tuple[str, ...] = setting((), NETWORKS)
    """Addresses or networks of reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed."""
    budget: int = setting(3_000, whole(_LEAST_BUDGET, LARGEST))
    """Maximum tokens that the proxy adds to a request; a smaller budget of the user or space applies."""
    window: int = setting(32_768, whole(0, LARGEST))
    """Context window of the models behind the proxy, in tokens; memories are added only as far as they fit."""
    language: str | None = setting(None, TEXT)
    """The panel's language, such as `de`. None: that of the browser. A person can choose another one."""
    languages: str | None = setting(None, TEXT)
    """A folder with catalogues of further languages."""
    mcp_tokens: int = setting(4_000, whole(_LEAST_BUDGET, LARGEST))
    """Maximum tokens of an answer to an agent over MCP; the rest of a list is on further pages."""
    authorization_servers: tuple[str, ...] = setting((), TEXTS)
    """OAuth authorization servers that clients of MCP are sent to, where a gateway checks their tokens."""


@dataclass(frozen=True, slots=True)
class Speech:
    """Speech services for bots with voice."""

    hear: tuple[Choice, ...] = setting((), SERVICES)
    """Speech-to-text services, tried in order. Empty: the bot does not listen."""
    speak: tuple[Choice, ...] = setting((), SERVICES)
    """Text-to-speech services, tried in order. Empty: the bot does not speak."""
    language: str | None = setting(None, TEXT)
    """The spoken language, such as `en`. None: detected by the service."""
    voice: str = setting("alloy", TEXT)
    """The voice, for services with OpenAI's API. With Piper, the model is the voice."""
    timeout: float = setting(30.0, number(0.001, _DAY))
    """Timeout in seconds, including all retries and services."""


@dataclass(frozen=True, slots=True)
class Reranking:
    """A reranker behind an HTTP API, which reorders the first search hits."""

    model: Choice | None = setting(None, MODEL)
    """The model. None: searches call no server."""
    candidates: int = setting(30, whole(2, 1_000))
    """Messages sent per search, the first in the order of recall. text-embeddings-inference accepts 32 by default."""
    weight: float = setting(0.7, number(0, 1))
    """Weight of the reranker's scores, 0 to 1; those of recall have the rest."""
    timeout: float = setting(2.0, number(0.001, _DAY))
    """Seconds after which a search keeps its own order."""


@dataclass(frozen=True, slots=True)
class Alerts:
    """Limits at which alerts are raised."""

    interval_seconds: float = setting(30.0, number(0.1, _DAY))
    """Seconds between health checks."""
    failing_seconds: float = setting(60.0, number(0, _DAY))
    """Raise an alert when a component fails for this long; clear it after it has worked for as long."""
    slow_seconds: float = setting(2.5, number(0.001, _DAY))
    """Raise an alert when more than 5% of the calls of `add`, `search` or `context` take longer."""
    error_rate: float = setting(0.05, number(0.0001, 1))
    """Raise an alert when this share of an operation's calls fails, 0 to 1."""
    least_calls: int = setting(20, whole(1, 1_000_000))
    """Minimum number of recent calls for `slow_seconds` and `error_rate`."""
    backlog_messages: int = setting(10_000, whole(1, LARGEST))
    """Raise an alert when this many messages wait to be embedded or summarised."""
    free_disk: float = setting(0.05, number(0, 1))
    """Raise an alert when less than this share of the disk is free, 0 to 1."""
    storage_bytes: int | None = setting(None, whole(1, LARGEST * 1_000))
    """Raise an alert when the store reaches this size. None: no limit."""
    clear: float = setting(0.8, number(0.01, 1))
    """Clear an alert when its value is below this share of its limit, so that it does not flap."""


@dataclass(frozen=True, slots=True)
class TelegramSettings:
    token: Secret | None = setting(None, KEY, from_file=True)
    api: str | None = setting(None, URL)
    """The address of your own Bot API server. None: Telegram's."""
    webhook: str | None = setting(None, URL)
    """The public URL at which Telegram reaches the bot. None: the bot polls."""
    webhook_secret: Secret | None = setting(None, KEY)
    """The shared secret of the webhook. None: random at each start."""
    listen: str = setting("127.0.0.1:8443", TEXT)
    """The address on which the bot listens for the webhook."""


@dataclass(frozen=True, slots=True)
class DiscordSettings:
    token: Secret | None = setting(None, KEY, from_file=True)


@dataclass(frozen=True, slots=True)
class MumbleSettings:
    host: str | None = setting(None, TEXT)
    port: int = setting(64738, whole(1, 65_535))
    name: str | None = setting(None, TEXT)
    """The bot's user name. None: `bots.name`, or Aforesaid."""
    password: Secret | None = setting(None, PASSWORD, from_file=True)
    """The password of the server, or of the bot's account."""
    channel: str | None = setting(None, TEXT)
    """The channel to join, by name or path. None: the server's default."""
    answer: Answering = setting("called", one_of(*get_args(Answering)))
    certificate: str | None = setting(None, TEXT)
    """A PEM file with the bot's certificate and key."""
    fingerprint: str | None = setting(None, TEXT)
    """SHA-256 of the server's self-signed certificate."""


@dataclass(frozen=True, slots=True)
class BotSettings:
    name: str | None = setting(None, TEXT)
    """A name that people call the bot by, besides its account name and "bot"."""
    system: str | None = setting(None, TEXT)
    """The system prompt."""
    telegram: TelegramSettings = TelegramSettings()
    discord: DiscordSettings = DiscordSettings()
    mumble: MumbleSettings = MumbleSettings()


@dataclass(frozen=True, slots=True)
class Keep:
    """Retention of one kind of data. None: kept forever."""

    archive_days: int | None = setting(None, _DAYS)
    """Archive after this many days."""
    purge_days: int | None = setting(None, _DAYS)
    """Delete permanently after this many days, if archived or inactive."""


def _without_archive() -> Any:  # noqa: ANN401 - the field's type
    """Return a field for data that is deleted, but not archived."""
    return field(default=Keep(), metadata={NO_KEY: "archive_days"})


@dataclass(frozen=True, slots=True)
class Receipts:
    """Receipts of contexts: which messages, memories and summaries were sent to a model for each reply."""

    days: int = setting(30, whole(0, 365_000))
    """Days after which a receipt is deleted. 0: none is stored."""
    contexts: bool = setting(False, BOOLEAN)
    """Whether every call of `context` stores a receipt, also where the caller does not say that it was sent."""


@dataclass(frozen=True, slots=True)
class TracingSettings:
    """Spans for OpenTelemetry."""

    enabled: bool = setting(False, BOOLEAN)
    """Whether spans are made and sent."""
    endpoint: str | None = setting(None, URL)
    """Where spans are sent, by OTLP over HTTP. None: what OpenTelemetry's own variables say."""
    content: bool = setting(False, BOOLEAN)
    """Whether spans hold what was asked and answered, word for word."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Retention rules, applied once a day. By default everything is kept."""

    messages: Keep = Keep()
    """Archived under a summary; archived ones are deleted this long after the last message of their archive."""
    memories: Keep = Keep()
    """Deactivated if not stated again; inactive ones are deleted this long after their last change."""
    summaries: Keep = _without_archive()
    """Deletes replaced and rolled-back summaries."""
    versions: Keep = _without_archive()
    """Deletes older versions of facts and memories."""
    derived: Keep = _without_archive()
    """Deletes cached portraits and habits; they are computed again on request."""
    audit: Keep = _without_archive()
    """Deletes audit rows."""
    spending: Keep = _without_archive()
    """Deletes daily token counts."""
    receipts: Keep | None = None
    """Deletes receipts of contexts. Configured by `receipts.days`."""

    @property
    def anything(self) -> bool:
        return self != Retention()


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole configuration."""

    store: str | None = setting(None, TEXT)
    fallback: str = setting("auto", TEXT)
    """Where messages wait while the store is failing: `auto`, `none`, `memory`, or a location of files."""
    attachments: str | None = setting(None, TEXT)
    """The folder of attachments; by default beside the store, where that is a file or a folder."""
    profile: str = setting("default", TEXT)
    embedder: str | None = setting(None, TEXT)
    ranker: bool = setting(True, BOOLEAN)
    """Whether the ranker reorders what search finds, where the embedder is `local` or `process`."""
    rerank: Reranking = Reranking()
    providers: Mapping[str, Provider] = field(default_factory=dict)
    routes: Mapping[Operation, Route] = field(default_factory=dict)
    resilience: Resilience = Resilience()
    spending: Spending = Spending()
    alerts: Alerts = Alerts()
    retention: Retention = Retention()
    receipts: Receipts = Receipts()
    tracing: TracingSettings = TracingSettings()
    server: Serving = Serving()
    speech: Speech = Speech()
    bots: BotSettings = BotSettings()
    redo: bool = setting(True, BOOLEAN)
    """Repeat work that was done without a model when a model becomes available."""
    background: bool = setting(True, BOOLEAN)
    """Whether this process does background work; False if workers do it."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """The origin of each value: dotted key to file, variable, or `default`."""
    warnings: tuple[str, ...] = ()
    """Warnings about the configuration that do not prevent anything from working."""

    def route(self, operation: Operation) -> Route:
        return self.routes.get(operation, Route())


def load_settings(
    path: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    """Return the configuration. A value set in several places is taken from the first of these layers.

    `overrides` (dotted keys, as `{"models.default": "ollama:llama3.2"}`), variables AFORESAID_…, the file, variables of
    other programs (OPENAI_API_KEY, OPENAI_BASE_URL, OLLAMA_HOST, ANTHROPIC_API_KEY, GEMINI_API_KEY),
    defaults.

    The file is `path`, or the one that AFORESAID_CONFIG names, or `aforesaid.toml` in the current folder or in the
    platform's folder for configuration. Without any, defaults hold. Raises InvalidInput, which says what to change.
    """
    from aforesaid.settings.load import read_settings  # noqa: PLC0415 - it reads what is declared here

    return read_settings(path, os.environ if env is None else env, overrides or {})


def as_settings(given: Settings | Mapping[str, object] | str | os.PathLike[str] | None) -> Settings:
    """Return settings from any accepted form: `Settings`, a mapping of dotted keys, a file, or None."""
    if isinstance(given, Settings):
        return given
    return load_settings(overrides=given) if isinstance(given, Mapping) else load_settings(given)
