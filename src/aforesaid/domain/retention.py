"""Retention: deleting data by age, and reports about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from types import EllipsisType
from typing import Final, Literal, TypeAlias, get_args

from aforesaid.domain import checks
from aforesaid.errors import InvalidInput, SourcesChanged

Discardable: TypeAlias = Literal[
    "messages", "summaries", "memories", "versions", "derived", "audit", "spending", "receipts"
]
"""What can be deleted by age.

`messages`: whole archives, by their last message; their summaries stay. `summaries`: replaced or rolled back ones that
no other summary covers. `memories`: inactive ones, by their last change, except those that wait for approval.
`versions`: earlier versions of facts and memories. `derived`: computed values, which can be computed again. `audit`:
entries of the audit log. `spending`: token counts per day. `receipts`: receipts of contexts.
"""
DISCARDABLE: Final[tuple[Discardable, ...]] = get_args(Discardable)


@dataclass(frozen=True, slots=True)
class Discard:
    """Delete about `limit` rows that are older than `before` (in microseconds), oldest first.

    Active rows are never deleted and ids are never reused. The audit log records the number of deleted rows per user.
    """

    what: Discardable
    before: int
    limit: int = 500
    actor: str = "aforesaid"

    def __post_init__(self) -> None:
        """Raise InvalidInput for kinds that cannot be deleted by age."""
        if self.what not in DISCARDABLE:
            raise InvalidInput(f"{self.what!r} cannot be removed by age; use one of {', '.join(DISCARDABLE)}")
        checks.at_least(self.limit, 1, "the limit")


@dataclass(frozen=True, slots=True)
class Discarded:
    """The number of deleted items."""

    count: int


@dataclass(frozen=True, slots=True)
class PutMark:
    """Store a value about the store itself under a name; None deletes it.

    With `only_if`, raises SourcesChanged unless the stored value is that one (None: there is none).
    """

    name: str
    value: str | None
    only_if: str | EllipsisType | None = ...

    def __post_init__(self) -> None:
        """Raise InvalidInput for a name or value that cannot be stored."""
        checks.identifier(self.name, "the mark's name")
        if self.value is not None:
            checks.storable(self.value, "the mark")

    def check(self, current: str | None) -> None:
        """Raise SourcesChanged if the stored value is not the one that `only_if` names."""
        if self.only_if is not ... and self.only_if != current:
            raise SourcesChanged(f"the mark {self.name!r} was changed by somebody else")


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
