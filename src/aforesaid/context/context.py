"""A context: the messages for a model, with an explanation of each choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from aforesaid.domain.chat_message import ChatMessage
from aforesaid.domain.checks import Role
from aforesaid.domain.context_receipt import SentItem, SentKind, SentSection
from aforesaid.domain.details import Part, ToolCall
from aforesaid.profiles.recipe import SectionName

USUAL_PRIORITY: Final = 3


@dataclass(frozen=True, slots=True)
class Item:
    """A candidate for a context."""

    section: SectionName
    key: str
    """Identity, such as `message 12` or `summary 3`. Items with equal keys are duplicates."""
    text: str
    """The rendered text; what people wrote is escaped."""
    tokens: int
    """The tokens of the item alone, without the heading of its section or of its day."""
    place: float = 0.0
    """Sort key among the items of its section."""
    relevance: float = 1.0
    """How well it fits the question, 0 to 1."""
    priority: int = USUAL_PRIORITY
    """1 (trimmed first) to 5 (trimmed last)."""
    score: float | None = None
    """The score of the search hit."""
    tags: tuple[str, ...] = ()
    """Topics."""
    at: datetime | None = None
    expires: datetime | None = None
    role: Role = "user"
    name: str | None = None
    """The speaker, where several people talk."""
    shows: frozenset[int] = field(default=frozenset(), repr=False)
    """Sequence numbers of the messages that it shows word for word."""
    covers: frozenset[int] = field(default=frozenset(), repr=False)
    """Sequence numbers of the messages that it summarises or was extracted from."""
    cut: bool = False
    """Whether its end was cut off to make it fit."""
    day: str = ""
    """Heading of the day it was said on. Shown once above consecutive items of the same day."""
    calls: tuple[ToolCall, ...] = ()
    """The tools that a turn of the assistant asked for. The text names them too."""
    said: str = ""
    """The text of a turn with calls, without them."""
    answers: str | None = None
    """The id of the call that a turn is the result of."""
    parts: tuple[Part, ...] = ()
    """The parts of a turn. The text names them too."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An item that was left out, and why."""

    item: Item
    reason: str


@dataclass(frozen=True, slots=True)
class SectionReport:
    """The token budget of a section, and how much of it is used."""

    name: SectionName
    budget: int
    tokens: int
    items: int
    left_out: int


_BAR: Final = 40
_SHOWN: Final = 60


class Origin(NamedTuple):
    """What a receipt says of a context beside its items."""

    receipt: str
    """The id of the receipt, if one is stored."""
    thread: str
    profile: str
    model: str | None
    """The model that tokens were counted for."""
    at: datetime
    milliseconds: int
    """How long it took to build."""


@dataclass(frozen=True, slots=True)
class Context:
    """The messages for a model, within a token budget."""

    messages: list[ChatMessage]
    """For any OpenAI-style chat API."""
    written: Callable[[], str] = field(repr=False, compare=False)
    """Returns `text`, which is rendered only if it is read."""
    tokens: int
    """Tokens of `messages`, by the same counter as the budget."""
    budget: int
    sections: tuple[SectionReport, ...]
    items: tuple[Item, ...] = field(repr=False)
    left_out: tuple[LeftOut, ...] = field(repr=False)
    counter: str = ""
    """How tokens were counted."""
    person: str = field(default="", repr=False)
    """What the user is called in it: the last display name, or else the id."""
    origin: Origin | None = field(default=None, repr=False, compare=False)
    limited: str | None = field(default=None, repr=False, compare=False)
    """Why it may miss something, such as that the embedder did not answer. None: all sources were searched."""

    @property
    def receipt(self) -> str | None:
        """The id of its receipt, which is stored when the context is sent."""
        return None if self.origin is None else self.origin.receipt

    @property
    def text(self) -> str:
        """`messages` as one text, for models that complete texts."""
        return self.written()

    def explain(self) -> str:
        """Return a report: for each item whether it is included, its section, its tokens, and the reason."""
        filled = round(_BAR * self.tokens / max(self.budget, 1))
        bar = "█" * filled + "░" * (_BAR - filled)
        lines = [f"{self.tokens:,} of {self.budget:,} tokens ({self.counter})  {bar}"]
        for report in self.sections:
            if not report.items and not report.left_out:
                continue
            lines.append(
                f"\n{report.name}: {report.tokens:,} tokens, {report.items} in, {report.left_out} left out "
                f"(its share: {report.budget:,})"
            )
            lines += [f"  + {_line(item)}" for item in self.items if item.section == report.name]
            lines += [
                f"  - {_line(left.item)}: {left.reason}" for left in self.left_out if left.item.section == report.name
            ]
        return "\n".join(lines)


def _line(item: Item) -> str:
    score = "" if item.score is None else f" score {item.score:.2f}"
    weight = "" if item.priority == USUAL_PRIORITY else f" priority {item.priority}"
    weight += f" relevance {item.relevance:.2f}" if item.relevance < 1 else ""
    weight += f" about {', '.join(item.tags)}" if item.tags else ""
    short = " ".join(item.text.split())
    shown = short if len(short) <= _SHOWN else f"{short[: _SHOWN - 1]}…"
    return f"{item.tokens:5,}  {item.key}{score}{weight}{' (cut)' if item.cut else ''}  {shown}"


_NUMBERED: Final[dict[str, SentKind]] = {"memory": "memory", "summary": "summary"}
"""How the keys of items with a number begin."""


def sections_of(context: Context) -> tuple[SentSection, ...]:
    sent: dict[str, list[SentItem]] = {}
    for item in context.items:
        sent.setdefault(item.section, []).append(_sent(item))
    reports = (report for report in context.sections if report.items)
    sections = [SentSection(each.name, each.tokens, tuple(sent.get(each.name, ()))) for each in reports]
    return _adding_up(sections, context.tokens)


def sections_of_items(
    items: Iterable[Item], tokens: int, heading: Callable[[SectionName], int]
) -> tuple[SentSection, ...]:
    """Return the sections of some items of a context, in the order of their first items.

    `tokens` are those of the whole text that they were sent as, which those of the sections add up to; `heading`
    returns those of a section without items.
    """
    sections: dict[SectionName, list[SentItem]] = {}
    for item in items:
        sections.setdefault(item.section, []).append(_sent(item))
    counted = [
        SentSection(name, heading(name) + sum(each.tokens for each in sent), tuple(sent))
        for name, sent in sections.items()
    ]
    return _adding_up(counted, tokens)


def _adding_up(sections: Sequence[SentSection], tokens: int) -> tuple[SentSection, ...]:
    """Return the sections with as many tokens together as were counted in the whole.

    Parts were counted one by one, without what frames messages. The difference belongs to the turns of the
    conversation, if there are any, and else to the largest section.
    """
    changed, rest = list(sections), tokens - sum(each.tokens for each in sections)
    for place in sorted(range(len(changed)), key=lambda at: (changed[at].name != "recent", -changed[at].tokens)):
        more = max(rest, -changed[place].tokens)
        changed[place] = changed[place]._replace(tokens=changed[place].tokens + more)
        rest -= more
    return tuple(changed)


def _sent(item: Item) -> SentItem:
    if item.shows:
        return SentItem("message", min(item.shows), item.tokens)
    kind, _, number = item.key.partition(" ")
    if kind in _NUMBERED and number.isdecimal():
        return SentItem(_NUMBERED[kind], int(number), item.tokens)
    return SentItem("text", None, item.tokens)
