"""The sections of a context, and what is read from the store for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from aforesaid.background import begin
from aforesaid.context.assemble import FURTHER_LINE, TODAY
from aforesaid.context.context import USUAL_PRIORITY, Item
from aforesaid.domain.caches import TwoGenerationCache, fast_constructor
from aforesaid.domain.checks import Within, to_zone
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import MOST_DESCRIBING, MemoryRecord
from aforesaid.domain.message import Message, Position
from aforesaid.domain.scope import Scope, is_chat, is_direct
from aforesaid.domain.summary import Summary
from aforesaid.models.prompts import load_prompt, moment, one_line, quote, written_day
from aforesaid.models.tokens import TokenCounter
from aforesaid.profiles.recipe import Recipe, SectionName
from aforesaid.recall import Begun, Recall
from aforesaid.store import Store
from aforesaid.store.memories import ImportantMemories, StandingRequests
from aforesaid.store.messages import Messages, MessagesByNumber
from aforesaid.store.people import DisplayNames
from aforesaid.store.summaries import Summaries
from aforesaid.text.languages import query_terms

if TYPE_CHECKING:
    from aforesaid.facts.describing import Line

_IMPORTANT: Final = 10
_PER_TURN: Final = 4
_LONGEST_NAME: Final = 64
_REQUESTS: Final = 100
"""Standing requests that are read. Far fewer fit."""
_BEST: Final = 3
"""Number of best hits that come first, regardless of their length."""
_RANK_OFFSET: Final = 5
_TOKEN_OFFSET: Final = 5
"""After the best hits, those with the highest value per token come first. The value of a hit falls with its rank and,
more slowly, with its score: hits of similar scores differ less than their ranks say.

The token offset is the line with the day that a hit may need.
"""
_TOUCHING: Final = 3
"""Best hits whose messages tell what a question touches."""
_SCORE_POWER: Final = 0.75
_LEAST_SCORE: Final = 0.001
"""Scores count as at least this much, so that every hit has a value."""
_NOTHING: Final[frozenset[int]] = frozenset()
_make_item: Final = fast_constructor(Item)


_OLD: Final = timedelta(days=30)
"""From which age on a quote says when it was said."""


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
        return self.now.tzinfo

    def whole(self, section: SectionName, key: str, text: str | None) -> list[Item]:
        """Offer a text as the only item of a section, as it is written."""
        return [] if not text else [self._item(section, key, text)]

    def date(self) -> list[Item]:
        """Offer the current date, weekday, time and time zone."""
        zone = getattr(self.zone, "key", None) or str(self.zone)
        return [self._item("date", "date", load_prompt("chat").section("date", now=moment(self.now), zone=zone))]

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

    def portrait(self, lines: Sequence[Line], question: str, hits: Sequence[Hit], budget: int) -> list[Item]:
        """Offer the portrait line by line: first what the question touches, then what always matters.

        Lines are shown in their order, and never in part. Those beyond a budget are not looked at.
        """
        asked, best = query_terms(question), {hit.message.seq for hit in hits[:_TOUCHING] if hit.message is not None}

        def by_value(numbered: tuple[int, Line]) -> tuple[bool, int]:
            line = numbered[1]
            touched = not asked.isdisjoint(line.terms) or not best.isdisjoint(line.sources)
            return not touched, -line.weight

        offered: list[Item] = []
        for number, line in sorted(enumerate(lines, 1), key=by_value):
            one = next(iter(line.memories)) if len(line.memories) == 1 else None
            key = f"portrait, line {number}" if one is None else f"memory {one}"
            item = self._item("portrait", key, quote(line.text), place=number)
            offered.append(item)
            budget -= item.tokens
            if budget < 0:
                break
        return offered

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
        if happened is not None:
            return written_day(to_zone(happened.start, self.zone).date())
        # What somebody said long ago need not be so today: a quote says when.
        is_old_quote = memory.matter is None and memory.trust == "said" and self.now - memory.seen_at > _OLD
        day = f", said on {written_day(to_zone(memory.seen_at, self.zone).date())}" if is_old_quote else ""
        return f"{memory.category.upper()}{day}"

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
        # With the fold, the last moment of today is right also on days on which the last hour comes twice.
        day, zone, names = self.now.date(), self.zone, dict[str, str]()
        today = tuple(_in_utc(datetime.combine(day, at, zone)) for at in (time.min, time.max.replace(fold=1)))
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
        today: tuple[datetime, ...],
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


T = TypeVar("T")


class People(Protocol):
    """Knowledge about people that is available without a model."""

    async def portrait(
        self, scope: Scope, memories: Awaitable[list[MemoryRecord]], summaries: Awaitable[list[Summary]]
    ) -> Sequence[Line]:
        """Return the portrait of a user, in lines.

        The memories that describe the user and the active summaries are passed in: the context reads them anyway.
        """

    async def habits(self, scope: Scope) -> str:
        """Return how a user likes to talk."""


class Conversation(NamedTuple):
    """The parts of a context that need no search."""

    summaries: list[Summary]
    recent: list[Message]
    current: list[Message]
    """The message to answer, if it is stored."""
    last: Message | None
    """Sequence number of the newest message at the time of reading. Later ones are left out."""


@dataclass(frozen=True, slots=True)
class Sources:
    store: Store
    recall: Recall
    people: People


class ContextReads:
    """The reads of one context. Each starts when it is first asked for, or with `start`, and is shared by all."""

    def __init__(self, sources: Sources, scope: Scope, recipe: Recipe, text: str, at: datetime | None) -> None:
        self.recipe = recipe
        self._sources = sources
        self._scope = scope
        self._text = text
        self._at = at
        self._started: list[asyncio.Future[Any]] = []
        self.search: Begun | None = None
        """The search for snippets, if it was started."""

    def start(self) -> None:
        """Start all reads at once: the search first, since it takes longest.

        With a window, nothing starts here: history, recent messages and the search are read one after the other.
        """
        if self.recipe.window:
            return
        if self.recipe.searches:
            self.search = self._sources.recall.begin(self._scope, self._text, within(self._scope), self._at)
        if "portrait" in self.recipe.order:
            _ = self.summaries
        _ = self.newest, self.requests, self.important, self.portrait, self.habits

    async def messages(self, limit: int, before: int | Position | None = None) -> list[Message]:
        """Return the newest messages of the conversation before a position, by when they were said, oldest first."""
        return await self._sources.store.read(
            Messages(self._scope, within=conversation_within(self._scope), limit=limit, before=before)
        )

    async def messages_up_to(self, limit: int, seq: int) -> list[Message]:
        """Return a message of the conversation and those before it, oldest first."""
        found = await self._sources.store.read(MessagesByNumber(self._scope, [seq], within=within(self._scope)))
        after = Position(found[0].position.at, seq + 1) if found else seq + 1
        return await self.messages(limit, before=after)

    async def name_of_user(self, messages: Sequence[Message]) -> str:
        """Return the last display name of the user, or else the id. `messages` are those that the context shows."""
        user = self._scope.user
        own = [message.name for message in messages if message.author == user]
        if own:
            return next(filter(None, reversed(own)), user)
        # Nothing of theirs is shown, as in a new thread: they may have a name all the same.
        names = await self._sources.store.read(DisplayNames(self._scope.space, users=(user,)))
        return names.get(user, user)

    @cached_property
    def newest(self) -> asyncio.Future[list[Message]]:
        """The newest messages, one more than the recipe shows, oldest first."""
        return self._start(self.messages(self.recipe.recent + 1))

    @cached_property
    def last(self) -> asyncio.Future[Message | None]:
        """The newest message that a search may find."""
        return self._start(self._last())

    @cached_property
    def portrait(self) -> asyncio.Future[Sequence[Line]]:
        return self._start(self._portrait())

    @cached_property
    def habits(self) -> asyncio.Future[str]:
        """How the user likes to talk."""
        return self._start(self._habits())

    @cached_property
    def requests(self) -> asyncio.Future[list[MemoryRecord]]:
        """The user's newest standing requests."""
        return self._start(self._sources.store.read(StandingRequests(self._scope, _REQUESTS)))

    @cached_property
    def important(self) -> asyncio.Future[list[MemoryRecord]]:
        """The most important memories: those of the portrait, or else those that are shown beside what was found."""
        return self._start(self._important())

    @cached_property
    def summaries(self) -> asyncio.Future[list[Summary]]:
        """All active summaries of the user."""
        return self._start(self._sources.store.read(Summaries(self._scope)))

    def close(self) -> None:
        """Cancel reads that nobody waits for."""
        for each in self._started:
            each.cancel()
        if self.search is not None:
            self.search.cancel()

    def _start(self, read: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        started = begin(read)
        self._started.append(started)
        return started

    async def _last(self) -> Message | None:
        whole = within(self._scope)
        if conversation_within(self._scope) == whole:
            newest = await self.newest
        else:
            newest = await self._sources.store.read(Messages(self._scope, within=whole, limit=1))
        return newest[-1] if newest else None

    async def _portrait(self) -> Sequence[Line]:
        if "portrait" not in self.recipe.order:
            return ()
        return await self._sources.people.portrait(self._scope, self.important, self.summaries)

    async def _important(self) -> list[MemoryRecord]:
        if "portrait" in self.recipe.order:
            return await self._sources.store.read(ImportantMemories(self._scope, MOST_DESCRIBING, describing=True))
        if not self.recipe.shows_memories:
            return []
        return await self._sources.store.read(ImportantMemories(self._scope, self.recipe.memories))

    async def _habits(self) -> str:
        return await self._sources.people.habits(self._scope) if "habits" in self.recipe.order else ""


def within(scope: Scope) -> Within:
    """Return where a search looks: in all messages of a user, or in all messages of a shared thread."""
    return "user" if is_direct(scope.thread) else "thread"


def conversation_within(scope: Scope) -> Within:
    """Return what the messages shown as turns are from: of a person's several chats, only the one that goes on.

    What was said in the others is found by the search, and shown as such.
    """
    return "thread" if is_chat(scope.thread) else within(scope)
