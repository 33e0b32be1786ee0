"""The items that the readers of all formats yield."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, Final, NamedTuple, TypeAlias

from aforesaid.domain.checks import Role
from aforesaid.domain.details import Part, ToolCall
from aforesaid.domain.transfer import Row

NO_METADATA: Final[Mapping[str, Any]] = {}


class ImportedMessage(NamedTuple):
    """A message from another application."""

    where: str
    """Its position in the file."""
    thread: str
    role: Role
    text: str
    """What was said. It may be empty if there are parts or tool calls."""
    at: datetime | None
    id: str
    """A stable id, so that a message is stored once however often it is imported."""
    author: str | None = None
    """The author; None for the user whose memory it is, or the assistant. A bot among people has an author too: its
    messages belong to the person who wrote before it."""
    name: str | None = None
    owner: str | None = None
    """The user whose memory it is, where the file names one; None: the author, or whoever the assistant replies to."""
    parts: tuple[Part, ...] = ()
    reply_to: str | None = None
    kind: str | None = None
    metadata: Mapping[str, Any] = NO_METADATA
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


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

NO_WORDS: Final = Skipped("messages without text or attachment")
NOTICE: Final = Skipped("notices of the app: who joined, what was pinned, calls")
DELETED: Final = Skipped("deleted messages")
MISSING_MEDIA: Final = Skipped("pictures, recordings and files that are not in the export")
REPLACED: Final = Skipped("questions and answers that were edited or regenerated")
HIDDEN: Final = Skipped("instructions and reasoning of the model")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of a reader."""

    zone: tzinfo | None = None
    """The time zone of timestamps without one; None for this machine's."""
    user: str = "me"
    space: str = "default"
