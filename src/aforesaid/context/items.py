"""Items: the candidates for a context, and which of them were chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from aforesaid.domain.checks import Role
from aforesaid.domain.details import Part, ToolCall
from aforesaid.profiles.recipe import SectionName

USUAL_PRIORITY: Final = 3


@dataclass(frozen=True, slots=True)
class Item:
    """A candidate for a context."""

    section: SectionName
    key: str
    """Identity, such as `message 12` or `summary 3`. Items with equal keys are duplicates."""
    text: str
    """The rendered text; what people wrote is escaped."""
    tokens: int
    """The tokens of the item alone, without the heading of its section or of its day."""
    place: float = 0.0
    """Sort key among the items of its section."""
    relevance: float = 1.0
    """How well it fits the question, 0 to 1."""
    priority: int = USUAL_PRIORITY
    """1 (trimmed first) to 5 (trimmed last)."""
    score: float | None = None
    """The score of the search hit."""
    tags: tuple[str, ...] = ()
    """Topics."""
    at: datetime | None = None
    expires: datetime | None = None
    role: Role = "user"
    name: str | None = None
    """The speaker, where several people talk."""
    shows: frozenset[int] = field(default=frozenset(), repr=False)
    """Sequence numbers of the messages that it shows word for word."""
    covers: frozenset[int] = field(default=frozenset(), repr=False)
    """Sequence numbers of the messages that it summarises or was extracted from."""
    cut: bool = False
    """Whether its end was cut off to make it fit."""
    day: str = ""
    """Heading of the day it was said on. Shown once above consecutive items of the same day."""
    calls: tuple[ToolCall, ...] = ()
    """The tools that a turn of the assistant asked for. The text names them too."""
    said: str = ""
    """The text of a turn with calls, without them."""
    answers: str | None = None
    """The id of the call that a turn is the result of."""
    parts: tuple[Part, ...] = ()
    """The parts of a turn. The text names them too."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An item that was left out, and why."""

    item: Item
    reason: str


@dataclass(frozen=True, slots=True)
class SectionReport:
    """The token budget of a section, and how much of it is used."""

    name: SectionName
    budget: int
    tokens: int
    items: int
    left_out: int
