"""What the readers of all formats give out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from aforesaid.domain.transfer import Row
from aforesaid.domain.words import Role

if TYPE_CHECKING:
    from aforesaid.portability.input_files import Source


class ImportedMessage(NamedTuple):
    """A message that another application kept."""

    where: str
    """Where it stands in the file."""
    thread: str
    role: Role
    text: str
    at: datetime | None
    id: str
    """Always the same for the same message, so that it is stored once however often it is read."""
    author: str | None = None
    """Who said it; None for the user whose memory it is, or the assistant."""
    name: str | None = None
    answers: str | None = None
    """Whom the assistant answers, where it talks with many."""


class ImportedRow(NamedTuple):
    """A row of a dump, or something as good as one."""

    where: str
    row: Row


class Problem(NamedTuple):
    """Something that cannot be taken in."""

    where: str
    why: str


class Skipped(NamedTuple):
    """Something that is no message, and is left out on purpose: that somebody joined, that a call was missed."""

    what: str


Item: TypeAlias = ImportedMessage | ImportedRow | Problem | Skipped


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read."""

    zone: tzinfo | None = None
    """Where the clocks were that wrote times without a zone; None for this machine's."""
    user: str = "me"
    space: str = "default"


Reader: TypeAlias = "Callable[[Source, ReadOptions], Iterator[Item]]"
