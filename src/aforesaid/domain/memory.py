"""Memories: single statements about a user; and facts: the text of what people stated about a user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias, cast, get_args

from aforesaid.domain import checks
from aforesaid.domain.checks import Category, CategoryOrKind, Kind, MemoryState, Trust
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, TooLarge, quoted
from aforesaid.extras import re

CATEGORIES: Final[tuple[Category, ...]] = get_args(Category)
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
STATES: Final[tuple[MemoryState, ...]] = get_args(MemoryState)
TRUSTS: Final[tuple[Trust, ...]] = get_args(Trust)
Matter: TypeAlias = Literal[
    "name", "age", "birthday", "home", "from", "job", "employer", "study", "speaks", "partner", "child", "parent",
    "sibling", "relative", "friend", "colleague", "boss", "neighbour", "pet", "allergy", "diet", "condition",
    "medicine", "like", "dislike", "hobby", "phone", "email", "address", "own", "event", "goal",
]  # fmt: skip
"""A matter of a person of which a memory can tell the value."""
MATTERS: Final[tuple[Matter, ...]] = get_args(Matter)
VALUE_CHARACTERS: Final = 400
"""The most characters that the value of a matter can have."""
LEAST_IMPORTANCE: Final = 1
USUAL_IMPORTANCE: Final = 5
MOST_IMPORTANCE: Final = 10
LEAST_PRIORITY: Final = 1
USUAL_PRIORITY: Final = 3
MOST_PRIORITY: Final = 5
BY_HAND: Final = "hand"
"""The extractor of memories written by hand."""
INSTRUCTION: Final[Kind] = "instruction"
"""The kind of a standing request, such as "always answer in metric units". Contexts tell the model to follow it."""
CATEGORY_OF: Final[Mapping[Kind, Category]] = {
    "fact": "fact",
    "preference": "preference",
    "event": "fact",
    "schedule": "schedule",
    "task": "task",
    "reminder": "reminder",
    "relationship": "fact",
    "instruction": "preference",
}
"""The category of each kind. Categories are the coarser view of kinds that the documented tables have."""
_QUOTING: Final = "salience/1"
"""The extractor whose texts quoted the message that a person answered, and that took answers for standing requests."""
_EXCHANGE: Final = re.compile(r'(?P<first>[^":]{1,100}): ".*" (?P<own>(?P<second>[^":]{1,100}): ".*)', re.DOTALL)
"""Such a text: what somebody said, and what the person answered. The person's own message before was quoted too."""
_ABOUT: Final = "about "
"""The beginning of the tag by which memories named the person whom they are about, before there was a field for it."""
FORGOTTEN: Final = "forgotten"
"""The reason of memories deactivated on request."""
ENDED: Final = "no longer true"
"""The reason of memories that somebody declared to be over."""
LAPSED: Final = "not mentioned for a while"
"""The reason of memories of what passes, which nobody has spoken of for long."""
PASSED: Final = "its date is over"
"""The reason of memories of what was to come and whose date has passed since."""
DOUBTED: Final = "not sure"
"""The reason of values that were read in one message and are not sure. Told again, they become active."""
TAKEN_BACK: Final = "its message was taken back"
EDITED: Final = "its message was edited"
"""The reasons of memories deactivated because no message says any more what they rest on."""

_BANDS: Final = ((3, "low", "grey"), (6, "medium", "blue"), (8, "high", "orange"), (10, "critical", "red"))
_MISSING: Final[tuple[object, ...]] = ("", None)
"""What a field of a record has where a store of an older version does not know it."""


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
    kind: Kind | None = None
    """What it is; None: what its category, its tags and its event say (`kind_of`)."""
    about: str | None = None
    """Whom it is about: the id of a user of the space, or the name of somebody who is none; None for the user."""
    said_at: datetime | None = None
    """When it was first said; None: when it became true."""
    language: str | None = None
    """The language of its text, such as `german`; None if nobody looked."""
    confidence: float | None = None
    """How sure its extractor is that it is worth remembering, from 0 to 1; None if that is unknown."""
    matter: str | None = None
    """Which matter of a person it is, such as `home` or `allergy`; None for a note."""
    value: str | None = None
    """The value of the matter, in the person's own words: `hazelnuts`."""

    def __post_init__(self) -> None:
        """Refuse an unknown category or matter, an empty text, and weights outside their range."""
        check_memory(self)
        checks.at_least(self.times, 1, "the times")


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
    kind: Kind = ""  # type: ignore[assignment] # set below
    about: str | None = None
    said_at: datetime = None  # type: ignore[assignment] # set below
    language: str | None = None
    confidence: float | None = None
    matter: str | None = None
    value: str | None = None

    def __post_init__(self) -> None:
        """Derive what memories lack that were stored before they had a kind and a time at which they were said."""
        if self.kind in _MISSING:
            object.__setattr__(self, "kind", kind_of(self.category, self.tags, self.event, self.subject))
            object.__setattr__(self, "about", self.about or about_in(self.tags))
        if self.said_at in _MISSING:
            object.__setattr__(self, "said_at", self.valid_from)
        if self.confidence is not None:
            object.__setattr__(self, "confidence", round(self.confidence, 2))
        if self.extractor == _QUOTING:
            # What the assistant or somebody else said is no part of what is known about the person.
            said = _EXCHANGE.fullmatch(self.text)
            if said is not None and (said["first"] != said["second"] or said["first"] == "Assistant"):
                object.__setattr__(self, "text", said["own"])
            object.__setattr__(self, "kind", "preference" if self.kind == INSTRUCTION else self.kind)

    @property
    def band(self) -> Band:
        """The band of its importance."""
        return band(self.importance)

    @property
    def is_hearsay(self) -> bool:
        """Whether somebody other than the user said it about the user in a conversation. It describes nobody."""
        return self.trust == "reported" and self.about in (None, self.user)

    @property
    def happened(self) -> Event | None:
        """When what it tells happened or will happen; an event without a date happened on the day it was told."""
        if self.event is not None or self.kind != "event":
            return self.event
        return Event(self.said_at, self.said_at, timed=False)

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


def kind_of(category: Category, tags: Sequence[str], event: Event | None, subject: str | None = None) -> Kind:
    """Return the kind of a memory of which only the category is known: a fact with a date is an event.

    A tag that names a kind counts more for facts and preferences: memories named theirs so before there was a field for
    it. A reminder with the tag `event` stays a reminder.
    """
    tagged = next((kind for kind in KINDS if kind in tags and kind not in CATEGORIES), None)
    if tagged is not None and category in {"fact", "other", "preference"}:
        return tagged
    if category in {"fact", "other"}:
        related = subject is not None and (subject == "marital" or subject.endswith(": name"))
        return "event" if event is not None else "relationship" if related else "fact"
    return cast("Kind", category)


def category_and_kind(called: CategoryOrKind) -> tuple[Category, Kind | None]:
    """Return the category of what is called by its category or by its kind; and the kind, if it is called by that.

    Raises InvalidInput for an unknown one.
    """
    if called in CATEGORIES:
        return called, None
    if called not in KINDS:
        known = dict.fromkeys((*CATEGORIES, *KINDS))
        raise InvalidInput(f"unknown category {quoted(called)}; use one of {', '.join(known)}", "category")
    return CATEGORY_OF[called], called


def about_in(tags: Sequence[str]) -> str | None:
    """Return whom a memory is about by the tag that said so before there was a field for it (`about tom`)."""
    return next((tag.removeprefix(_ABOUT) for tag in tags if tag.startswith(_ABOUT)), None)


def check_kind(kind: object, about: object, language: object, confidence: object) -> None:
    """Raise InvalidInput for an unknown kind, a name that cannot be stored, or a confidence outside 0 to 1."""
    if kind not in KINDS:
        raise InvalidInput(f"unknown kind {quoted(kind)}; use one of {', '.join(KINDS)}", "kind")
    if about is not None:
        checks.identifier(about, "about", "about")
    if language is not None:
        checks.identifier(language, "the language", "language")
    if confidence is not None and not (isinstance(confidence, int | float) and 0 <= confidence <= 1):
        raise InvalidInput(f"the confidence must be a number from 0 to 1, not {quoted(confidence)}", "confidence")


def check_matter(matter: object, value: object) -> None:
    """Raise InvalidInput for an unknown matter, or a value that is empty, too long or without a matter."""
    if matter is not None and matter not in MATTERS:
        raise InvalidInput(f"unknown matter {quoted(matter)}; use one of {', '.join(MATTERS)}", "matter")
    if value is None:
        return
    text = checks.storable(value, "the value", "value")
    if matter is None:
        raise InvalidInput("a value needs a matter", "value")
    if not text:
        raise InvalidInput("the value is empty", "value")
    if len(text) > VALUE_CHARACTERS:
        raise TooLarge(f"the value has {len(text):,} characters; at most {VALUE_CHARACTERS} are allowed", "value")


def check_weights(importance: object, priority: object) -> None:
    """Raise InvalidInput for an importance or priority outside its range."""
    if (number := checks.at_least(importance, LEAST_IMPORTANCE, "the importance", "importance")) > MOST_IMPORTANCE:
        raise InvalidInput(f"the importance must be at most {MOST_IMPORTANCE}, not {number}", "importance")
    if (number := checks.at_least(priority, LEAST_PRIORITY, "the priority", "priority")) > MOST_PRIORITY:
        raise InvalidInput(f"the priority must be at most {MOST_PRIORITY}, not {number}", "priority")


def check_memory(memory: MemoryDraft | MemoryRecord, *more: object) -> None:
    """Raise InvalidInput for what no store can hold. `more` are further times of the memory."""
    for value, known, what in (
        (memory.category, CATEGORIES, "category"),
        (memory.state, STATES, "state"),
        (memory.trust, TRUSTS, "trust"),
    ):
        if value not in known:
            raise InvalidInput(f"unknown {what} {quoted(value)}; use one of {', '.join(known)}", what)
    check_kind(memory.kind or "fact", memory.about, memory.language, memory.confidence)
    check_matter(memory.matter, memory.value)
    checks.message_text(memory.text)
    check_weights(memory.importance, memory.priority)
    if not isinstance(memory.tags, tuple):
        raise InvalidInput(f"the tags must be a tuple, not {type(memory.tags).__name__}", "tags")
    for tag in memory.tags:
        if not isinstance(tag, str):
            raise InvalidInput(f"a tag must be a string, not {type(tag).__name__}", "tags")
        checks.identifier(tag, "a tag", "tags")
    times = (memory.remind_at, memory.expires_at, memory.valid_from, memory.valid_to, memory.said_at)
    for moment in (*times, *(memory.event or ())[:2], *more):
        if moment is not None:
            checks.microseconds(moment, "a time of the memory", "expires")


def in_state(memory: MemoryRecord, active: bool | None, state: MemoryState | None, now: datetime) -> bool:  # noqa: FBT001
    """Return whether a memory matches a filter. Expired memories count as expired even before they are marked."""
    if state is not None:
        return state == ("expired" if memory.state == "active" and memory.over_at(now) else memory.state)
    return active is not True or not memory.over_at(now)


NoteKind: TypeAlias = Literal["summary", "memory"]


class NoteKey(NamedTuple):
    """The kind and id of a note."""

    kind: NoteKind
    id: int


class UnembeddedNote(NamedTuple):
    """A note that is not embedded yet."""

    key: NoteKey
    text: str
    space: str = ""
    """Its space, in stores that number each space separately."""


class NoteVector(NamedTuple):
    """The vector of a note, as that of a message (`VectorRow`)."""

    key: NoteKey
    value: bytes
    space: str = ""
    """The space of the note, as it came with it."""


@dataclass(frozen=True, slots=True)
class NoteMatch:
    """A note that a search found."""

    key: NoteKey
    text: str
    at: datetime
    sources: tuple[str, ...]
    """The ids of the messages that it rests on, oldest first; not more than `MOST_SOURCES`."""
    words: tuple[str, ...]
    """The query's words that occur in it."""
    coverage: float
    """The weighted share of query terms that it contains, 0 to 1."""
    similarity: float | None
    """Cosine similarity to the query; None if it is not embedded yet."""


class Superseded(NamedTuple):
    """A memory to be superseded, with the revision that was read."""

    memory: int
    revision: int


SOURCES_KEPT = 20
"""Maximum number of sources stored per memory."""
MOST_DESCRIBING = 40
"""Maximum number of memories in a portrait, the most important first."""
