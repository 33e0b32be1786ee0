"""What sections offer, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from aforesaid.domain.words import Role
from aforesaid.profiles.recipe import SectionName

USUAL_PRIORITY: Final = 3


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that may go to the model."""

    section: SectionName
    key: str
    """What it is, such as `message #12` or `summary 3`. Two items with one key are the same thing."""
    text: str
    """As it will be shown, escaped where people wrote it."""
    tokens: int
    place: float = 0.0
    """Where it stands among the items of its section."""
    relevance: float = 1.0
    """How well it fits what is asked now, 0 to 1."""
    priority: int = USUAL_PRIORITY
    """1 (first to go) to 5 (last to go)."""
    score: float | None = None
    """What the search gave it."""
    tags: tuple[str, ...] = ()
    """What it is about."""
    at: datetime | None = None
    expires: datetime | None = None
    role: Role = "user"
    name: str | None = None
    """The speaker, where several people talk."""
    shows: frozenset[int] = field(default=frozenset(), repr=False)
    """The messages that it shows word for word, by sequence number."""
    covers: frozenset[int] = field(default=frozenset(), repr=False)
    """The messages that it stands for."""
    cut: bool = False
    """Whether a part of it was left out to make it fit."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An item that did not get in, and why."""

    item: Item
    reason: str


@dataclass(frozen=True, slots=True)
class SectionReport:
    """What a section was given, and what it used."""

    name: SectionName
    budget: int
    tokens: int
    items: int
    left_out: int
