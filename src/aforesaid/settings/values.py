"""The configuration as values. `load` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

Operation: TypeAlias = Literal["chat", "summarize", "day", "merge", "extract", "route", "embed"]
"""Operations that use a model. Each can have its own model."""

OPERATIONS: Final[tuple[Operation, ...]] = get_args(Operation)

SpeechOperation: TypeAlias = Literal["hear", "speak"]
"""Operations of speech services."""

Structured: TypeAlias = Literal["auto", "schema", "instructed"]
"""How a server is asked for JSON. `auto`: detected at the first call."""

ProviderApi: TypeAlias = Literal["openai", "piper"]
"""The API of a server: OpenAI's, or that of Piper's HTTP server, which does text to speech only."""

Answering: TypeAlias = Literal["called", "always"]
"""When a bot answers among several people: when its name is said, or always."""

WITHOUT: Final = "none"
"""At the end of a chain: continue without a model."""


class Secret(str):
    """A string that is not printed by accident, in logs, tracebacks or `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'…'"


@dataclass(frozen=True, slots=True)
class Provider:
    """A server with OpenAI's API, or Piper's."""

    name: str
    base_url: str
    api_key: Secret | None = None
    concurrency: int = 4
    """Maximum concurrent calls."""
    structured: Structured = "auto"
    api: ProviderApi = "openai"


@dataclass(frozen=True, slots=True)
class Choice:
    """One model of one provider."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


@dataclass(frozen=True, slots=True)
class Route:
    """The models and limits of one operation."""

    chain: tuple[Choice, ...] = ()
    """Models, tried in order. Empty: the operation runs without a model."""
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float = 60.0
    """Timeout in seconds, including all retries and all models of the chain."""
    without: bool = False
    """Whether to continue without a model if none of the chain answers, instead of trying again later."""


@dataclass(frozen=True, slots=True)
class Resilience:
    """Retries and circuit breakers."""

    attempts: int = 3
    """Attempts per model before the next model of the chain is tried."""
    failures: int = 5
    """Consecutive failures that open the circuit breaker."""
    probe_seconds: float = 30.0
    """Seconds between test calls while the circuit breaker is open."""
    stall_seconds: float = 20.0
    """Seconds without data after which a stream is aborted."""


@dataclass(frozen=True, slots=True)
class Spending:
    """Limits on tokens. None: no limit."""

    tokens_per_user_and_day: int | None = None
    tokens_per_day: int | None = None


@dataclass(frozen=True, slots=True)
class Serving:
    """The address and limits of `aforesaid serve`."""

    host: str = "127.0.0.1"
    port: int = 5002
    hosts: tuple[str, ...] = ()
    """Host names to accept besides loopback names."""
    keys: str | None = None
    """The file with the hashes of the keys. None: next to the store."""
    upstream: str | None = None
    """The provider that the proxy forwards requests to. None: the first provider of `models.chat`."""
    requests_per_second: float = 50.0
    """Average requests per second per key."""
    burst: int = 200
    """Maximum burst of requests per key."""
    body_bytes: int = 32 * 1024 * 1024
    """Maximum size of a request body, in bytes."""
    header_seconds: float = 10.0
    """The time in which the headers of a request must arrive."""
    body_seconds: float = 30.0
    """The time in which its body must arrive; a longer body gets a second more for each KiB."""
    connections: int = 1_000
    """The largest number of open connections; further ones are closed at once."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed."""
    budget: int = 3_000
    """Maximum tokens that the proxy adds to a request; a smaller budget of the user or space applies."""
    window: int = 32_768
    """Context window of the models behind the proxy, in tokens; memories are added only as far as they fit."""


@dataclass(frozen=True, slots=True)
class Speech:
    """Speech services for bots with voice."""

    hear: tuple[Choice, ...] = ()
    """Speech-to-text services, tried in order. Empty: the bot does not listen."""
    speak: tuple[Choice, ...] = ()
    """Text-to-speech services, tried in order. Empty: the bot does not speak."""
    language: str | None = None
    """The spoken language, such as `en`. None: detected by the service."""
    voice: str = "alloy"
    """The voice, for services with OpenAI's API. With Piper, the model is the voice."""
    timeout: float = 30.0
    """Timeout in seconds, including all retries and services."""


@dataclass(frozen=True, slots=True)
class Alerts:
    """Limits at which alerts are raised."""

    interval_seconds: float = 60.0
    """Seconds between health checks."""
    failing_seconds: float = 60.0
    """Raise an alert when a component fails for this long; clear it after it has worked for as long."""
    slow_seconds: float = 2.5
    """Raise an alert when more than 5% of the calls of `add`, `search` or `context` take longer."""
    error_rate: float = 0.05
    """Raise an alert when this share of an operation's calls fails, 0 to 1."""
    least_calls: int = 20
    """Minimum number of recent calls for `slow_seconds` and `error_rate`."""
    backlog_messages: int = 10_000
    """Raise an alert when this many messages wait to be embedded or summarised."""
    free_disk: float = 0.05
    """Raise an alert when less than this share of the disk is free, 0 to 1."""
    storage_bytes: int | None = None
    """Raise an alert when the store reaches this size. None: no limit."""
    clear: float = 0.8
    """Clear an alert when its value is below this share of its limit, so that it does not flap."""


@dataclass(frozen=True, slots=True)
class TelegramSettings:
    """Settings of a Telegram bot."""

    token: Secret | None = None
    api: str | None = None
    """The address of your own Bot API server. None: Telegram's."""
    webhook: str | None = None
    """The public URL at which Telegram reaches the bot. None: the bot polls."""
    webhook_secret: Secret | None = None
    """The shared secret of the webhook. None: random at each start."""
    listen: str = "127.0.0.1:8443"
    """The address on which the bot listens for the webhook."""


@dataclass(frozen=True, slots=True)
class DiscordSettings:
    """Settings of a Discord bot."""

    token: Secret | None = None


@dataclass(frozen=True, slots=True)
class MumbleSettings:
    """Settings of a Mumble bot."""

    host: str | None = None
    port: int = 64738
    name: str | None = None
    """The bot's user name. None: `bots.name`, or Aforesaid."""
    password: Secret | None = None
    """The password of the server, or of the bot's account."""
    channel: str | None = None
    """The channel to join, by name or path. None: the server's default."""
    answer: Answering = "called"
    certificate: str | None = None
    """A PEM file with the bot's certificate and key."""
    fingerprint: str | None = None
    """SHA-256 of the server's self-signed certificate."""


@dataclass(frozen=True, slots=True)
class BotSettings:
    """Settings of all bots."""

    name: str | None = None
    """A name that people call the bot by, besides its account name and "bot"."""
    system: str | None = None
    """The system prompt."""
    telegram: TelegramSettings = TelegramSettings()
    discord: DiscordSettings = DiscordSettings()
    mumble: MumbleSettings = MumbleSettings()


@dataclass(frozen=True, slots=True)
class Keep:
    """Retention of one kind of data. None: kept forever."""

    archive_days: int | None = None
    """Archive after this many days."""
    purge_days: int | None = None
    """Delete permanently after this many days, if archived or inactive."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Retention rules, applied once a day. By default everything is kept."""

    messages: Keep = Keep()
    """Archived under a summary; archived ones are deleted this long after the last message of their archive."""
    memories: Keep = Keep()
    """Deactivated if not stated again; inactive ones are deleted this long after their last change."""
    summaries: Keep = Keep()
    """Deletes replaced and rolled-back summaries."""
    versions: Keep = Keep()
    """Deletes older versions of facts and memories."""
    derived: Keep = Keep()
    """Deletes cached portraits and habits; they are computed again on request."""
    audit: Keep = Keep()
    """Deletes audit rows."""
    spending: Keep = Keep()
    """Deletes daily token counts."""

    @property
    def anything(self) -> bool:
        """Whether there is any rule."""
        return self != Retention()


@dataclass(frozen=True, slots=True)
class Settings:
    """The whole configuration."""

    store: str | None = None
    fallback: str = "auto"
    """Where messages wait while the store is failing: `auto`, `none`, `memory`, or a location of files."""
    profile: str = "default"
    embedder: str | None = None
    ranker: bool = True
    """Whether the ranker reorders what search finds, where the embedder is `local` or `process`."""
    providers: Mapping[str, Provider] = field(default_factory=dict)
    routes: Mapping[Operation, Route] = field(default_factory=dict)
    resilience: Resilience = Resilience()
    spending: Spending = Spending()
    alerts: Alerts = Alerts()
    retention: Retention = Retention()
    server: Serving = Serving()
    speech: Speech = Speech()
    bots: BotSettings = BotSettings()
    redo: bool = True
    """Repeat work that was done without a model when a model becomes available."""
    background: bool = True
    """Whether this process does background work; False if workers do it."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """The origin of each value: dotted key to file, variable, or `default`."""
    warnings: tuple[str, ...] = ()
    """Warnings about the configuration that do not prevent anything from working."""

    def route(self, operation: Operation) -> Route:
        """Return the models and limits of an operation."""
        return self.routes.get(operation, Route())
