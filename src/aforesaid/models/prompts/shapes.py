"""The shapes of JSON replies. Change a prompt and its shape together."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from aforesaid.domain.literals import Category

Text = Annotated[str, Field(min_length=1, max_length=4000)]
Brief = Annotated[str, Field(min_length=1, max_length=500)]
Word = Annotated[str, Field(min_length=1, max_length=60)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


class Extracted(_Shape):
    """One extracted memory."""

    category: Category
    content: Brief
    importance: int = Field(ge=1, le=10)
    sources: list[int] = Field(default_factory=list, max_length=20)
    """Numbers of the messages that say it."""
    replaces: int | None = None
    """The number of a known memory that is no longer true."""
    when: Annotated[str, Field(max_length=40)] | None = None
    """The day, or the day and time, of what is scheduled or to be done."""


class Extraction(_Shape):
    """Answers `extract`."""

    memories: list[Extracted] = Field(max_length=50)


class DaySummary(_Shape):
    """What a day was for one person."""

    id: Annotated[str, Field(min_length=1, max_length=255)]
    summary: Text


class DaySummaries(_Shape):
    """Answers `day`."""

    summaries: list[DaySummary] = Field(max_length=1000)


class RememberReply(_Shape):
    """Answers `remember`."""

    facts: Text


class ForgetReply(_Shape):
    """Answers `forget`. Without any facts left, the text is empty."""

    found: bool
    facts: Annotated[str, Field(max_length=4000)]


class RouteReply(_Shape):
    """Answers `route`."""

    action: Literal["remember", "forget", "query", "none"]
    about: Annotated[str, Field(max_length=255)] = ""
    """The name of whom it is about; empty for the speaker."""
    fact: Annotated[str, Field(max_length=4000)] = ""


class HistoryItem(_Shape):
    """One thing of a history that is worth keeping in mind."""

    text: Brief
    priority: int = Field(ge=1, le=5)
    relevance: float = Field(ge=0, le=1)
    tags: list[Word] = Field(default_factory=list, max_length=5)
    expires: date | None = None


class History(_Shape):
    """Answers `history`."""

    summary: Text
    topics: list[Word] = Field(max_length=10)
    preferences: list[Brief] = Field(max_length=10)
    style: Annotated[str, Field(max_length=500)]
    items: list[HistoryItem] = Field(max_length=20)
