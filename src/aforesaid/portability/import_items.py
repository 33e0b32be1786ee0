"""The items that the readers of all formats yield."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from aforesaid.domain import checks
from aforesaid.domain.checks import Category, Role
from aforesaid.domain.details import Part, ToolCall
from aforesaid.domain.memory import CATEGORIES, USUAL_IMPORTANCE, USUAL_PRIORITY, MemoryRecord
from aforesaid.domain.transfer import MemoryRow, Row

if TYPE_CHECKING:
    from aforesaid.portability.input_files import Source


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


Reader: TypeAlias = "Callable[[Source, ReadOptions], Iterator[Item]]"


TAGS: Final = 20
"""Maximum number of tags of an imported memory."""
_TAG_CHARACTERS: Final = 100

_CATEGORIES: Final[dict[str, Category]] = {
    **{category: category for category in CATEGORIES},
    "user_preferences": "preference",
    "preferences": "preference",
    "food": "preference",
    "music": "preference",
    "entertainment": "preference",
    "hobbies": "preference",
    "fashion": "preference",
    "sports": "preference",
    "personal_details": "fact",
    "professional_details": "fact",
    "family": "fact",
    "health": "fact",
    "finance": "fact",
    "education": "fact",
    "milestones": "fact",
    "facts": "fact",
    "profile": "fact",
    "human": "fact",
    "appointments": "schedule",
    "travel": "schedule",
    "plans": "schedule",
    "goals": "task",
    "tasks": "task",
    "todo": "task",
    "reminders": "reminder",
}
"""The category for each of the words that other programs use."""


def imported_memory(
    text: str,
    user: str,
    at: datetime,
    *,
    space: str,
    extractor: str,
    tags: Iterable[object] = (),
    seen_at: datetime | None = None,
    expires_at: datetime | None = None,
) -> MemoryRow:
    """Return a memory that another program made. Its category follows from its tags. Raises InvalidInput."""
    words = tuple(dict.fromkeys(tag[:_TAG_CHARACTERS] for tag in tags if isinstance(tag, str) and tag.strip()))[:TAGS]
    checks.message_text(text)
    checks.identifier(user, "user_id")
    return MemoryRow(
        MemoryRecord(
            id=1,
            space=space,
            user=user,
            category=next((_CATEGORIES[word.casefold()] for word in words if word.casefold() in _CATEGORIES), "other"),
            text=text,
            importance=USUAL_IMPORTANCE,
            tags=words,
            sources=(),
            created_at=at,
            active=True,
            state="active",
            priority=USUAL_PRIORITY,
            speaker=user,
            subject=None,
            event=None,
            remind_at=None,
            delivered_at=None,
            expires_at=expires_at,
            valid_from=at,
            valid_to=None,
            superseded_by=None,
            extractor=extractor,
            trust="said",
            reason="",
            times=1,
            seen_at=max(seen_at or at, at),
            revision=1,
        )
    )


def numbered(items: Iterator[Item]) -> Iterator[Item]:
    """Give each memory a number, since its id in another program is not one."""
    number = 0
    for item in items:
        if isinstance(item, ImportedRow) and isinstance(item.row, MemoryRow):
            number += 1
            yield ImportedRow(item.where, MemoryRow(replace(item.row.memory, id=number)))
        else:
            yield item


def metadata_tags(metadata: object) -> Iterator[str]:
    """Yield the metadata of a memory as tags such as `place=Berlin`. Nested values are left out."""
    if not isinstance(metadata, dict):
        return
    for name, value in metadata.items():
        if name in ("category", "categories", "type"):
            yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str))
        elif isinstance(value, list):
            yield from (f"{name}={each}" for each in value if isinstance(each, str | int | float))
        elif isinstance(value, str | int | float) and value != "":
            yield f"{name}={value}"
