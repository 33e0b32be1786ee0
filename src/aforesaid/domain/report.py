"""What a store says about itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import NamedTuple

from aforesaid.domain.words import AlertKind, ComponentStatus, SettingValue


@dataclass(frozen=True, slots=True)
class User:
    """A user who owns something, with counts."""

    space: str
    id: str
    messages: int
    archived: int
    created_at: datetime
    last_activity: datetime | None
    """The latest time at which a message of theirs was said."""
    name: str | None = None
    """The display name of the latest message that they wrote under one; None where there is none."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """The counts that policies decide on. They are kept with the messages and survive a restart."""

    messages: int
    archived: int
    turns: int
    """Messages with the role `user`."""
    open_turns: int
    """User turns since the last archive."""
    last_seq: int
    last_chunk: int
    active_summaries: tuple[tuple[int, int], ...]
    """(level, how many are active), lowest level first."""
    highest_level: int


@dataclass(frozen=True, slots=True)
class Setting:
    """A stored setting and when it was changed."""

    key: str
    value: SettingValue
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Who changed what. It names what was changed and never repeats a message's text."""

    id: int
    at: datetime
    space: str
    user: str
    actor: str
    action: str
    subject: str


@dataclass(frozen=True, slots=True)
class Stats:
    """Totals over the whole store."""

    spaces: int
    users: int
    threads: int
    sessions: int
    messages: int
    archived: int
    summaries: int
    memories: int
    bytes: int


class Activity(NamedTuple):
    """How much was said on a day."""

    day: date
    messages: int
    turns: int
    """Messages with the role `user`."""


@dataclass(frozen=True, slots=True)
class Component:
    """The health of one part."""

    name: str
    status: ComponentStatus
    last_update: datetime | None
    issues: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    """Readable details, such as versions and sizes."""
    message_count: int | None = None
    """The messages that it holds; None where it holds none."""
    waiting: int | None = None
    """How much it still has to do; None where that is not known."""
    health_check: datetime | None = None
    """When it was looked at."""


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that an operator should look at. It stays until it is clearly over."""

    kind: AlertKind
    about: str
    """The part or the operation."""
    text: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Storage:
    """How much is stored, and how fast it grows."""

    bytes: int
    messages: int
    free: int | None = None
    """What is left on the device, in bytes; None where the store is not on one of this machine."""
    since: datetime | None = None
    """From when on growth was measured; None where it was not yet."""
    bytes_per_day: float | None = None
    messages_per_day: float | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """What an operation took in the last minutes."""

    name: str
    model: str
    """Empty where it is the memory's own."""
    calls: int
    per_minute: float
    failed: int
    error_rate: float
    """Up to 1. What callers do wrong does not count."""
    mean_seconds: float
    p95_seconds: float | None
    """95 of 100 calls took at most so long, rounded up to a class; None where it is more than a minute."""
    cache_hits: int


@dataclass(frozen=True, slots=True)
class Health:
    """The health of the whole, and of each part."""

    status: ComponentStatus
    components: tuple[Component, ...]
    alerts: tuple[Alert, ...] = ()
    storage: Storage | None = None
    operations: tuple[Operation, ...] = ()
    checked_at: datetime | None = None

    def component(self, name: str) -> Component:
        """Return one part."""
        return next(component for component in self.components if component.name == name)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was verified."""

    name: str
    ok: bool
    detail: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return all(check.ok for check in self.checks)


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """The state of a user's memory, as `/summary_status` shows it."""

    enabled: bool
    storage: str
    """What the store is: `sqlite`, `postgresql`, `json`, …"""
    threshold: int
    """A summary is made after this many messages: user turns with `tree`, else all of them. 0 where none is made so."""
    since_last: int
    """Messages since the last summary, counted as for `threshold`."""
    messages: int
    archived: int
    active_summaries: int
    highest_level: int
    policy: str = "tree"
    """How this memory summarises: `tree`, `rolling`, `calendar`, `tiers` or `none`."""
