"""A graph of people and subjects over time: whom memories are about in each month, and which values held how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Final, NamedTuple

from fastapi import APIRouter
from starlette.responses import Response

from aforesaid.domain.memory import DOUBTED, MemoryRecord
from aforesaid.server.languages import current, plural
from aforesaid.server.panel.view import Looking, Person, View

router = APIRouter()

_MOST_MEMORIES: Final = 5_000
_AT_ONCE: Final = 500
_MOST_ROWS: Final = 10
"""Maximum people and maximum topics in the graph, those with most memories first."""
_MOST_MONTHS: Final = 24
_LEAST_TIMES: Final = 2
"""A tag is a subject if at least this many memories have it. A value is one by itself."""
_SHOWN_STATES: Final = frozenset({"active", "superseded", "expired"})
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


class Subject(NamedTuple):
    """What memories are about: the value of a matter, such as hazelnuts (allergy), or a tag."""

    name: str
    matter: str


class Row(NamedTuple):
    """A person or a subject."""

    name: str
    matter: str
    """What a value is the value of, such as `allergy`; empty for people and tags."""
    counts: tuple[int, ...]
    """Memories in each month."""
    dots: tuple[Dot, ...]
    spans: tuple[tuple[int, int], ...]
    """The first and the last month of each stretch in which a value held."""
    address: str


class Graph(NamedTuple):
    """Months from left to right; people and subjects from top to bottom."""

    months: tuple[str, ...]
    people: tuple[Row, ...]
    subjects: tuple[Row, ...]
    memories: int


@router.get("/graph")
async def of_space(view: Looking) -> Response:
    own = view.who.user_of(None)
    # The newest active memories of a space.
    memories: list[MemoryRecord] = []
    while len(memories) < _MOST_MEMORIES:
        last = memories[-1].id if memories else None
        some = await view.memory.memories(
            space=view.space,
            user=own,
            active=None,
            before=last,
            limit=_AT_ONCE,
            actor=view.who.viewer if last is None else None,
        )
        memories += some
        if len(some) < _AT_ONCE:
            break
    memories = [memory for memory in memories if _is_shown(memory)]
    people = [memory.user for memory in memories]
    await view.look_up({*people, *(memory.about for memory in memories if memory.about)})
    return view.page("graph.html", graph=drawn(view, memories, people, None))


@router.get("/person/graph")
async def of_person(person: Person) -> Response:
    memories = [each for each in await person.memory.memories(active=None) if _is_shown(each)]
    await person.view.look_up(memory.about for memory in memories if memory.about)
    people = [memory.about for memory in memories]
    return await person.page("person/graph.html", tab="graph", graph=drawn(person.view, memories, people, person.user))


def drawn(view: View, memories: Sequence[MemoryRecord], people: Sequence[str | None], user: str | None) -> Graph:
    """Return the graph of memories. `people` names whom each of them is about; `user` is whose they all are."""
    months = _months(memories)
    columns = {month: column for column, month in enumerate(months)}

    def rows(found: Mapping[Subject, list[MemoryRecord]], *, of_people: bool) -> tuple[Row, ...]:
        # Those with most memories; of as many, those that were heard of last.
        ranked = sorted(found.items(), key=lambda each: (len(each[1]), max(map(_month, each[1]))), reverse=True)
        counted = {name: Counter(columns.get(_month(memory), -1) for memory in some) for name, some in ranked}
        first = list(counted)[:_MOST_ROWS]
        most = max((count for name in first for column, count in counted[name].items() if column >= 0), default=1)
        return tuple(row(name, found[name], counted[name], most, of_people=of_people) for name in first)

    def row(
        subject: Subject, about: Sequence[MemoryRecord], counts: Counter[int], most: int, *, of_people: bool
    ) -> Row:
        shown = view.names.get(subject.name, subject.name) if of_people else subject.name
        if of_people and user is None:
            address = view.address("/person/memories", user=subject.name)
        else:
            path = "/memories" if user is None else "/person/memories"
            address = view.address(path, user=user, text=shown, state="all")
        dots = []
        for column, month in enumerate(months):
            if count := counts[column]:
                radius = round(_SMALLEST + (_LARGEST - _SMALLEST) * (count / most) ** 0.5, 2)
                of = {"name": shown, "month": _written(month)}
                label = plural("{name}, {month}: {count} memory", "{name}, {month}: {count} memories", count, **of)
                dots.append(Dot(column, count, radius, label, address))
        spans = {_span(memory, columns) for memory in about if memory.value and months}
        numbers = tuple(counts[column] for column in range(len(months)))
        return Row(shown, subject.matter, numbers, tuple(dots), tuple(sorted(spans)), address)

    of_whom: dict[Subject, list[MemoryRecord]] = {}
    of_what: dict[Subject, list[MemoryRecord]] = {}
    spelled: dict[tuple[str, str], Subject] = {}
    for memory, name in zip(memories, people, strict=True):
        if name:
            of_whom.setdefault(Subject(name, ""), []).append(memory)
        for subject in _subjects(memory):
            same = spelled.setdefault((subject.name.casefold(), subject.matter), subject)
            of_what.setdefault(same, []).append(memory)
    worth = {each: found for each, found in of_what.items() if each.matter or len(found) >= _LEAST_TIMES}
    written = tuple(_written(month) for month in months)
    return Graph(written, rows(of_whom, of_people=True), rows(worth, of_people=False), len(memories))


def _is_shown(memory: MemoryRecord) -> bool:
    """Return whether a memory is or was believed."""
    return memory.state in _SHOWN_STATES and memory.reason != DOUBTED


def _subjects(memory: MemoryRecord) -> Iterator[Subject]:
    if memory.matter and memory.value:
        yield Subject(memory.value, memory.matter)
    for tag in memory.tags:
        yield Subject(tag, "")


def _span(memory: MemoryRecord, columns: Mapping[date, int]) -> tuple[int, int]:
    """Return the first and the last column in which a value held. What holds still reaches the end."""
    last = len(columns) - 1
    end = last if memory.valid_to is None else columns.get(_first_of(memory.valid_to), last)
    return columns.get(_month(memory), 0), end


def _month(memory: MemoryRecord) -> date:
    happened = memory.happened
    at: datetime = memory.said_at if happened is None else happened.start
    return _first_of(at)


def _first_of(at: datetime) -> date:
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
