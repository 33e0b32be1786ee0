"""Summaries: texts that stand for messages, or for other summaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final, Literal, TypeAlias

from aforesaid.domain import checks
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput

SummaryKind: TypeAlias = Literal["tree", "rolling", "day", "week", "history"]
"""`tree` archives what it stands for. The others are views that hide nothing."""

Reach: TypeAlias = Literal["chunks", "thread", "user", "sources"]
"""What lies below a summary: archives, a stretch of what the owner has in a thread or in all, or what sources have."""

CONTINUED: Final = ("rolling", "history")
"""Kinds of which each goes on from the one before."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How good a summary is, as far as that can be measured."""

    compression: float
    """Its length as a part of the length of what it was made of."""
    coverage: float | None
    """How near, on average, the nearest sentence of the summary is to what was said, up to 1. None without embedder."""
    grounded: float
    """Which part of its names, numbers and dates occurs in what it was made of."""
    invented: tuple[str, ...] = ()
    """Those that do not."""


@dataclass(frozen=True, slots=True)
class SummaryDraft:
    """A summary to be stored, and exactly what it stands for: messages (level 1) or summaries (above)."""

    scope: Scope
    text: str
    messages: tuple[int, ...] = ()
    """Sequence numbers."""
    summaries: tuple[int, ...] = ()
    """Ids."""
    kind: str = "tree"
    model: str | None = None
    """What wrote it; None when it was made without a model."""
    prompt: str = ""
    """The version of the prompt that produced it."""
    quality: Quality | None = None
    created_at: int | None = None
    """In microseconds; None for now."""

    def __post_init__(self) -> None:
        """Refuse a summary that says nothing or stands for nothing."""
        summary_text(self.text)
        if bool(self.messages) == bool(self.summaries):
            raise InvalidInput("a summary stands for messages or for summaries: give one of the two")
        _distinct(self.messages or self.summaries)


@dataclass(frozen=True, slots=True)
class ViewDraft:
    """A summary of a stretch of what a user has, which archives nothing."""

    scope: Scope
    kind: Literal["rolling", "day", "week", "history"]
    text: str
    first: int
    """The first message that it covers and the summary before it does not."""
    last: int
    messages: int
    """How many there are from the first to the last: checked when it is stored. Of `sources`, what they have."""
    reach: Literal["thread", "user", "sources"] = "user"
    since: int = checks.EARLIEST
    until: int = checks.LATEST + 1
    """Only what was said from `since` to before `until`, in microseconds."""
    previous: int | None = None
    """The summary that it goes on from (kinds that continue), or is a newer version of. None: there is none yet."""
    summaries: tuple[int, ...] = ()
    """Other summaries that it was made of; they stay as they are."""
    day: date | None = None
    model: str | None = None
    prompt: str = ""
    details: Mapping[str, Any] | None = None
    quality: Quality | None = None
    created_at: int | None = None

    def __post_init__(self) -> None:
        """Refuse a summary that says nothing or covers nothing."""
        summary_text(self.text)
        checks.at_least(self.first, 1, "the first message")
        checks.at_least(self.messages, 1, "the number of messages")
        if self.last < self.first:
            raise InvalidInput("a summary cannot end before it begins")
        _distinct(self.summaries)

    @property
    def continues(self) -> bool:
        """Whether it covers what the summary before it does, too."""
        return self.kind in CONTINUED and self.previous is not None


@dataclass(frozen=True, slots=True)
class Summary:
    """A stored summary. `first` and `last` are the outermost messages below it."""

    id: int
    space: str
    user: str
    thread: str
    kind: str
    level: int
    text: str
    chunks: tuple[int, ...]
    """The archives that it stands for, at every level."""
    sources: tuple[int, ...] = field(repr=False)
    """The summaries that it was made of."""
    first: int
    last: int
    messages: int
    """How many messages lie below it."""
    model: str | None
    """What wrote it; None when it was made without a model."""
    prompt: str
    created_at: datetime
    active: bool
    rolled_back: bool
    began_at: datetime
    """When the first of its messages was said …"""
    ended_at: datetime
    """… and the last."""
    reach: Reach = "chunks"
    fresh: int = 0
    """The first message that the summary it goes on from does not cover."""
    day: date | None = None
    version: int = 1
    replaces: int | None = None
    """The version before this one."""
    replaced: bool = False
    edited_by: str | None = None
    """Who wrote it, where that was a person."""
    details: Mapping[str, Any] | None = field(default=None, repr=False)
    quality: Quality | None = field(default=None, repr=False)

    @property
    def valid(self) -> bool:
        """Whether it covers something and says something."""
        return self.messages > 0 and bool(self.text.strip())

    @property
    def period(self) -> str:
        """The time that it covers, in days of UTC: `2026-03-01` or `2026-03-01 to 2026-03-05`."""
        first, last = self.began_at.date().isoformat(), self.ended_at.date().isoformat()
        return first if first == last else f"{first} to {last}"


def summary_text(value: object) -> str:
    """Return the text of a summary, or say why it cannot be one."""
    text = checks.storable(value, "the summary")
    if not text.strip():
        raise InvalidInput("the summary is empty")
    return text


def _distinct(sources: tuple[int, ...]) -> None:
    if len(set(sources)) != len(sources):
        raise InvalidInput("a source is named twice")
