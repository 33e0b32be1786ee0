"""The shapes of JSON replies. Change a prompt and its shape together."""

from __future__ import annotations

from contextlib import suppress
from datetime import date
from typing import Annotated, ClassVar, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, field_validator

from aforesaid.domain.checks import Kind
from aforesaid.domain.memory import KINDS
from aforesaid.extras import re

MOST_NOTES: Final = 12
"""Maximum memories of one answer. A small model fills any list that it may fill."""
_MOST_SOURCES: Final = 20
_NUMBER: Final = re.compile(r"\d{1,4}")
Text = Annotated[str, Field(min_length=1, max_length=4000)]
Brief = Annotated[str, Field(min_length=1, max_length=500)]
Word = Annotated[str, Field(min_length=1, max_length=60)]


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=True)


class Note(BaseModel):
    """One memory that a model extracted.

    Models that are not held to a schema write numbers as texts, or a kind of their own: both are read.
    """

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)

    about: Annotated[str, Field(max_length=60)]
    """The name of the person whom it is about."""
    text: Annotated[str, Field(min_length=1, max_length=240)]
    kind: Kind
    sources: Annotated[
        list[int], Field(alias="from", max_length=_MOST_SOURCES), WithJsonSchema({"type": "integer", "minimum": 1})
    ]
    """The number of the message that says it. Several are read, but one is asked for: small models name them all.

    It is the last field: where it is the first, small models write a note about every message, one after the other.
    """

    @field_validator("sources", mode="before")
    @classmethod
    def _list_of_numbers(cls, given: object) -> object:
        listed = given if isinstance(given, list) else [given]
        return [int(each) if isinstance(each, str) and _NUMBER.fullmatch(each) else each for each in listed]

    @field_validator("kind", mode="before")
    @classmethod
    def _known_kind(cls, given: object) -> object:
        return given if given in KINDS else "fact"


class Revision(Note):
    """A memory that a model extracted where it was shown known ones."""

    replaces: Annotated[int, Field(ge=0)] = 0
    """The number of the known memory that it changes or completes; 0 for none."""

    @field_validator("replaces", mode="before")
    @classmethod
    def _none_is_zero(cls, given: object) -> object:
        return 0 if given is None else given


class Extraction(_Shape):
    """Answers `extract`. Notes that do not fit their shape are left out, unless none fits."""

    usable_when_cut: ClassVar[bool] = True
    """Whether the complete notes of a reply count that was cut off at `max_tokens`."""

    notes: Annotated[list[Note], Field(max_length=MOST_NOTES)]

    @field_validator("notes", mode="before")
    @classmethod
    def _fitting_notes(cls, given: object) -> object:
        """Return the first valid notes. If there are none, return all: the error for the model names the reason."""
        if not isinstance(given, list):
            return given
        (shape,), notes = get_args(cls.model_fields["notes"].annotation), []
        for each in given:
            with suppress(ValidationError):
                notes.append(shape.model_validate(each, strict=True))
        return notes[:MOST_NOTES] or given


class ExtractionWithKnown(Extraction):
    """Answers `extract` where known memories are shown."""

    notes: Annotated[list[Revision], Field(max_length=MOST_NOTES)]  # type: ignore[assignment]


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
