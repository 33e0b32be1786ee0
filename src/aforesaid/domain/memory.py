"""Memories: single remembered things about a user; and facts, the text of what people stated about them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, get_args

from aforesaid.domain import checks
from aforesaid.domain.scope import Scope
from aforesaid.domain.words import Category, MemoryState, Trust
from aforesaid.errors import InvalidInput

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
"""The extractor of what a person wrote down."""
INSTRUCTION: Final = "instruction"
"""The tag of a standing request, such as "always answer in metric units". Contexts tell the model to follow it."""
FORGOTTEN: Final = "forgotten"
"""The reason of a memory that was deactivated because a person asked to forget it."""

_BANDS: Final = ((3, "low", "grey"), (6, "medium", "blue"), (8, "high", "orange"), (10, "critical", "red"))


class Band(NamedTuple):
    """How an importance is called, and the colour it is shown in."""

    name: str
    colour: str


def band(importance: int) -> Band:
    """Return the band of an importance: 1 to 3 low, 4 to 6 medium, 7 and 8 high, 9 and 10 critical."""
    return next(Band(name, colour) for most, name, colour in _BANDS if importance <= most)


class Event(NamedTuple):
    """When something happens or happened, its end not included."""

    start: datetime
    end: datetime
    timed: bool
    """Whether a time of day is known; otherwise it is about whole days."""


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """A memory to be stored, with the messages that it was learned from."""

    scope: Scope
    category: Category
    text: str
    importance: int = USUAL_IMPORTANCE
    tags: tuple[str, ...] = ()
    sources: tuple[int, ...] = ()
    """Sequence numbers of messages."""
    priority: int = USUAL_PRIORITY
    state: MemoryState = "active"
    speaker: str | None = None
    """Who said it; None for the user."""
    subject: str | None = None
    """What it is about. Of two memories of one speaker that say different things about it, the newer one holds."""
    event: Event | None = None
    remind_at: datetime | None = None
    expires_at: datetime | None = None
    valid_from: datetime | None = None
    """Since when it holds; None for now."""
    valid_to: datetime | None = None
    superseded_by: int | None = None
    extractor: str = BY_HAND
    trust: Trust = "stated"
    reason: str = ""
    """Why it is not active."""
    times: int = 1
    """How often it was said."""

    def __post_init__(self) -> None:
        """Refuse an unknown category, an empty text, an importance outside 1 to 10, a priority outside 1 to 5."""
        check_words(self.category, self.state, self.trust)
        checks.message_text(self.text)
        check_weights(self.importance, self.priority)
        for tag in self.tags:
            checks.identifier(tag, "a tag")
        checks.at_least(self.times, 1, "the times")
        for moment in (self.remind_at, self.expires_at, self.valid_from, self.valid_to, *(self.event or ())[:2]):
            if moment is not None:
                checks.microseconds(moment, "a time of the memory")


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
    """The messages that it was learned from; of one that was said very often, the first ones."""
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
    """Until when it held."""
    superseded_by: int | None
    """The memory that took its place."""
    extractor: str
    """What wrote it: `hand`, or the version of the rules, or of the prompt, and the model."""
    trust: Trust
    reason: str
    times: int
    seen_at: datetime
    """When it was last said."""
    revision: int
    """Grows with every change."""

    @property
    def band(self) -> Band:
        """The band of its importance."""
        return band(self.importance)

    def held_at(self, moment: datetime) -> bool:
        """Tell whether it was believed at a moment. What waits for approval, or was forgotten, never counts."""
        if self.state == "quarantined" or self.reason == FORGOTTEN:
            return False
        return self.valid_from <= moment and (self.valid_to is None or moment < self.valid_to)

    def over_at(self, moment: datetime) -> bool:
        """Tell whether it is to be left out at a moment, because its time is over."""
        return self.expires_at is not None and self.expires_at <= moment


@dataclass(frozen=True, slots=True)
class MemoryVersion:
    """A memory as it was before a change, and what that change was."""

    before: MemoryRecord
    action: str
    actor: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Facts:
    """A version of the third-person text of what people stated about a user."""

    space: str
    user: str
    text: str
    version: int
    updated_at: datetime
    cause: str = ""
    """The words that led to it."""


class Tombstone(NamedTuple):
    """What was asked to be forgotten. It counts for all that had been said until then, not for what is said later."""

    words: str
    up_to: int
    """The last message of the user at that moment."""


class Derived(NamedTuple):
    """Something that was worked out from other things and is kept so that it need not be done again."""

    key: str
    """What it was worked out from: a hash, or how far in the log."""
    value: str
    at: datetime


class Unextracted(NamedTuple):
    """A user of whom something was stored that nobody has looked through yet."""

    scope: Scope
    after: int
    """The last message that was looked through."""
    last: int
    """The newest message."""


def check_words(category: object, state: object, trust: object) -> None:
    """Refuse words that are not of the vocabulary."""
    for value, known, what in (
        (category, CATEGORIES, "category"),
        (state, STATES, "state"),
        (trust, TRUSTS, "trust"),
    ):
        if value not in known:
            raise InvalidInput(f"unknown {what} {value!r}; use one of {', '.join(known)}")


def check_weights(importance: object, priority: object) -> None:
    """Refuse an importance or a priority outside of its range."""
    if (number := checks.at_least(importance, LEAST_IMPORTANCE, "the importance")) > MOST_IMPORTANCE:
        raise InvalidInput(f"the importance must be at most {MOST_IMPORTANCE}, not {number}")
    if (number := checks.at_least(priority, LEAST_PRIORITY, "the priority")) > MOST_PRIORITY:
        raise InvalidInput(f"the priority must be at most {MOST_PRIORITY}, not {number}")


def check_filters(category: object, active: object, state: object) -> None:
    """Refuse to look for what no memory has."""
    if category is not None and category not in CATEGORIES:
        raise InvalidInput(f"unknown category {category!r}; use one of {', '.join(CATEGORIES)}")
    if state is not None and state not in STATES:
        raise InvalidInput(f"unknown state {state!r}; use one of {', '.join(STATES)}")
    if active is not None and not isinstance(active, bool):
        raise InvalidInput(f"active must be True, False or None, not {active!r}")


def in_state(memory: MemoryRecord, active: bool | None, state: MemoryState | None, now: datetime) -> bool:  # noqa: FBT001
    """Tell whether a memory is in the state that is asked for, also where its time is over and nobody has marked it."""
    if state is not None:
        return state == ("expired" if memory.state == "active" and memory.over_at(now) else memory.state)
    return active is not True or not memory.over_at(now)
