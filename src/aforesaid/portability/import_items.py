"""The items that the readers of all formats yield."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from aforesaid.domain.literals import Role
from aforesaid.domain.transfer import Row

if TYPE_CHECKING:
    from aforesaid.portability.input_files import Source


class ImportedMessage(NamedTuple):
    """A message from another application."""

    where: str
    """Its position in the file."""
    thread: str
    role: Role
    text: str
    at: datetime | None
    id: str
    """A stable id, so that a message is stored once however often it is imported."""
    author: str | None = None
    """The author; None for the user whose memory it is, or the assistant."""
    name: str | None = None
    answers: str | None = None
    """The user the assistant replies to, in chats with several people."""


class ImportedRow(NamedTuple):
    """A row of a dump, with its position in the file."""

    where: str
    row: Row


class Problem(NamedTuple):
    """An entry that cannot be imported."""

    where: str
    why: str


class Skipped(NamedTuple):
    """An entry that is not a message and is skipped on purpose, such as a "joined" notice or a missed call."""

    what: str


Item: TypeAlias = ImportedMessage | ImportedRow | Problem | Skipped


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of a reader."""

    zone: tzinfo | None = None
    """The time zone of timestamps without one; None for this machine's."""
    user: str = "me"
    space: str = "default"


Reader: TypeAlias = "Callable[[Source, ReadOptions], Iterator[Item]]"
