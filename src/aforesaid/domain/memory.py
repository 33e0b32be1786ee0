"""Memories: single statements about a user; and facts: the text of what people stated about a user."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, get_args

from aforesaid.domain import checks
from aforesaid.domain.literals import Category, MemoryState, Trust
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, quoted

CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)
STATES: Final[tuple[MemoryState, ...]] = get_args(MemoryState)
TRUSTS: Final[tuple[Trust, ...]] = get_args(Trust)
LEAST_IMPORTANCE: Final = 1
USUAL_IMPORTANCE: Final = 5
MOST_IMPORTANCE: Final = 10
LEAST_PRIORITY: Final = 1
USUAL_PRIORITY: Final = 3
MOST_PRIORITY: Final = 5
BY_HAND: Final = "hand"
"""The extractor of memories written by hand."""
INSTRUCTION: Final = "instruction"
"""The tag of a standing request, such as "always answer in metric units". Contexts tell the model to follow it."""
TAGGED_KINDS: Final = frozenset({INSTRUCTION, "event", "relationship"})
"""Kinds of memories that no category names. Such a memory has its kind as a tag."""
FORGOTTEN: Final = "forgotten"
"""The reason of memories deactivated on request."""
TAKEN_BACK: Final = "its message was taken back"
EDITED: Final = "its message was edited"
"""The reasons of memories deactivated because no message says any more what they rest on."""

_BANDS: Final = ((3, "low", "grey"), (6, "medium", "blue"), (8, "high", "orange"), (10, "critical", "red"))


class Band(NamedTuple):
    """The name of a range of importance, and its colour in the panel."""

    name: str
    colour: str


def band(importance: int) -> Band:
    """Return the band of an importance: 1 to 3 low, 4 to 6 medium, 7 and 8 high, 9 and 10 critical."""
    return next(Band(name, colour) for most, name, colour in _BANDS if importance <= most)


class Event(NamedTuple):
    """The time of an event; the end is exclusive."""

    start: datetime
    end: datetime
    timed: bool
    """Whether the time of day is known; otherwise the event lasts whole days."""


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """A memory to be stored, with its source messages."""

    scope: Scope
    category: Category
    text: str
    importance: int = USUAL_IMPORTANCE
    tags: tuple[str, ...] = ()
    sources: tuple[int, ...] = ()
    """Sequence numbers of its source messages."""
    priority: int = USUAL_PRIORITY
    state: MemoryState = "active"
    speaker: str | None = None
    """Who said it; None for the user."""
    subject: str | None = None
    """The subject. A newer memory of the same speaker with the same subject supersedes an older one."""
    event: Event | None = None
    remind_at: datetime | None = None
    expires_at: datetime | None = None
    valid_from: datetime | None = None
    """When it became true; None for now."""
    valid_to: datetime | None = None
    superseded_by: int | None = None
    extractor: str = BY_HAND
    trust: Trust = "stated"
    reason: str = ""
    """Why it is inactive."""
    times: int = 1
    """Number of times it was stated."""

    def __post_init__(self) -> None:
        """Refuse an unknown category, an empty text, an importance outside 1 to 10, a priority outside 1 to 5."""
        check_words(self.category, self.state, self.trust)
        checks.message_text(self.text)
        check_weights(self.importance, self.priority)
        check_tags(self.tags)
        checks.at_least(self.times, 1, "the times")
        check_times(self.remind_at, self.expires_at, self.valid_from, self.valid_to, *(self.event or ())[:2])


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A stored memory. Fields that a draft has too mean the same here."""

    id: int
    space: str
    user: str
    category: Category
    text: str
    importance: int
    tags: tuple[str, ...]
    sources: tuple[int, ...]
    """Sequence numbers of its source messages; at most the first `SOURCES_KEPT`."""
    created_at: datetime
    active: bool
    state: MemoryState
    priority: int
    speaker: str
    subject: str | None
    event: Event | None
    remind_at: datetime | None
    delivered_at: datetime | None
    expires_at: datetime | None
    valid_from: datetime
    valid_to: datetime | None
    """When it stopped being true."""
    superseded_by: int | None
    """The id of the memory that superseded it."""
    extractor: str
    """What wrote it: `hand`, or the version of the rules, or of the prompt, and the model."""
    trust: Trust
    reason: str
    times: int
    seen_at: datetime
    """When it was last stated."""
    revision: int
    """Incremented by every change."""

    @property
    def band(self) -> Band:
        """The band of its importance."""
        return band(self.importance)

    def held_at(self, moment: datetime) -> bool:
        """Return whether it was true at a time. Quarantined and forgotten memories never were."""
        if self.state == "quarantined" or self.reason == FORGOTTEN:
            return False
        return self.valid_from <= moment and (self.valid_to is None or moment < self.valid_to)

    def over_at(self, moment: datetime) -> bool:
        """Return whether it has expired at a time."""
        return self.expires_at is not None and self.expires_at <= moment


@dataclass(frozen=True, slots=True)
class MemoryVersion:
    """An earlier version of a memory, and the change that followed it."""

    before: MemoryRecord
    action: str
    actor: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Facts:
    """One version of a user's facts: a text in the third person."""

    space: str
    user: str
    text: str
    version: int
    updated_at: datetime
    cause: str = ""
    """The statement that led to it."""


class Tombstone(NamedTuple):
    """A request to forget. It applies to everything said before it, not to later messages."""

    words: str
    up_to: int
    """The user's last message at the time of the request."""


class Derived(NamedTuple):
    """A cached value that was computed from other data."""

    key: str
    """The version of its inputs: a hash, or a position in the log."""
    value: str
    at: datetime


class Unextracted(NamedTuple):
    """A user with messages that memories were not extracted from yet."""

    scope: Scope
    after: int
    """The last processed message."""
    last: int
    """The newest message."""


def check_words(category: object, state: object, trust: object) -> None:
    """Raise InvalidInput for an unknown category, state or trust."""
    for value, known, what in (
        (category, CATEGORIES, "category"),
        (state, STATES, "state"),
        (trust, TRUSTS, "trust"),
    ):
        if value not in known:
            raise InvalidInput(f"unknown {what} {quoted(value)}; use one of {', '.join(known)}", what)


def check_weights(importance: object, priority: object) -> None:
    """Raise InvalidInput for an importance or priority outside its range."""
    if (number := checks.at_least(importance, LEAST_IMPORTANCE, "the importance", "importance")) > MOST_IMPORTANCE:
        raise InvalidInput(f"the importance must be at most {MOST_IMPORTANCE}, not {number}", "importance")
    if (number := checks.at_least(priority, LEAST_PRIORITY, "the priority", "priority")) > MOST_PRIORITY:
        raise InvalidInput(f"the priority must be at most {MOST_PRIORITY}, not {number}", "priority")


def check_tags(tags: object) -> None:
    """Refuse tags that are not a tuple of short texts."""
    if not isinstance(tags, tuple):
        raise InvalidInput(f"the tags must be a tuple, not {type(tags).__name__}", "tags")
    for tag in tags:
        if not isinstance(tag, str):
            raise InvalidInput(f"a tag must be a string, not {type(tag).__name__}", "tags")
        checks.identifier(tag, "a tag", "tags")


def check_times(*moments: object) -> None:
    """Refuse times of a memory that no store can hold. None is allowed."""
    for moment in moments:
        if moment is not None:
            checks.microseconds(moment, "a time of the memory", "expires")


def in_state(memory: MemoryRecord, active: bool | None, state: MemoryState | None, now: datetime) -> bool:  # noqa: FBT001
    """Return whether a memory matches a filter. Expired memories count as expired even before they are marked."""
    if state is not None:
        return state == ("expired" if memory.state == "active" and memory.over_at(now) else memory.state)
    return active is not True or not memory.over_at(now)
