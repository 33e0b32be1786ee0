"""A context: the messages for a model, with an explanation of each choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from aforesaid.context.items import USUAL_PRIORITY, Item, LeftOut, SectionReport
from aforesaid.domain.chat_message import ChatMessage

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
        lines = [f"{self.tokens:,} of {self.budget:,} tokens ({self.counter})  {_bar(self.tokens, self.budget)}"]
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


def _bar(used: int, whole: int) -> str:
    filled = round(_BAR * used / max(whole, 1))
    return "█" * filled + "░" * (_BAR - filled)
