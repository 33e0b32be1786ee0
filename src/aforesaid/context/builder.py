"""Reading what a context is made of, and making it. No model is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Final, TypedDict

from aforesaid.context.assemble import Assembler
from aforesaid.context.context import Context
from aforesaid.context.items import Item
from aforesaid.context.reading import Near, People, Reading, Sources, within
from aforesaid.context.render import as_messages, as_text, block
from aforesaid.context.sections import Offers, speaker
from aforesaid.domain.checks import EARLIEST
from aforesaid.domain.hit import Hit
from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.message import Message, Position
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.domain.summary import Summary
from aforesaid.domain.two_generation_cache import TwoGenerationCache
from aforesaid.models.tokens import TokenCounter
from aforesaid.profiles.recipe import Recipe, SectionName
from aforesaid.recall import Recall, SearchRequest
from aforesaid.store import Store

_PER_BLOCK: Final = 4
_SMALL_BUDGET: Final = 16_000
"""So many tokens are chosen sooner than a thread is woken up for it: they were counted before."""
_USUAL_SNIPPET: Final = 40
"""The tokens of a message of twenty words with its date and speaker."""


_WRITTEN: Final = 10_000
"""Of so many messages and summaries at least it is remembered how they are written."""

_SECTIONS_KEPT: Final = 4_096
"""Of so many sections of people's contexts it is known what they cost while they are empty."""


class AccountContext(TypedDict):
    """What the memory of an account brings to a message, in three parts."""

    recent: list[Message]
    """The newest messages, oldest first."""
    history_summary: str | None
    """What is known of the whole history."""
    relevant_mid_term: list[Hit]
    """What was found among the messages before the recent ones, best first."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody asks a context for."""

    text: str
    """The message that is to be answered."""
    budget: int
    system: str | None = None
    persona: str | None = None
    at: datetime | None = None
    after: int = 0
    """Only messages with a greater sequence number count as recent."""
    answers: int | None = None
    """The sequence number of the message that is to be answered, where it is stored already: nothing later counts."""


class Builder:
    """Makes contexts over one store."""

    def __init__(self, store: Store, recall: Recall, people: People) -> None:
        self._sources = Sources(store, recall, people)
        self._written: dict[str, TwoGenerationCache[bytes | str, tuple[str, int]]] = {}

    def forget_all(self) -> None:
        """Drop what is at hand: somebody was erased."""
        self._written.clear()

    def begin(self, scope: Scope, text: str, at: datetime | None, recipe: Recipe) -> Reading:
        """Begin to read for a context that is about to be built. Whoever does not build it closes this."""
        reading = Reading(self._sources, scope, recipe, text, at)
        reading.begin()
        return reading

    async def build(
        self, scope: Scope, wanted: Wanted, recipe: Recipe, counter: TokenCounter, begun: Reading | None = None
    ) -> Context:
        """Read what the recipe asks for, and fill the budget. What has `begun` is not read again, if it fits."""
        if begun is not None and begun.recipe == recipe:
            reading = begun
        else:
            reading = self.begin(scope, wanted.text, wanted.at, recipe)
        at = wanted.at or datetime.now(UTC)
        offers = Offers(counter, self._written.setdefault(counter.name, TwoGenerationCache(_WRITTEN)))
        nearing = asyncio.ensure_future(self._near(scope, wanted, recipe, reading))
        searching = asyncio.ensure_future(self._hits(scope, wanted, recipe, nearing, reading))
        try:
            # All that does not depend on the search is written down meanwhile.
            portrait, habits, memories, (summaries, recent, current, _) = await asyncio.gather(
                reading.portrait, reading.habits, self._memories(recipe, reading), nearing
            )
            person = _called(scope.user, (*recent, *current))
            several = len({message.author for message in recent if message.role == "user"} | {scope.user}) > 1
            offered: dict[SectionName, list[Item]] = {
                "system": offers.system(wanted.system),
                "rules": offers.rules(),
                "persona": offers.persona(wanted.persona),
                "portrait": offers.portrait(portrait),
                "habits": offers.habits(habits),
                "memories": offers.memories(memory for memory in memories if memory.text not in (portrait or "")),
                "summaries": offers.summaries(summaries, _covered(summaries, recent)),
                "recent": offers.recent(recent, several=several),
                "current": offers.current(wanted.text, speaker(person) if several else None, at),
            }
            offered["snippets"] = offers.snippets(await searching)
        finally:
            searching.cancel()
            nearing.cancel()
            reading.close()
        assembler = Assembler(
            recipe,
            wanted.budget,
            counter,
            now=at,
            overhead=partial(_overhead, counter, person),
            count=partial(_count, counter, person),
        )
        small = wanted.budget <= _SMALL_BUDGET
        made = assembler.assemble(offered) if small else await asyncio.to_thread(assembler.assemble, offered)
        return Context(
            messages=as_messages(made.items, person),
            written=partial(as_text, made.items, person, recipe.layout),
            tokens=made.tokens,
            budget=wanted.budget,
            sections=made.reports,
            items=made.items,
            left_out=made.left_out,
            counter=counter.name,
        )

    async def account(self, scope: Scope, wanted: Wanted, recipe: Recipe) -> AccountContext:
        """Return the parts of a context as they are, without a budget."""
        reading = Reading(self._sources, scope, recipe, wanted.text, wanted.at)
        nearing = asyncio.ensure_future(self._near(scope, wanted, recipe, reading))
        try:
            summaries, recent, _, _ = await nearing
            newest = max(summaries, key=lambda summary: summary.id, default=None)
            return {
                "recent": recent,
                "history_summary": None if newest is None else newest.text,
                "relevant_mid_term": await self._hits(scope, wanted, recipe, nearing, reading),
            }
        finally:
            nearing.cancel()
            reading.close()

    async def _near(self, scope: Scope, wanted: Wanted, recipe: Recipe, reading: Reading) -> Near:
        """Return what is at hand: summaries first, then the newest messages, and the current one if it is stored."""
        summaries = await self._summaries(scope, recipe, reading)
        if wanted.answers is None:
            newest = list(await reading.newest)
        else:
            newest = await reading.messages_up_to(recipe.recent + 1, wanted.answers)
        last = newest[-1].position if newest else Position(EARLIEST, 0)
        return Near(summaries, *_recent(scope, wanted, recipe, summaries, newest), last)

    async def _summaries(self, scope: Scope, recipe: Recipe, reading: Reading) -> list[Summary]:
        if "summaries" not in recipe.order:
            return []
        # What stands for a part of a thread is of no use in another.
        found = await (self._sources.store.summaries(scope, here=True) if recipe.uncovered else reading.summaries)
        return [
            summary
            for summary in found
            if (not recipe.kinds or summary.kind in recipe.kinds)
            # What was said in private does not go where others read along.
            and (is_direct(scope.thread) or not is_direct(summary.thread))
        ]

    async def _hits(
        self, scope: Scope, wanted: Wanted, recipe: Recipe, nearing: Awaitable[Near], reading: Reading
    ) -> list[Hit]:
        if "snippets" not in recipe.order or not recipe.snippets:
            return []
        if recipe.window and len((await nearing).shown) < recipe.recent:
            return []  # there is nothing before the recent messages
        asking = SearchRequest(
            query=wanted.text,
            # Not many more than can fit: each that is found is read, written down and counted.
            limit=min(recipe.snippets, max(wanted.budget // _USUAL_SNIPPET, 1)),
            within=within(scope),
            at=wanted.at,
            kinds=("session",) if recipe.whole_sessions else ("message",),
            around=recipe.around,
            similarity=recipe.similarity or None,
            explained=False,
        )

        async def beside() -> frozenset[int]:
            return (await nearing).shown

        found = await self._sources.recall.search(scope, asking, beside, reading.search)
        last = (await nearing).last
        hits = [hit for hit in found if hit.message is not None and hit.message.position <= last]
        if not recipe.window:
            return hits
        older = await reading.messages(recipe.recent + recipe.window)
        first = older[0].position if older else last
        return [hit for hit in hits if hit.message is not None and hit.message.position >= first]

    async def _memories(self, recipe: Recipe, reading: Reading) -> list[MemoryRecord]:
        if "memories" not in recipe.order or not recipe.memories:
            return []
        return (await reading.memories)[: recipe.memories]


def _called(user: str, messages: Sequence[Message]) -> str:
    """Return the name that a user last showed, or else the id: what a model is told is what people call one another."""
    names = [message.name for message in messages if message.author == user and message.name]
    return names[-1] if names else user


def _is_current(message: Message, scope: Scope, wanted: Wanted) -> bool:
    """Tell whether the newest message is the one to be answered: it was stored before, and stands there once."""
    if wanted.answers is not None:
        return message.seq == wanted.answers
    return (message.role, message.text, message.user) == ("user", wanted.text, scope.user)


def _recent(
    scope: Scope, wanted: Wanted, recipe: Recipe, summaries: Sequence[Summary], newest: list[Message]
) -> tuple[list[Message], list[Message]]:
    """Return the newest messages, and the current one apart from them if it has been stored already."""
    current = [newest.pop()] if newest and _is_current(newest[-1], scope, wanted) else []
    covered = max((summary.last for summary in summaries), default=0) if recipe.uncovered else 0
    # A summary of this kind covers the user's own messages, not what others said beside them.
    kept = [
        message
        for message in newest
        if message.seq > wanted.after and (message.seq > covered or message.user != scope.user)
    ]
    return kept[-recipe.recent :], current


def _covered(summaries: Sequence[Summary], recent: Sequence[Message]) -> dict[int, frozenset[int]]:
    """Return what each summary stands for, as far as it is among the recent messages; nothing where more lies below."""
    covered = {}
    for summary in summaries:
        below = frozenset(message.seq for message in recent if message.chunk in summary.chunks)
        if summary.chunks and len(below) == summary.messages:
            covered[summary.id] = below
    return covered


@lru_cache(_SECTIONS_KEPT)
def _overhead(counter: TokenCounter, user: str, section: SectionName) -> int:
    """Return what a section costs beside its items."""
    if section in {"recent", "current"}:
        return 0
    return counter.count(block(section, (), user)) + _PER_BLOCK


def _count(counter: TokenCounter, user: str, items: Sequence[Item]) -> int:
    return counter.count_messages(as_messages(items, user))
