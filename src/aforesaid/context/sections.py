"""What each section has to offer, most wanted first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

from aforesaid.context.items import USUAL_PRIORITY, Item
from aforesaid.domain.fast_constructor import fast_constructor
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.summary import Summary
from aforesaid.domain.two_generation_cache import TwoGenerationCache
from aforesaid.models.prompts import Fenced, load_prompt, quote
from aforesaid.models.prompts.fence import moment, one_line
from aforesaid.models.tokens import TokenCounter
from aforesaid.profiles.recipe import SectionName

_IMPORTANT: Final = 10
_PER_TURN: Final = 4
_LONGEST_NAME: Final = 64
_FURTHER_LINE: Final = "\n    "
_NOTHING: Final[frozenset[int]] = frozenset()
_made: Final = fast_constructor(Item)
_FORBIDDEN: Final = re.compile(r"[\s<>|\\/]+")


@dataclass(frozen=True, slots=True)
class Offers:
    """Makes items of what was read."""

    counter: TokenCounter
    written: TwoGenerationCache[bytes | str, tuple[str, int]]
    """How messages (by their hashes) and summaries (by their texts) were written lately, and what that costs.

    They come back turn after turn, and never change.
    """

    def system(self, text: str | None) -> list[Item]:
        """Offer the system prompt, as the operator wrote it."""
        return [] if not text else [self._item("system", "system prompt", text)]

    def rules(self) -> list[Item]:
        """Offer the rules against invention."""
        return [self._item("rules", "rules", _rules())]

    def persona(self, persona: str | None) -> list[Item]:
        """Offer the bot's character."""
        if not persona:
            return []
        return [self._item("persona", "persona", load_prompt("chat").section("persona", persona=Fenced(persona)))]

    def portrait(self, text: str | None) -> list[Item]:
        """Offer what is known about the person, line by line: where not all of it fits, the first lines do."""
        lines = [line for line in (text or "").splitlines() if line.strip()]
        return [
            self._item("portrait", f"portrait, line {number}", quote(line), place=number)
            for number, line in enumerate(lines, 1)
        ]

    def habits(self, text: str) -> list[Item]:
        """Offer how the person likes to talk."""
        return [] if not text else [self._item("habits", "habits", quote(text))]

    def memories(self, found: Iterable[MemoryRecord]) -> list[Item]:
        """Offer remembered things: the most important first."""
        return [
            self._item(
                "memories",
                f"memory {memory.id}",
                f"[{memory.category.upper()}] {quote(one_line(memory.text))}",
                place=number,
                relevance=memory.importance / _IMPORTANT,
                priority=memory.priority,
                tags=memory.tags,
                at=memory.created_at,
                expires=memory.expires_at,
            )
            for number, memory in enumerate(found)
        ]

    def summaries(self, found: Sequence[Summary], covered: dict[int, frozenset[int]]) -> list[Item]:
        """Offer summaries: newest first, for the oldest are trimmed first; the highest level stands first."""
        ordered = sorted(found, key=lambda summary: (-summary.level, summary.id))
        places = {summary.id: float(place) for place, summary in enumerate(ordered)}
        return [
            Item(
                "summaries",
                f"summary {summary.id}",
                *self._part(summary),
                place=places[summary.id],
                at=summary.created_at,
                covers=covered.get(summary.id, _NOTHING),
            )
            for summary in sorted(found, key=lambda summary: (-summary.last, summary.level))
        ]

    def _part(self, summary: Summary) -> tuple[str, int]:
        key = f"{summary.level} {summary.text}"
        known = self.written.get(key)
        if known is None:
            text = f'<part level="{summary.level}">{quote(summary.text)}</part>'
            known = text, self.counter.count(f"{text}\n")
            self.written.put(key, known)
        return known

    def snippets(self, hits: Sequence[Hit]) -> list[Item]:
        """Offer what the search found: best first; it will stand in the order of time."""
        best = max((hit.score for hit in hits), default=0.0)
        items: dict[int, Item] = {}
        names: dict[str, str] = {}
        for hit in hits:
            relevance = min(max(hit.score / best, 0.0), 1.0) if best > 0 else 0.0
            for message in () if hit.message is None else (hit.message, *hit.around):
                if message.seq not in items:
                    items[message.seq] = self._snippet(message, relevance, hit, names)
        return list(items.values())

    def _snippet(self, message: Message, relevance: float, hit: Hit, names: dict[str, str]) -> Item:
        known = self.written.get(message.hash)
        if known is None:
            text = _row(message, names)
            known = text, self.counter.count(f"{text}\n")
            self.written.put(message.hash, known)
        return _made(
            "snippets",
            f"message {message.id}",
            *known,
            message.at.timestamp(),
            relevance,
            USUAL_PRIORITY,
            hit.score if hit.message is message else None,
            (),
            message.at,
            None,
            "user",
            None,
            frozenset((message.seq,)),
            _NOTHING,
            False,
        )

    def recent(self, messages: Sequence[Message], *, several: bool) -> list[Item]:
        """Offer the newest messages: newest first; they will stand as they were said."""
        offered = []
        for message in reversed(messages):
            name = speaker(message.name or message.author) if several and message.role == "user" else None
            offered.append(
                _made(
                    "recent",
                    f"message {message.id}",
                    message.text,
                    self._turn(message.text, name),
                    message.at.timestamp(),
                    1.0,
                    USUAL_PRIORITY,
                    None,
                    (),
                    message.at,
                    None,
                    message.role,
                    name,
                    frozenset((message.seq,)),
                    _NOTHING,
                    False,
                )
            )
        return offered

    def current(self, text: str, name: str | None, at: datetime) -> list[Item]:
        """Offer the message that is to be answered."""
        return [Item("current", "current message", text, self._turn(text, name), name=name, at=at)]

    def _turn(self, text: str, name: str | None) -> int:
        """Return what a turn of the conversation costs: it is a message of its own, with what that adds."""
        tokens = self.counter.count(text) + 1 + _PER_TURN
        return tokens + self.counter.count(name) + 1 if name else tokens

    def _item(self, section: SectionName, key: str, text: str, **more: Any) -> Item:  # noqa: ANN401 - fields of an item
        return Item(section=section, key=key, text=text, tokens=self.counter.count(f"{text}\n"), **more)


@cache
def _rules() -> str:
    return load_prompt("chat").section("rules")


def _row(message: Message, names: dict[str, str]) -> str:
    """Write a message in as few tokens as it takes: when, who, what. Further lines of it are indented.

    So no text can pass for another message, whatever it says. `names` keeps how names are written.
    """
    called = message.name or message.author
    if called not in names:
        names[called] = quote(one_line(called))
    said = quote(message.text).replace("\n", _FURTHER_LINE)
    return f"{moment(message.at)} {names[called]}: {said}"


def speaker(name: str) -> str | None:
    """Return a name as chat APIs take it: without spaces and what they forbid."""
    return _FORBIDDEN.sub("_", one_line(name))[:_LONGEST_NAME] or None
