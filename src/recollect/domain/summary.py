"""Summaries: texts that stand for messages, or for other summaries."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from recollect.domain import checks
from recollect.domain.scope import Scope
from recollect.errors import InvalidInput


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

    def __post_init__(self) -> None:
        """Refuse a summary that says nothing or stands for nothing."""
        if not checks.storable(self.text, "the summary").strip():
            raise InvalidInput("the summary is empty")
        if bool(self.messages) == bool(self.summaries):
            raise InvalidInput("a summary stands for messages or for summaries: give one of the two")
        sources = self.messages or self.summaries
        if len(set(sources)) != len(sources):
            raise InvalidInput("a source is named twice")


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
    """The summaries that it was made of; empty at level 1."""
    first: int
    last: int
    messages: int
    """How many messages lie below it."""
    model: str | None
    prompt: str
    created_at: datetime
    active: bool
    rolled_back: bool
