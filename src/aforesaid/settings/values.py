"""What can be configured, as values. Where they come from is the business of `load`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

Operation: TypeAlias = Literal["chat", "summarize", "day", "merge", "extract", "route", "embed"]
"""What a model is asked to do. Each can go to a model of its own."""

OPERATIONS: Final[tuple[Operation, ...]] = get_args(Operation)

SpeechOperation: TypeAlias = Literal["hear", "speak"]
"""What a service for speech is asked to do."""

WITHOUT: Final = "none"
"""In a chain: go on without a model."""


class Secret(str):
    """A text that never shows itself by accident: not in logs, not in a traceback, not in `repr`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'…'"


@dataclass(frozen=True, slots=True)
class Provider:
    """A server that speaks OpenAI's API, or Piper's."""

    name: str
    base_url: str
    api_key: Secret | None = None
    concurrency: int = 4
    """So many calls at a time."""
    structured: Literal["auto", "schema", "instructed"] = "auto"
    """Whether it accepts a JSON schema. `auto`: tried once, and remembered when it is refused."""
    api: Literal["openai", "piper"] = "openai"
    """What it speaks: OpenAI's API, or that of Piper's own HTTP server, which can speak and nothing else."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One model of one provider."""

    provider: str
    model: str

    def __str__(self) -> str:
        return f"{self.provider}:{self.model}"


@dataclass(frozen=True, slots=True)
class Route:
    """How one operation is done."""

    chain: tuple[Choice, ...] = ()
    """Tried in this order. Empty: it is done without a model."""
    temperature: float | None = None
    max_tokens: int | None = None
    timeout: float = 60.0
    """Seconds for everything: all retries, all models of the chain."""
    without: bool = False
    """Whether it is done without a model when none of the chain answers, instead of being tried again later."""


@dataclass(frozen=True, slots=True)
class Resilience:
    """When a provider is left alone, and for how long."""

    attempts: int = 3
    """Calls of one model before the next in the chain is tried."""
    failures: int = 5
    """So many failures in a row open the breaker."""
    probe_seconds: float = 30.0
    """An open breaker lets one call through after so long, and again every so often."""
    stall_seconds: float = 20.0
    """A stream that falls silent for so long is broken off."""


@dataclass(frozen=True, slots=True)
class Spending:
    """How much may be used. None: no limit."""

    tokens_per_user_and_day: int | None = None
    tokens_per_day: int | None = None


@dataclass(frozen=True, slots=True)
class Serving:
    """How `aforesaid serve` listens, and what it lets in."""

    host: str = "127.0.0.1"
    port: int = 5002
    hosts: tuple[str, ...] = ()
    """Further names that requests may call it by."""
    keys: str | None = None
    """The file of the keys. None: beside the store."""
    upstream: str | None = None
    """The provider that the proxy passes requests on to. None: the first one that answers chats."""
    requests_per_second: float = 50.0
    """What one key may ask for on average …"""
    burst: int = 200
    """… and how much at once."""
    body_bytes: int = 32 * 1024 * 1024
    """The largest request."""
    header_seconds: float = 10.0
    """The time in which the headers of a request must arrive."""
    body_seconds: float = 30.0
    """The time in which its body must arrive; a longer body gets a second more for each KiB."""
    connections: int = 1_000
    """The largest number of open connections; further ones are closed at once."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses or networks of reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed."""
    budget: int = 3_000
    """How many tokens the proxy adds to a request at most; less, where less is set for a user or a space."""
    window: int = 32_768
    """How many tokens the models behind the proxy can take: what is remembered is added only as far as it fits."""


@dataclass(frozen=True, slots=True)
class Speech:
    """Which services hear and speak, for bots that have a voice."""

    hear: tuple[Choice, ...] = ()
    """From speech to text, tried in this order. Empty: the bot is deaf."""
    speak: tuple[Choice, ...] = ()
    """From text to speech, tried in this order. Empty: the bot is mute."""
    language: str | None = None
    """What people speak, as `en`. None: the service finds out."""
    voice: str = "alloy"
    """For services with OpenAI's API. A model of Piper is a voice already."""
    timeout: float = 30.0
    """Seconds for everything: all retries, all services."""


@dataclass(frozen=True, slots=True)
class Alerts:
    """When an operator is told that something is wrong."""

    interval_seconds: float = 60.0
    """It is looked at so often."""
    failing_seconds: float = 60.0
    """A part fails for so long; the alert is over once it has worked for as long."""
    slow_seconds: float = 2.5
    """Of 100 calls of `add`, `search` or `context`, 6 or more take longer."""
    error_rate: float = 0.05
    """Such a part of an operation's calls fails, up to 1."""
    least_calls: int = 20
    """Fewer calls say nothing about either."""
    backlog_messages: int = 10_000
    """So many messages wait to be embedded, or to be summarised."""
    free_disk: float = 0.05
    """Such a part of the device is left, up to 1."""
    storage_bytes: int | None = None
    """The store is as large as this. None: no limit."""
    clear: float = 0.8
    """An alert is over when its value is below such a part of its limit, so that it does not come and go."""


@dataclass(frozen=True, slots=True)
class TelegramSettings:
    """How a bot talks with Telegram."""

    token: Secret | None = None
    api: str | None = None
    """The address of a Bot API server of one's own. None: Telegram's."""
    webhook: str | None = None
    """The address at which Telegram reaches the bot. None: the bot asks by itself."""
    webhook_secret: Secret | None = None
    """What Telegram shows when it comes. None: made up at each start."""
    listen: str = "127.0.0.1:8443"
    """Where the bot listens, behind whatever serves that address."""


@dataclass(frozen=True, slots=True)
class DiscordSettings:
    """How a bot talks with Discord."""

    token: Secret | None = None


@dataclass(frozen=True, slots=True)
class MumbleSettings:
    """How a bot talks on a Mumble server."""

    host: str | None = None
    port: int = 64738
    name: str | None = None
    """What the bot is called there. None: as elsewhere, or Aforesaid."""
    password: Secret | None = None
    """Of the server, or of the bot's account there."""
    channel: str | None = None
    """The channel to sit in, by its name or path. None: where the server puts it."""
    answer: Literal["called", "always"] = "called"
    """`called`: among several people, when the bot's name is said. `always`: whatever is said."""
    certificate: str | None = None
    """A file with the bot's own certificate and its key."""
    fingerprint: str | None = None
    """By which the server is known, if nobody vouches for its certificate."""


@dataclass(frozen=True, slots=True)
class BotSettings:
    """What bots are and where they talk."""

    name: str | None = None
    """What people call the bot, beside the name of its account and "bot"."""
    system: str | None = None
    """What the model is told first."""
    telegram: TelegramSettings = TelegramSettings()
    discord: DiscordSettings = DiscordSettings()
    mumble: MumbleSettings = MumbleSettings()


@dataclass(frozen=True, slots=True)
class Keep:
    """How long one kind of what is stored is kept. None: for good."""

    archive_days: int | None = None
    """Put away after so many days: out of the way, and still there."""
    purge_days: int | None = None
    """What is out of the way already is removed for good after so many days."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What is cleaned up by itself, once a day. By default nothing is."""

    messages: Keep = Keep()
    """Archived under a summary; purged, once archived, so long after the last of an archive was said."""
    memories: Keep = Keep()
    """Deactivated when not said again; purged so long after they ceased to be active."""
    summaries: Keep = Keep()
    """Purged: those that a newer version took the place of, or that were rolled back."""
    versions: Keep = Keep()
    """Purged: what facts and memories said before they were changed."""
    derived: Keep = Keep()
    """Purged: portraits and habits that were worked out; they are worked out again when somebody asks."""
    audit: Keep = Keep()
    """Purged: who changed and saw what."""
    spending: Keep = Keep()
    """Purged: which tokens were spent on a day."""

    @property
    def anything(self) -> bool:
        """Whether there is anything to clean up at all."""
        return self != Retention()


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that is configured."""

    store: str | None = None
    fallback: str = "auto"
    """What takes over when the store fails: `auto`, `none`, `memory`, or a location of files."""
    profile: str = "default"
    embedder: str | None = None
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
    """What was made without a model is made again when one becomes available."""
    background: bool = True
    """Whether upkeep is done by this process as it goes along; False where workers of their own do it."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where each value comes from: `key` (dotted, as in the file) to the file, the variable, or `default`."""
    warnings: tuple[str, ...] = ()
    """What looks wrong and does not keep anything from working."""

    def route(self, operation: Operation) -> Route:
        """Return how an operation is done."""
        return self.routes.get(operation, Route())
