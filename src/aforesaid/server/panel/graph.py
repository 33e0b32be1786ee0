"""A graph of people and topics over time: what memories are about in each month."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import Final, NamedTuple

from fastapi import APIRouter
from starlette.responses import Response

from aforesaid.domain.memory import MemoryRecord
from aforesaid.server.languages import current, plural
from aforesaid.server.panel.view import Looking, Person, View
from aforesaid.text.languages import guess_language, stop_words, vocabulary
from aforesaid.text.words import words_of

router = APIRouter()

_MOST_MEMORIES: Final = 5_000
_AT_ONCE: Final = 500
_MOST_ROWS: Final = 10
"""Maximum people and maximum topics in the graph, those with most memories first."""
_MOST_MONTHS: Final = 24
_LEAST_TIMES: Final = 2
"""A word is a topic if at least this many memories have it."""
_SHORTEST: Final = 3
_LARGEST: Final = 11.0
_SMALLEST: Final = 3.5
"""Radii of circles, in units of the drawing."""


class Dot(NamedTuple):
    """The memories of one row in one month."""

    column: int
    memories: int
    radius: float
    label: str
    """What a screen reader says, and what is shown beside the pointer."""
    address: str


class Row(NamedTuple):
    """A person or a topic."""

    name: str
    counts: tuple[int, ...]
    """Memories in each month."""
    dots: tuple[Dot, ...]
    address: str


class Graph(NamedTuple):
    """Months from left to right; people and topics from top to bottom."""

    months: tuple[str, ...]
    people: tuple[Row, ...]
    topics: tuple[Row, ...]
    memories: int


@router.get("/graph")
async def of_space(view: Looking) -> Response:
    own = view.who.user_of(None)
    # The newest active memories of a space.
    memories: list[MemoryRecord] = []
    while len(memories) < _MOST_MEMORIES:
        last = memories[-1].id if memories else None
        some = await view.memory.memories(
            space=view.space, user=own, before=last, limit=_AT_ONCE, actor=view.who.viewer if last is None else None
        )
        memories += some
        if len(some) < _AT_ONCE:
            break
    people = [memory.user for memory in memories]
    await view.look_up({*people, *(memory.about for memory in memories if memory.about)})
    return view.page("graph.html", graph=drawn(view, memories, people, None))


@router.get("/person/graph")
async def of_person(person: Person) -> Response:
    memories = await person.memory.memories()
    await person.view.look_up(memory.about for memory in memories if memory.about)
    people = [memory.about for memory in memories]
    return await person.page("person/graph.html", tab="graph", graph=drawn(person.view, memories, people, person.user))


def drawn(view: View, memories: Sequence[MemoryRecord], people: Sequence[str | None], user: str | None) -> Graph:
    """Return the graph of memories. `people` names whom each of them is about; `user` is whose they all are."""
    months = _months(memories)
    columns = {month: column for column, month in enumerate(months)}
    by_person, by_topic = Counter[str](filter(None, people)), Counter[str]()
    topics = [_topics(memory, view) for memory in memories]
    for found in topics:
        by_topic.update(found)

    def rows(names: Iterable[str], has: Sequence[frozenset[str]], *, of_people: bool) -> tuple[Row, ...]:
        counts = {name: [0] * len(months) for name in names}
        for memory, found in zip(memories, has, strict=True):
            if _month(memory) in columns:
                for name in found & counts.keys():
                    counts[name][columns[_month(memory)]] += 1
        most = max((max(each, default=0) for each in counts.values()), default=0)
        return tuple(row(name, each, most, of_people=of_people) for name, each in counts.items())

    def row(name: str, counts: Sequence[int], most: int, *, of_people: bool) -> Row:
        shown = view.names.get(name, name) if of_people else name
        if of_people and user is None:
            address = view.address("/person/memories", user=name)
        else:
            path = "/memories" if user is None else "/person/memories"
            address = view.address(path, user=user, text=shown, state="all")
        dots = []
        for column, count in enumerate(counts):
            if count:
                radius = round(_SMALLEST + (_LARGEST - _SMALLEST) * (count / most) ** 0.5, 2)
                of = {"name": shown, "month": _written(months[column])}
                label = plural("{name}, {month}: {count} memory", "{name}, {month}: {count} memories", count, **of)
                dots.append(Dot(column, count, radius, label, address))
        return Row(shown, tuple(counts), tuple(dots), address)

    about = [frozenset([name] if name else []) for name in people]
    common = [name for name, times in by_topic.most_common(_MOST_ROWS) if times >= _LEAST_TIMES]
    people_rows = rows([name for name, _ in by_person.most_common(_MOST_ROWS)], about, of_people=True)
    topic_rows = rows(common, topics, of_people=False)
    return Graph(tuple(_written(month) for month in months), people_rows, topic_rows, len(memories))


def _topics(memory: MemoryRecord, view: View) -> frozenset[str]:
    """Return the words of a memory that say what it is about: no names, no numbers, no function words."""
    language = memory.language or guess_language(memory.text)
    dull = stop_words(language) | vocabulary(language).dull
    names = {word for user in (memory.user, memory.about or "") for word in words_of(view.names.get(user, user))}
    names |= set(words_of(memory.user)) | set(words_of(memory.about or ""))
    words = {word for word in words_of(memory.text) if len(word) >= _SHORTEST and word.isalpha()}
    return frozenset({*memory.tags, *words} - dull - names)


def _month(memory: MemoryRecord) -> date:
    happened = memory.happened
    at: datetime = memory.said_at if happened is None else happened.start
    return at.astimezone(UTC).date().replace(day=1)


def _months(memories: Iterable[MemoryRecord]) -> list[date]:
    """Return all months between the first and the last memory; of a long time, the last ones."""
    found = sorted({_month(memory) for memory in memories})
    if not found:
        return []
    months = [found[-1]]
    while months[-1] > found[0] and len(months) < _MOST_MONTHS:
        last = months[-1]
        months.append(date(last.year - 1, 12, 1) if last.month == 1 else date(last.year, last.month - 1, 1))
    return months[::-1]


def _written(month: date) -> str:
    return f"{current().months[month.month - 1]} {month.year}"
