"""Retention: deleting data by age, and reports about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from types import EllipsisType
from typing import Final, Literal, TypeAlias, get_args

from aforesaid.domain import checks
from aforesaid.errors import InvalidInput, SourcesChanged

Discardable: TypeAlias = Literal["messages", "summaries", "memories", "versions", "derived", "audit", "spending"]
"""What can be removed for good by its age.

`messages`: whole archives, so long after the last message of one was said; their summaries stay. `summaries`: those
that a newer version took the place of, or that were rolled back, and that nothing stands on. `memories`: those that
are not active, since their last change; not those that wait for approval. `versions`: what facts and memories said
before a change. `derived`: what was worked out and can be worked out again. `audit`: who changed and saw what.
`spending`: the tokens of a day.
"""
DISCARDABLE: Final[tuple[Discardable, ...]] = get_args(Discardable)


@dataclass(frozen=True, slots=True)
class Discard:
    """Remove what is older than a moment (in microseconds), the oldest first, and about so much of it at once.

    Nothing that is active goes, and no number is given out again. Of everybody from whom something goes, the audit log
    says how much. Nothing happens where nothing is that old.
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
