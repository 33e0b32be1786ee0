"""Builds contexts: reads what the recipe names, and chooses what fits. Calls no model."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import lru_cache, partial
from typing import Final, TypedDict

from aforesaid.context.assemble import Assembler, as_messages, as_text, block
from aforesaid.context.context import Context, Item
from aforesaid.context.sections import ContextReads, Conversation, Offers, People, RenderCache, Sources, speaker, within
from aforesaid.domain.chat_message import ChatMessage
from aforesaid.domain.checks import query_text, to_zone
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message, time_order
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.domain.summary import Summary
from aforesaid.models.prompts import Fenced, load_prompt, quote
from aforesaid.models.tokens import TokenCounter
from aforesaid.profiles.recipe import Recipe, SectionName, Wording
from aforesaid.recall import Recall, SearchRequest
from aforesaid.store import Store
from aforesaid.store.memories import PastAndComing
from aforesaid.store.ranking import LEAST_RELEVANCE
from aforesaid.store.searches import SearchMemories
from aforesaid.store.summaries import Summaries
from aforesaid.text.sentences import asks_for_order, topic_words
from aforesaid.text.times.find import periods

_HITS: Final = 20
"""Memories extracted from one of this many best hits count as found."""


def _of_hits(hits: Sequence[Hit]) -> list[tuple[int, float]]:
    """Return the messages of the best hits, each with the relevance that it gives to memories that rest on it."""
    places = [(hit.message.seq, 1 - place / _HITS) for place, hit in enumerate(hits[:_HITS]) if hit.message is not None]
    return [(seq, relevance) for seq, relevance in places if relevance >= LEAST_RELEVANCE]


async def events_about(
    store: Store, scope: Scope, question: str, hits: Sequence[Hit], asked: datetime, limit: int
) -> list[MemoryRecord]:
    """Return what happened and what is to come, as far as a question is about it, in the order in which it happened.

    A period that the question names ("in May") limits it, and so does what it is about ("the kitchen"): memories that
    share words with it, or that were extracted from what the search found. `hits` are that, best first.
    """
    from aforesaid.facts.timeline import timeline  # noqa: PLC0415 - brings all of the facts

    named, topic = periods(question, asked), topic_words(question)
    if topic:
        found = await store.read(SearchMemories(scope, topic, _of_hits(hits), limit, dated=True, periods=named))
        if found or not named:
            return timeline([memory for memory, _ in found])
    return timeline(await store.read(PastAndComing(scope, limit, named)))


_PER_BLOCK: Final = 4
"""Tokens of a blank line and of the message around a section."""
_SMALL_BUDGET: Final = 16_000
"""Tokens. Contexts up to this budget are assembled on the event loop: cheaper than a thread switch."""
_SHORT_SNIPPET: Final = 33
"""Tokens of a message of about twenty words with its speaker. Bounds how many hits are read for a budget."""
_FOLLOWING: Final = 2
"""Messages after a hit that are offered too: answers often follow the message that matches."""
_FOLLOWING_VALUE: Final = 0.25
"""Value of such a message, relative to its hit."""
_EXCHANGE: Final = 6
"""Messages read around the best message of a past conversation, to find the exchange that it is part of."""
_BY_WORDS: Final = "the search went by words alone, because the embedder did not answer"
_RENDERED: Final = 4_000
"""Minimum number of rendered messages and summaries in the cache."""
_OVERHEADS: Final = 4_096
"""Sections of people's contexts whose tokens without items are cached."""


class AccountContext(TypedDict):
    """The three parts of an account's context."""

    recent: list[Message]
    """The newest messages, oldest first."""
    history_summary: str | None
    """Summary of the whole history."""
    relevant_mid_term: list[Hit]
    """Hits among the messages before the recent ones, best first."""


@dataclass(frozen=True, slots=True)
class ContextRequest:
    text: str
    """The message to answer."""
    budget: int
    system: str | None = None
    persona: str | None = None
    at: datetime | None = None
    zone: tzinfo = UTC
    """The person's time zone."""
    after: int = 0
    """Only messages with a greater sequence number count as recent."""
    answers: int | None = None
    """Sequence number of the message to answer, if it is stored. Later messages are left out."""
    tools: bool = True
    """Whether tool calls are sent as such."""
    parts: bool = False
    """Whether images, sounds and files are sent as such."""

    @property
    def query(self) -> str:
        """The query: the text, or the beginning and the end of a very long one."""
        return query_text(self.text)


class Builder:
    """Builds contexts over one store."""

    def __init__(self, store: Store, recall: Recall, people: People) -> None:
        self._sources = Sources(store, recall, people)
        self._rendered: dict[str, RenderCache] = {}
        """By the name of the token counter."""

    def forget_all(self) -> None:
        """Empty all caches, after a user was erased."""
        self._rendered.clear()

    def prefetch(self, scope: Scope, text: str, at: datetime | None, recipe: Recipe) -> ContextReads:
        """Start the reads of a context that is about to be built. Close them if it is not."""
        reads = ContextReads(self._sources, scope, recipe, text, at)
        reads.start()
        return reads

    async def build(
        self,
        scope: Scope,
        request: ContextRequest,
        recipe: Recipe,
        counter: TokenCounter,
        prefetched: ContextReads | None = None,
    ) -> Context:
        """Build a context. Reads that were prefetched for the same recipe are used."""
        if prefetched is not None and prefetched.recipe == recipe:
            reads = prefetched
        else:
            reads = self.prefetch(scope, request.query, request.at, recipe)
        at = to_zone(request.at or datetime.now(UTC), request.zone)
        cache = self._rendered.get(counter.name)
        if cache is None:
            cache = self._rendered[counter.name] = RenderCache(_RENDERED)
        offers = Offers(counter, cache, at)
        reading = asyncio.ensure_future(self._conversation(scope, request, recipe, reads))
        searching = asyncio.ensure_future(self._hits(scope, request, recipe, reading, reads))
        try:
            # Render everything that does not depend on the search while it runs.
            portrait, habits, requests, important, conversation = await asyncio.gather(
                reads.portrait, reads.habits, reads.requests, reads.important, reading
            )
            person = await reads.name_of_user((*conversation.recent, *conversation.current))
            recent = conversation.recent
            several = len({message.author for message in recent if message.role == "user"} | {scope.user}) > 1
            persona = request.persona and load_prompt("chat").section("persona", persona=Fenced(request.persona))
            offered: dict[SectionName, list[Item]] = {
                "system": offers.whole("system", "system prompt", request.system),
                "rules": offers.whole("rules", "rules", recipe.rules),
                "persona": offers.whole("persona", "persona", persona),
                "summaries": offers.summaries(conversation.summaries, _covered(conversation.summaries, recent)),
                "recent": offers.recent(recent, several=several),
                "date": offers.date(),
                "current": offers.current(request.text, speaker(person) if several else None, offers.now),
            }
            hits = await searching
        finally:
            searching.cancel()
            reading.cancel()
            reads.close()
        found, events = await self._memories(scope, request, recipe, hits, at)
        described = {memory for line in portrait for memory in line.memories}
        if "portrait" not in recipe.order:
            there = {memory.id for memory, _ in found}
            found += [(memory, None) for memory in important if memory.id not in there]
        offered |= {
            "instructions": offers.instructions(requests),
            "portrait": offers.portrait(portrait, request.query, hits, request.budget),
            "habits": offers.whole("habits", "habits", quote(habits)),
            "memories": offers.memories(
                [each for each in found if each[0].id not in described][: recipe.memories], events
            ),
            "snippets": offers.snippets(hits, 1.0 if recipe.around or recipe.whole_sessions else _FOLLOWING_VALUE),
        }
        messages: list[ChatMessage] = []

        def count(items: Sequence[Item]) -> int:
            nonlocal messages
            messages = as_messages(items, person, recipe.wording, tools=request.tools, parts=request.parts)
            return counter.count_messages(messages)

        assembler = Assembler(
            recipe,
            request.budget,
            counter,
            now=at,
            overhead=partial(_overhead, counter, person, recipe.wording),
            count=count,
            day_cost=partial(_day_cost, counter),
        )
        small = request.budget <= _SMALL_BUDGET
        made = assembler.assemble(offered) if small else await asyncio.to_thread(assembler.assemble, offered)
        return Context(
            messages=messages,  # those of the last count, which decided
            written=partial(as_text, made.items, person, recipe.layout, recipe.wording),
            tokens=made.tokens,
            budget=request.budget,
            sections=made.reports,
            items=made.items,
            left_out=made.left_out,
            counter=counter.name,
            person=person,
            limited=_BY_WORDS if reads.search is not None and reads.search.by_words else None,
        )

    async def _memories(
        self, scope: Scope, request: ContextRequest, recipe: Recipe, hits: Sequence[Hit], at: datetime
    ) -> tuple[list[tuple[MemoryRecord, float | None]], list[MemoryRecord]]:
        """Return the memories that the question is about, each with its relevance; and those of a course of events."""
        if not recipe.shows_memories:
            return [], []
        store, most = self._sources.store, recipe.memories
        found = await store.read(SearchMemories(scope, request.query, _of_hits(hits), most))
        if not asks_for_order(request.query):
            return [*found], []
        return [*found], await events_about(store, scope, request.query, hits, at, most)

    async def account(self, scope: Scope, request: ContextRequest, recipe: Recipe) -> AccountContext:
        """Return the parts of an account's context, without a budget."""
        reads = ContextReads(self._sources, scope, recipe, request.query, request.at)
        reading = asyncio.ensure_future(self._conversation(scope, request, recipe, reads))
        try:
            summaries, recent, _, _ = await reading
            newest = max(summaries, key=lambda summary: summary.id, default=None)
            shown = {message.seq for message in recent}
            hits = await self._hits(scope, request, recipe, reading, reads)
            return {
                "recent": recent,
                "history_summary": None if newest is None else newest.text,
                "relevant_mid_term": [hit for hit in hits if hit.message is None or hit.message.seq not in shown],
            }
        finally:
            reading.cancel()
            reads.close()

    async def _conversation(
        self, scope: Scope, request: ContextRequest, recipe: Recipe, reads: ContextReads
    ) -> Conversation:
        """Read the summaries first, then the newest messages, and the current one if it is stored."""
        summaries = await self._summaries(scope, recipe, reads)
        if request.answers is None:
            newest = list(await reads.newest)
        else:
            newest = await reads.messages_up_to(recipe.recent + 1, request.answers)
        last = await reads.last if request.answers is None else newest[-1] if newest else None
        return Conversation(summaries, *_recent(scope, request, recipe, summaries, newest), last)

    async def _summaries(self, scope: Scope, recipe: Recipe, reads: ContextReads) -> list[Summary]:
        if "summaries" not in recipe.order:
            return []
        # Summaries of other threads are left out.
        found = await (self._sources.store.read(Summaries(scope, here=True)) if recipe.uncovered else reads.summaries)
        return [
            summary
            for summary in found
            if summary.valid
            and (not recipe.kinds or summary.kind in recipe.kinds)
            # Private messages are not shown where others can read the reply.
            and (is_direct(scope.thread) or not is_direct(summary.thread))
        ]

    async def _hits(
        self,
        scope: Scope,
        request: ContextRequest,
        recipe: Recipe,
        reading: Awaitable[Conversation],
        reads: ContextReads,
    ) -> list[Hit]:
        """Search all messages except the current one. Which ones are shown as recent is decided later."""
        if not recipe.searches:
            return []
        if recipe.window and len((await reading).recent) < recipe.recent:
            return []  # there is nothing before the recent messages
        search = SearchRequest(
            query=request.query,
            # Only a few more than can fit, since every hit is read, rendered and counted.
            limit=min(recipe.snippets, max(request.budget // _SHORT_SNIPPET, 1)) + recipe.recent,
            within=within(scope),
            at=request.at,
            kinds=("session",) if recipe.whole_sessions else ("message",),
            around=recipe.around or (_EXCHANGE if recipe.whole_sessions else _FOLLOWING if recipe.followed else 0),
            around_best=None if recipe.around or recipe.whole_sessions else recipe.followed,
            similarity=recipe.similarity or None,
            explained=False,
        )

        async def current() -> frozenset[int]:
            return frozenset(message.seq for message in (await reading).current)

        if reads.search is None:
            reads.search = self._sources.recall.begin(scope, request.query, search.within, request.at)
        found = await self._sources.recall.search(scope, search, current, reads.search)
        conversation = await reading
        if conversation.last is None:
            return []
        asked = {message.seq for message in conversation.current}
        first, last = None, time_order(conversation.last)
        if recipe.window and (older := await reads.messages(recipe.recent + recipe.window)):
            first = time_order(older[0])
        hits = [
            _until(hit, last, asked) if hit.around else hit
            for hit in found
            if (message := hit.message) is not None
            and (message.at, message.seq) <= last
            and (first is None or (message.at, message.seq) >= first)
        ]
        if recipe.whole_sessions and not recipe.around:
            hits = [_with_exchange(hit) for hit in hits]
        # At most as many as the recipe wants beside those that are among the recent messages.
        there = {message.seq for message in conversation.recent}
        limited, others = [], 0
        for hit in hits:
            is_older = hit.message is None or hit.message.seq not in there
            others += is_older
            if not is_older or others <= recipe.snippets:
                limited.append(hit)
        return limited


def _until(hit: Hit, last: tuple[datetime, int], asked: Collection[int]) -> Hit:
    """Leave out messages around a hit that came after the last one, and the message to be answered."""
    around = tuple([each for each in hit.around if time_order(each) <= last and each.seq not in asked])
    return hit if len(around) == len(hit.around) else replace(hit, around=around)


def _with_exchange(hit: Hit) -> Hit:
    """Keep of the messages around a hit those of its exchange: what the user said, and the answer."""
    if hit.message is None:
        return hit
    lines = sorted((*hit.around, hit.message), key=time_order)
    first = lines.index(hit.message)
    after = first + 1
    while first > 0 and lines[first].role != "user":
        first -= 1
    while after < len(lines) and lines[after - 1].role == lines[after].role == "user":
        after += 1  # said in several messages
    while after < len(lines) and lines[after].role != "user":
        after += 1
    return replace(hit, around=tuple(line for line in lines[first:after] if line.seq != hit.message.seq))


def _is_current(message: Message, scope: Scope, request: ContextRequest) -> bool:
    """Return whether the newest message is the one to answer, which must be shown once."""
    if request.answers is not None:
        return message.seq == request.answers
    return (message.role, message.text, message.user) == ("user", request.text, scope.user)


def _recent(
    scope: Scope, request: ContextRequest, recipe: Recipe, summaries: Sequence[Summary], newest: list[Message]
) -> tuple[list[Message], list[Message]]:
    """Return the newest messages, and separately the current one if it is stored."""
    current = [newest.pop()] if newest and _is_current(newest[-1], scope, request) else []
    covered = max((summary.last for summary in summaries), default=0) if recipe.uncovered else 0
    # A summary of this kind covers only the user's own messages.
    kept = [
        message
        for message in newest
        if message.seq > request.after and (message.seq > covered or message.user != scope.user)
    ]
    return kept[-recipe.recent :], current


def _covered(summaries: Sequence[Summary], recent: Sequence[Message]) -> dict[int, frozenset[int]]:
    """Return the messages of each summary whose messages are all among the recent ones."""
    covered = {}
    for summary in summaries:
        below = frozenset(message.seq for message in recent if message.chunk in summary.chunks)
        if summary.chunks and len(below) == summary.messages:
            covered[summary.id] = below
    return covered


@lru_cache(_OVERHEADS)
def _overhead(counter: TokenCounter, user: str, wording: Wording, section: SectionName) -> int:
    """Return the tokens of a section without items."""
    if section in {"recent", "current"}:
        return 0
    return counter.count(block(section, (), user, wording)) + _PER_BLOCK


def _day_cost(counter: TokenCounter, item: Item) -> int:
    """Return the tokens of the line with an item's day. Most lines have no year."""
    day = item.day.rpartition(" ")[0] or item.day
    return counter.count(f"[{day}]\n" if item.section == "recent" else f"{day}\n")
