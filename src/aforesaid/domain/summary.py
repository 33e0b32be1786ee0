"""Summaries of messages or of other summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from aforesaid.domain import checks
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, quoted

SummaryKind: TypeAlias = Literal["tree", "rolling", "day", "week", "history"]
"""A `tree` summary archives its sources. The others are views that archive nothing."""
SUMMARY_KINDS: Final[tuple[SummaryKind, ...]] = get_args(SummaryKind)
ViewKind: TypeAlias = Literal["rolling", "day", "week", "history"]

Reach: TypeAlias = Literal["chunks", "thread", "user", "sources"]
"""What lies below a summary: archives, a stretch of what the owner has in a thread or in all, or what sources have."""

CONTINUED: Final = ("rolling", "history")
"""Kinds of which each summary continues the previous one."""

HEARD_BEFORE: Final = 3_600_000_000
"""Microseconds before the first message of a summary in which others may have said what was read for it."""

NOTHING_SAID: Final = "(nothing was said in words)"
"""The text of a summary whose messages have no words: all of them are images, or were taken back."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Measured quality of a summary."""

    compression: float
    """Its length divided by the length of its sources."""
    coverage: float | None
    """Average similarity of each source message to the nearest summary sentence, at most 1. None without embedder."""
    grounded: float
    """Share of its names, numbers and dates that occur in its sources."""
    invented: tuple[str, ...] = ()
    """Names, numbers and dates that do not occur in its sources."""


@dataclass(frozen=True, slots=True)
class SummaryDraft:
    """A summary to be stored, and its sources: messages (level 1) or summaries (higher levels)."""

    scope: Scope
    text: str
    messages: tuple[int, ...] = ()
    """Sequence numbers."""
    summaries: tuple[int, ...] = ()
    """Ids."""
    kind: str = "tree"
    model: str | None = None
    """The model that wrote it; None without a model."""
    prompt: str = ""
    """The version of the prompt that produced it."""
    quality: Quality | None = None
    created_at: int | None = None
    """In microseconds; None for now."""
    shown: tuple[int, ...] = ()
    """Sequence numbers of the messages whose texts were read for it; none may have been replaced when it is stored."""
    heard: tuple[int, ...] = ()
    """The same of what others said in shared threads."""

    def __post_init__(self) -> None:
        """Raise InvalidInput for an empty summary, or one without sources."""
        summary_text(self.text)
        check_origin(self.model, self.prompt)
        if bool(self.messages) == bool(self.summaries):
            raise InvalidInput("a summary needs either messages or summaries as its sources")
        _distinct(self.messages or self.summaries)


@dataclass(frozen=True, slots=True)
class ViewDraft:
    """A summary of a range of a user's messages, which archives nothing."""

    scope: Scope
    kind: ViewKind
    text: str
    first: int
    """The first message that the previous summary does not cover."""
    last: int
    messages: int
    """How many rows of the log there are from the first to the last, with all versions and tombstones: checked when it
    is stored. Of `sources`, what they cover."""
    reach: Literal["thread", "user", "sources"] = "user"
    since: int = checks.EARLIEST
    until: int = checks.LATEST + 1
    """Only what was said from `since` to before `until`, in microseconds."""
    previous: int | None = None
    """The summary that it continues, or that it replaces as a newer version. None: there is none yet."""
    summaries: tuple[int, ...] = ()
    """Other summaries that it was made from; they stay active."""
    day: date | None = None
    model: str | None = None
    prompt: str = ""
    details: Mapping[str, Any] | None = None
    quality: Quality | None = None
    created_at: int | None = None
    shown: tuple[int, ...] = ()
    """Sequence numbers of the messages whose texts were read for it; none may have been replaced when it is stored."""
    heard: tuple[int, ...] = ()
    """The same of what others said in shared threads."""

    def __post_init__(self) -> None:
        """Raise InvalidInput for an unknown kind, for an empty summary, or for one that covers nothing."""
        if self.kind not in (known := get_args(ViewKind)):
            raise InvalidInput(f"the kind of a view must be one of {', '.join(known)}, not {quoted(self.kind)}", "kind")
        summary_text(self.text)
        check_origin(self.model, self.prompt)
        checks.at_least(self.first, 1, "the first message")
        checks.at_least(self.messages, 1, "the number of messages")
        if self.last < self.first:
            raise InvalidInput("a summary cannot end before it begins")
        _distinct(self.summaries)

    @property
    def continues(self) -> bool:
        """Whether it also covers the messages of the previous summary."""
        return self.kind in CONTINUED and self.previous is not None


@dataclass(frozen=True, slots=True)
class Summary:
    """A stored summary. `first` and `last` are the first and last messages it covers."""

    id: int
    space: str
    user: str
    thread: str
    kind: str
    level: int
    text: str
    chunks: tuple[int, ...]
    """The ids of the archives that it covers, at every level."""
    sources: tuple[int, ...] = field(repr=False)
    """The ids of the summaries that it was made from."""
    first: int
    last: int
    messages: int
    """Number of messages that it was made from: of each the newest version, and none that was taken back."""
    model: str | None
    """The model that wrote it; None without a model."""
    prompt: str
    created_at: datetime
    active: bool
    rolled_back: bool
    began_at: datetime
    """Time of its first message."""
    ended_at: datetime
    """Time of its last message."""
    reach: Reach = "chunks"
    fresh: int = 0
    """The first message that the previous summary does not cover."""
    day: date | None = None
    version: int = 1
    replaces: int | None = None
    """The id of the previous version."""
    replaced: bool = False
    edited_by: str | None = None
    """The person who edited it; None if nobody did."""
    details: Mapping[str, Any] | None = field(default=None, repr=False)
    quality: Quality | None = field(default=None, repr=False)
    rows: int | None = field(default=None, repr=False)
    """Number of rows of the log that it covers, with all versions and tombstones; None: as many as messages."""

    @property
    def covered(self) -> int:
        """Number of rows of the log that it covers."""
        return self.messages if self.rows is None else self.rows

    @property
    def heard(self) -> Mapping[str, Sequence[str]]:
        """Whose messages were read for it beside the owner's, each with the shared threads that these are in.

        `store.summaries` writes it into the details, and `store.erasing` searches for it there.
        """
        heard: Mapping[str, Sequence[str]] = (self.details or {}).get("heard", {})
        return heard

    @property
    def valid(self) -> bool:
        """Whether it says something and covers messages. Others are in no context, and no search finds them."""
        return self.messages > 0 and self.text.strip() not in ("", NOTHING_SAID)

    @property
    def period(self) -> str:
        """The time that it covers, in days of UTC: `2026-03-01` or `2026-03-01 to 2026-03-05`."""
        first, last = self.began_at.date().isoformat(), self.ended_at.date().isoformat()
        return first if first == last else f"{first} to {last}"


def check_origin(model: object, prompt: object) -> None:
    """Refuse a name of a model, or of a prompt, that cannot be stored."""
    if model is not None:
        checks.short_text(model, "the model")
    checks.short_text(prompt, "the prompt")


def summary_text(value: object) -> str:
    """Return the text of a summary. Raises InvalidInput if it is empty."""
    text = checks.storable(value, "the summary", "text")
    if not text.strip():
        raise InvalidInput("the summary is empty", "text")
    return text


def _distinct(sources: tuple[int, ...]) -> None:
    if len(set(sources)) != len(sources):
        raise InvalidInput("a source is named twice")
