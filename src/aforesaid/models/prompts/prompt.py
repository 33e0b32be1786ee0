"""Prompts and the shapes of their answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, TypeAlias, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError, WithJsonSchema, field_validator

from aforesaid.domain.checks import Kind
from aforesaid.domain.memory import KINDS
from aforesaid.errors import InvalidInput, quoted
from aforesaid.models.prompts.fence import Fenced, quote
from aforesaid.settings import OPERATIONS, Operation

if TYPE_CHECKING:
    from aforesaid.models.chat.completion import Said


Part: TypeAlias = "str | int | date"
"""What can be put into a prompt. A text that is not `Fenced` is escaped on its way in."""

NAMES: Final = (
    "summarize",
    "fold",
    "roll",
    "day",
    "week",
    "history",
    "extract",
    "remember",
    "forget",
    "portrait",
    "route",
    "chat",
)

_HEADER: Final = re.compile(r"version: ([1-9][0-9]*)\noperation: ([a-z]+)\n")
_SECTION: Final = re.compile(r"^=== ([a-z]+) ===\n", re.MULTILINE)
_PLACE: Final = re.compile(r"\$\{([a-z_]+)\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, in sections. Most have two: the instructions (`system`) and the input (`user`)."""

    name: str
    number: int
    operation: Operation
    """Which of the configured models it is for."""
    sections: Mapping[str, str]

    @property
    def version(self) -> str:
        """Name and number, as it is stored with what the prompt produced. The number grows with every change."""
        return f"{self.name}/{self.number}"

    def places(self) -> set[str]:
        """Return the names of all places that have to be filled."""
        return {name for text in self.sections.values() for name in _PLACE.findall(text)}

    def render(self, **parts: Part) -> list[Said]:
        """Return what to send to the model. A place that is not filled, or a part without a place, is an error."""
        from aforesaid.models.chat.completion import Said  # noqa: PLC0415 - brings pydantic

        self._check(self.places(), parts)
        if set(self.sections) != {"system", "user"}:
            raise InvalidInput(f"the prompt {self.name} is rendered section by section; it has {_names(self.sections)}")
        return [
            Said("system", _fill(self.sections["system"], parts)),
            Said("user", _fill(self.sections["user"], parts)),
        ]

    def section(self, name: str, /, **parts: Part) -> str:
        if name not in self.sections:
            raise InvalidInput(f"the prompt {self.name} has no section {quoted(name)}; it has {_names(self.sections)}")
        text = self.sections[name]
        self._check(set(_PLACE.findall(text)), parts)
        return _fill(text, parts)

    def _check(self, places: set[str], parts: Mapping[str, Part]) -> None:
        if missing := places - set(parts):
            raise InvalidInput(f"the prompt {self.version} needs {_names(missing)}")
        if unknown := set(parts) - places:
            raise InvalidInput(f"the prompt {self.version} has no place for {_names(unknown)}")


@cache
def load_prompt(name: str) -> Prompt:
    if name not in NAMES:
        raise InvalidInput(f"there is no prompt {quoted(name)}; use one of {', '.join(NAMES)}")
    return read_prompt(name, (files("aforesaid.models.prompts") / "texts" / f"{name}.md").read_text(encoding="utf-8"))


def read_prompt(name: str, text: str) -> Prompt:
    """Read a prompt: `version: N` and `operation: NAME` in the first lines, then sections under `=== name ===`."""
    header = _HEADER.match(text)
    if header is None or header[2] not in OPERATIONS:
        raise InvalidInput(f"the prompt {name} must begin with 'version: 1' and 'operation: …', {_names(OPERATIONS)}")
    before, *rest = _SECTION.split(text[header.end() :])
    if before.strip() or not rest:
        raise InvalidInput(f"the prompt {name} must have its text in sections, each below a line '=== name ==='")
    sections = {title: body.strip() for title, body in zip(rest[::2], rest[1::2], strict=True)}
    return Prompt(name, int(header[1]), cast("Operation", header[2]), sections)


def _fill(text: str, parts: Mapping[str, Part]) -> str:
    # In one pass: what looks like a place in a part stays what it is.
    return _PLACE.sub(lambda found: _write(parts[found[1]]), text)


def _write(part: Part) -> str:
    if isinstance(part, Fenced):
        return part
    if isinstance(part, str):
        return quote(part)
    return part.isoformat() if isinstance(part, date) else str(part)


def _names(names: Mapping[str, object] | set[str] | tuple[str, ...]) -> str:
    return ", ".join(sorted(names))


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
        return _fitting(given, Note)


class ExtractionWithKnown(_Shape):
    """Answers `extract` where known memories are shown."""

    usable_when_cut: ClassVar[bool] = True

    notes: Annotated[list[Revision], Field(max_length=MOST_NOTES)]

    @field_validator("notes", mode="before")
    @classmethod
    def _fitting_notes(cls, given: object) -> object:
        return _fitting(given, Revision)


def _fitting(given: object, shape: type[Note]) -> object:
    """Return the first valid notes. If there are none, return all, so that the error for the model names the reason."""
    if not isinstance(given, list):
        return given
    notes = []
    for each in given:
        with suppress(ValidationError):
            notes.append(shape.model_validate(each, strict=True))
    return notes[:MOST_NOTES] or given


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
