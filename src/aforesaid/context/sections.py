"""The items that each section offers, in the order of preference."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, tzinfo
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from aforesaid.context.items import USUAL_PRIORITY, Item
from aforesaid.context.render import FURTHER_LINE, TODAY
from aforesaid.domain.caches import TwoGenerationCache, fast_constructor
from aforesaid.domain.checks import to_zone
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.domain.summary import Summary
from aforesaid.models.prompts import Fenced, load_prompt, quote
from aforesaid.models.prompts.fence import moment, one_line, written_day
from aforesaid.models.tokens import TokenCounter
from aforesaid.profiles.recipe import SectionName

_IMPORTANT: Final = 10
_PER_TURN: Final = 4
_LONGEST_NAME: Final = 64
_BEST: Final = 3
"""Number of best hits that come first, regardless of their length."""
_RANK_OFFSET: Final = 5
_TOKEN_OFFSET: Final = 5
"""After the best hits, those with the highest value per token come first. The value of a hit falls with its rank and,
more slowly, with its score: hits of similar scores differ less than their ranks say.

The token offset is the line with the day that a hit may need.
"""
_SCORE_POWER: Final = 0.75
_LEAST_SCORE: Final = 0.001
"""Scores count as at least this much, so that every hit has a value."""
_NOTHING: Final[frozenset[int]] = frozenset()
_make_item: Final = fast_constructor(Item)


class RenderedMessage(NamedTuple):
    """A message as a search result shows it."""

    key: str
    text: str
    tokens: int
    shows: frozenset[int]
    day: str


MessageKey: TypeAlias = "tuple[bytes, int, bool, tzinfo | None]"
"""Hash and sequence number of a message, whether it was said today, and the time zone."""


class RenderCache:
    """A cache of rendered messages and summaries with their tokens, which repeat from turn to turn."""

    def __init__(self, most: int) -> None:
        """`most` is the minimum number of each that stays cached."""
        self.messages: TwoGenerationCache[MessageKey, RenderedMessage] = TwoGenerationCache(most)
        self.summaries: TwoGenerationCache[str, tuple[str, int]] = TwoGenerationCache(most)
        """By level and text."""


@dataclass(frozen=True, slots=True)
class Offers:
    """Makes items of the data that was read."""

    counter: TokenCounter
    cache: RenderCache
    now: datetime
    """When the question is asked, in the person's time zone."""
    days: dict[date, str] = field(default_factory=dict)
    """The written form of each day."""

    @property
    def zone(self) -> tzinfo | None:
        """The person's time zone."""
        return self.now.tzinfo

    def system(self, text: str | None) -> list[Item]:
        """Offer the system prompt, as the operator wrote it."""
        return [] if not text else [self._item("system", "system prompt", text)]

    def rules(self, text: str) -> list[Item]:
        """Offer the rules of the recipe."""
        return [] if not text else [self._item("rules", "rules", text)]

    def date(self) -> list[Item]:
        """Offer the current date, weekday, time and time zone."""
        zone = getattr(self.zone, "key", None) or str(self.zone)
        return [self._item("date", "date", load_prompt("chat").section("date", now=moment(self.now), zone=zone))]

    def persona(self, persona: str | None) -> list[Item]:
        """Offer the bot's character."""
        if not persona:
            return []
        return [self._item("persona", "persona", load_prompt("chat").section("persona", persona=Fenced(persona)))]

    def instructions(self, requests: Sequence[MemoryRecord]) -> list[Item]:
        """Offer the person's standing requests: the newest first, shown in the order of time."""
        return [
            self._item(
                "instructions",
                f"memory {memory.id}",
                quote(one_line(memory.text)),
                place=memory.id,
                at=memory.created_at,
                expires=memory.expires_at,
            )
            for memory in sorted(requests, key=lambda memory: -memory.id)
        ]

    def portrait(self, text: str | None, memories: Mapping[str, int]) -> list[Item]:
        """Offer the portrait line by line: where not all of it fits, the first lines do.

        `memories` has the ids of memories by their texts. A line that repeats a memory is the same item.
        """
        lines = [line for line in (text or "").splitlines() if line.strip()]
        return [
            self._item(
                "portrait",
                f"memory {memories[line]}" if line in memories else f"portrait, line {number}",
                quote(line),
                place=number,
            )
            for number, line in enumerate(lines, 1)
        ]

    def habits(self, text: str) -> list[Item]:
        """Offer the habits of the user."""
        return [] if not text else [self._item("habits", "habits", quote(text))]

    def memories(
        self, found: Iterable[tuple[MemoryRecord, float | None]], events: Sequence[MemoryRecord] = ()
    ) -> list[Item]:
        """Offer memories, each with its relevance to the question; None: its importance counts.

        `events` come first, in their order, each with its day.
        """
        there = {memory.id for memory in events}
        others = [(memory, relevance) for memory, relevance in found if memory.id not in there]
        return [
            self._item(
                "memories",
                f"memory {memory.id}",
                f"[{self._label(memory, memory.id in there)}] {quote(one_line(memory.text))}",
                place=number,
                relevance=memory.importance / _IMPORTANT if relevance is None else relevance,
                priority=memory.priority,
                tags=memory.tags,
                at=memory.created_at,
                expires=memory.expires_at,
                covers=frozenset(memory.sources),
            )
            for number, (memory, relevance) in enumerate([*((event, 1.0) for event in events), *others])
        ]

    def _label(self, memory: MemoryRecord, dated: bool) -> str:  # noqa: FBT001
        happened = memory.happened if dated else None
        return memory.category.upper() if happened is None else written_day(to_zone(happened.start, self.zone).date())

    def summaries(self, found: Sequence[Summary], covered: dict[int, frozenset[int]]) -> list[Item]:
        """Offer summaries: newest first, since the oldest are trimmed first; shown with the highest level first."""
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
        known = self.cache.summaries.get(key)
        if known is None:
            text = f'<part level="{summary.level}">{quote(summary.text)}</part>'
            known = text, self.counter.count(f"{text}\n")
            self.cache.summaries.put(key, known)
        return known

    def snippets(self, hits: Sequence[Hit], value_around: float = 1.0) -> list[Item]:
        """Offer what the search found: the best hits, then the most valuable per token. Shown in the order of time.

        `value_around` is the value of a message around a hit, as a part of the value of the hit.
        """
        best = max((hit.score for hit in hits), default=0.0)
        scores = {hit.message.seq: hit.score for hit in hits if hit.message is not None}
        ranked = [
            (rank / max(hit.score, _LEAST_SCORE) ** _SCORE_POWER, hit, hit.message)
            for rank, hit in enumerate(hits, _RANK_OFFSET)
        ]
        ranked += [(rank / value_around, hit, message) for rank, hit, _ in ranked for message in hit.around]
        ranked.sort(key=itemgetter(0))
        found: dict[int, tuple[float, Message, float]] = {}
        for rank, hit, message in ranked:
            if message is not None and message.seq not in found:
                found[message.seq] = rank, message, hit.score / best if hit.score > 0 else 0.0
        in_order = sorted([(message.at, seq) for seq, (_, message, _) in found.items()])
        places = {seq: place for place, (_, seq) in enumerate(in_order)}
        today, names = self._today(), dict[str, str]()
        offered = []
        for number, (seq, (rank, message, relevance)) in enumerate(found.items()):
            item = self._snippet(message, relevance, scores.get(seq), places[seq], today, names)
            offered.append((rank * (item.tokens + _TOKEN_OFFSET), number, item))
        return [item for _, _, item in (*offered[:_BEST], *sorted(offered[_BEST:]))]

    def _snippet(
        self,
        message: Message,
        relevance: float,
        score: float | None,
        place: int,
        today: tuple[datetime, datetime],
        names: dict[str, str],
    ) -> Item:
        of_today = today[0] <= message.at <= today[1]
        cached = message.hash, message.seq, of_today, self.now.tzinfo
        rendered = self.cache.messages.get(cached)
        if rendered is None:
            rendered = self._rendered(message, names, of_today=of_today)
            self.cache.messages.put(cached, rendered)
        key, text, tokens, shows, day = rendered
        return _make_item(
            "snippets",
            key,
            text,
            tokens,
            place,
            relevance,
            USUAL_PRIORITY,
            score,
            (),
            message.at,
            None,
            "user",
            None,
            shows,
            _NOTHING,
            False,
            day,
            (),
            "",
            None,
            (),
        )

    def _rendered(self, message: Message, names: dict[str, str], *, of_today: bool) -> RenderedMessage:
        """Render a message: with its time if it is of today, otherwise its day is shown above it."""
        at, text = to_zone(message.at, self.zone), _row(message, names)
        day, text = (TODAY, f"{at:%H:%M} {text}") if of_today else (written_day(at.date()), text)
        tokens = self.counter.count(f"{text}\n")
        return RenderedMessage(f"message {message.id}", text, tokens, frozenset((message.seq,)), day)

    def _today(self) -> tuple[datetime, datetime]:
        """Return the first and the last moment of today in the person's time zone."""
        # With the fold, the last moment is right also on days on which the last hour comes twice.
        first, last = time.min, time.max.replace(fold=1)
        today = self.now.date()
        return _in_utc(datetime.combine(today, first, self.zone)), _in_utc(datetime.combine(today, last, self.zone))

    def recent(self, messages: Sequence[Message], *, several: bool) -> list[Item]:
        """Offer the newest messages: newest first; they are shown as turns."""
        offered = []
        for place, message in reversed(list(enumerate(messages))):
            name = speaker(message.name or message.author) if several and message.role == "user" else None
            details, text = message.all_details, message.shown_text
            calls = sum(self.counter.call_tokens(call.name, call.arguments) for call in details.tool_calls)
            offered.append(
                _make_item(
                    "recent",
                    f"message {message.id}",
                    text,
                    self._turn(text, name) + calls,
                    place,
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
                    self._day(message.at),
                    details.tool_calls if message.role == "assistant" else (),
                    message.text,
                    details.tool_call_id if message.role == "tool" else None,
                    details.parts if message.role == "user" else (),
                )
            )
        return offered

    def _day(self, at: datetime) -> str:
        """Return a day in the person's time zone, such as `Sun 1 Mar 2026`."""
        day = to_zone(at, self.zone).date()
        if day not in self.days:
            self.days[day] = TODAY if day == self.now.date() else written_day(day)
        return self.days[day]

    def current(self, text: str, name: str | None, at: datetime) -> list[Item]:
        """Offer the message to answer."""
        return [Item("current", "current message", text, self._turn(text, name), name=name, at=at)]

    def _turn(self, text: str, name: str | None) -> int:
        """Return the tokens of a turn as a message of its own, with what a chat API adds around each."""
        return self.counter.count(f"{name}: {text}" if name else text) + 1 + _PER_TURN

    def _item(self, section: SectionName, key: str, text: str, **more: Any) -> Item:  # noqa: ANN401 - fields of an item
        return Item(section=section, key=key, text=text, tokens=self.counter.count(f"{text}\n"), **more)


def _row(message: Message, names: dict[str, str]) -> str:
    """Render a message in few tokens: who and what. Its day stands above it. Further lines are indented.

    So no text can pass for another message or for a day, whatever it says. `names` caches rendered names.
    """
    called = message.name or message.author
    if called not in names:
        names[called] = quote(one_line(called))
    said = quote(message.shown_text).replace("\n", FURTHER_LINE)
    return f"{names[called]}: {said}"


def _in_utc(at: datetime) -> datetime:
    """Return a moment in UTC, limited to the range of datetime."""
    try:
        return at.astimezone(UTC)
    except OverflowError:
        return at.replace(tzinfo=UTC)


def speaker(name: str) -> str | None:
    """Return a name as it is written before a turn: on one line, and shortened."""
    return one_line(name)[:_LONGEST_NAME] or None
