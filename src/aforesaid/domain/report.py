"""Reports about a store: users, totals, health, verification."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, NamedTuple

from aforesaid.domain.checks import AlertKind, Category, ComponentStatus, MemoryState, SettingValue


@dataclass(frozen=True, slots=True)
class User:
    """A user with counts."""

    space: str
    id: str
    messages: int
    archived: int
    created_at: datetime
    last_activity: datetime | None
    """The time of their latest message."""
    name: str | None = None
    """The last display name they used; None if they never used one."""


@dataclass(frozen=True, slots=True)
class ListedUser:
    """A user as lists of people show them."""

    user: User
    first_activity: datetime | None
    """When their first message was said, which may be long before it was stored."""
    memories: int
    """Number of their active memories."""


class SpaceTotals(NamedTuple):
    """Counts of a space that has users."""

    space: str
    users: int
    messages: int
    archived: int
    last_activity: datetime


class MemoryCount(NamedTuple):
    """Number of memories that have these four things in common."""

    day: date
    """The day (UTC) on which they were said."""
    category: Category
    importance: int
    state: MemoryState
    number: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """The counts that summary policies use. They are stored, so they survive a restart."""

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
    """A row of the audit log: who did what. It never contains the text of a message."""

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
    """The number of messages on a day."""

    day: date
    messages: int
    turns: int
    """Messages with the role `user`."""


@dataclass(frozen=True, slots=True)
class Component:
    """The health of one component."""

    name: str
    status: ComponentStatus
    last_update: datetime | None
    issues: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    """Readable details, such as versions and sizes."""
    message_count: int | None = None
    """Number of messages in it; None if it does not contain messages."""
    waiting: int | None = None
    """Pending items; None if unknown."""
    health_check: datetime | None = None
    """When it was checked."""


@dataclass(frozen=True, slots=True)
class Alert:
    """A problem that an operator should look at. It stays active until it is clearly over."""

    kind: AlertKind
    about: str
    """The component or operation."""
    text: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Storage:
    """The size of the store, and its growth."""

    bytes: int
    messages: int
    free: int | None = None
    """Free bytes on the disk; None if the store is on another machine."""
    since: datetime | None = None
    """Start of the growth measurement; None if there is none yet."""
    bytes_per_day: float | None = None
    messages_per_day: float | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """Calls, errors and latency of an operation in the last minutes."""

    name: str
    model: str
    """The model; empty for operations without one."""
    calls: int
    per_minute: float
    failed: int
    error_rate: float
    """Share of failed calls, 0 to 1. Invalid calls do not count."""
    mean_seconds: float
    p95_seconds: float | None
    """95th percentile in seconds, rounded up to a histogram bucket; None above one minute."""
    cache_hits: int


@dataclass(frozen=True, slots=True)
class Health:
    """The health of the memory and of each component."""

    status: ComponentStatus
    components: tuple[Component, ...]
    alerts: tuple[Alert, ...] = ()
    storage: Storage | None = None
    operations: tuple[Operation, ...] = ()
    checked_at: datetime | None = None

    def component(self, name: str) -> Component:
        """Return a component by name."""
        return next(component for component in self.components if component.name == name)


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one verification check."""

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
        """Whether every check passed."""
        return all(check.ok for check in self.checks)


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """The state of a user's memory, as `/summary_status` shows it."""

    enabled: bool
    storage: str
    """The kind of store: `sqlite`, `postgresql`, `json`, …"""
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


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The result of one retention rule."""

    kind: str
    action: Literal["archive", "purge"]
    days: int
    before: datetime
    """The rule applies to items older than this."""
    count: int


@dataclass(frozen=True, slots=True)
class Cleanup:
    """The results of all retention rules."""

    dry_run: bool
    rules: tuple[Cleaned, ...]
    error: str | None = None
    """The error that stopped the cleanup; the next run continues."""
