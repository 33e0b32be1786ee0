"""Memories: all of them, with filters; created, edited, deactivated, restored, approved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple, cast

from fastapi import APIRouter, Depends, Form
from starlette.responses import Response

from aforesaid.domain.checks import Category, CategoryOrKind, to_zone
from aforesaid.domain.memory import CATEGORIES, KINDS, STATES, USUAL_IMPORTANCE, MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.errors import InvalidInput, NotFound, SourcesChanged, WrongState
from aforesaid.memory import UserMemory
from aforesaid.server.authentication import App
from aforesaid.server.languages import N_, plural, translate
from aforesaid.server.panel.view import (
    Looking,
    Person,
    View,
    comma_separated,
    shorten,
    typed_text,
    unknown_value,
    whole_number,
)
from aforesaid.store.messages import MessagesByNumber

BANDS: Final = {name: (least, most) for name, least, most in (
    ("low", 1, 3), ("medium", 4, 6), ("high", 7, 8), ("critical", 9, 10),
)}  # fmt: skip
GROUPINGS: Final[Mapping[str, Sequence[str]]] = {"kind": KINDS, "category": CATEGORIES}
"""What a list can be grouped by, and its groups in the order of the page."""
CALLED: Final = tuple(dict.fromkeys((*KINDS, *CATEGORIES)))
"""What a memory that is written by hand can be: kinds first, then the categories that are no kind."""
_TITLES: Final[Mapping[str, str]] = {
    "fact": N_("Facts"),
    "preference": N_("Preferences"),
    "event": N_("Events"),
    "schedule": N_("Appointments"),
    "task": N_("Tasks"),
    "reminder": N_("Reminders"),
    "relationship": N_("Relationships"),
    "instruction": N_("Standing requests"),
    "other": N_("Other things"),
}


@dataclass(frozen=True, slots=True)
class Filters:
    """What is looked for. An empty one is no filter."""

    kind: str
    category: str
    state: str
    importance: str
    text: str
    by: str
    """What the list is grouped by: `kind` or `category`."""

    @property
    def chosen(self) -> dict[str, str | None]:
        """Those that differ from the default, for addresses."""
        return {
            "kind": self.kind,
            "category": self.category,
            "state": None if self.state == "active" else self.state,
            "importance": self.importance,
            "text": self.text,
        }

    @property
    def any(self) -> bool:
        return any(self.chosen.values())

    @property
    def arguments(self) -> dict[str, Any]:
        """Those that a list of memories takes."""
        state = None if self.state == "all" else self.state
        return {"category": self.category or None, "kind": self.kind or None, "state": state, "active": None}

    def fits(self, memory: MemoryRecord) -> bool:
        least, most = BANDS.get(self.importance, (1, 10))
        return least <= memory.importance <= most and self.text.casefold() in memory.text.casefold()


class Group(NamedTuple):
    name: str
    title: str
    memories: list[MemoryRecord]


def grouped(memories: Iterable[MemoryRecord], by: str) -> list[Group]:
    """Return memories by kind or category, in the order of the page; groups without any are left out."""
    groups = {name: Group(name, translate(_TITLES[name]), []) for name in GROUPINGS[by]}
    for memory in memories:
        groups[memory.kind if by == "kind" else memory.category].memories.append(memory)
    return [group for group in groups.values() if group.memories]


def _filters(
    kind: str = "", category: str = "", state: str = "active", importance: str = "", text: str = "", by: str = "kind"
) -> Filters:
    for value, known, what in (
        (kind, ("", *KINDS), "kind"),
        (category, ("", *CATEGORIES), "category"),
        (state, ("all", *STATES), "state"),
        (importance, ("", *BANDS), "importance"),
        (by, tuple(GROUPINGS), "by"),
    ):
        if value not in known:
            raise InvalidInput(unknown_value(value, known), what)
    return Filters(kind, category, state, importance, text.strip(), by)


Filtered = Annotated[Filters, Depends(_filters)]


router = APIRouter()

_PAGE: Final = 50
_AT_ONCE: Final = 500
_MOST_LOOKED_THROUGH: Final = 20_000
_SOURCES: Final = 5
_SHOWN_CHARACTERS: Final = 60


@router.get("/memories")
async def everybody(view: Looking, filters: Filtered, user: str = "", before: int | None = None) -> Response:
    whose, actor = view.who.user_of(await view.find(user) or None), view.who.viewer
    found: list[MemoryRecord] = []
    further, looked, last = True, 0, before
    while further and len(found) <= _PAGE and looked < _MOST_LOOKED_THROUGH:
        size = _AT_ONCE if filters.importance else _PAGE + 1
        words = filters.text or None
        some = await view.memory.memories(
            **filters.arguments, space=view.space, user=whose, containing=words, before=last, limit=size, actor=actor
        )
        found += [memory for memory in some if filters.fits(memory)]
        further = len(some) == size or len(found) > _PAGE
        if len(some) < size:
            break
        looked, last = looked + len(some), some[-1].id
    found = found[:_PAGE]
    await view.look_up(memory.speaker for memory in found)
    await view.look_up_zones(memory.user for memory in found if memory.event is not None)
    waiting = await view.memory.memories(space=view.space, user=whose, active=None, state="quarantined", limit=_PAGE)
    return view.page(
        "memories.html",
        memories=found,
        filters=filters,
        user=whose or "",
        further=further,
        people=await view.offered(),
        waiting=len(waiting),
    )


@router.get("/person/memories")
async def of_person(person: Person, filters: Filtered) -> Response:
    found = await person.memory.memories(**filters.arguments)
    await person.view.look_up(memory.speaker for memory in found)
    await person.view.look_up_zones([person.user])
    return await person.page(
        "person/memories.html",
        tab="memories",
        groups=grouped((memory for memory in found if filters.fits(memory)), filters.by),
        filters=filters,
    )


@router.post("/memories/add")
async def add(
    view: Looking,
    _: App,
    user: Annotated[str, Form()],
    text: Annotated[str, Form()],
    category: Annotated[str, Form()] = "fact",
    importance: Annotated[str, Form()] = str(USUAL_IMPORTANCE),
    tags: Annotated[str, Form()] = "",
    when: Annotated[str, Form()] = "",
) -> Response:
    person = view.person(await view.find(user))
    memory = await person.note(
        cast("CategoryOrKind", category),
        typed_text(text).strip(),
        importance=whole_number(importance, translate("the importance"), "importance"),
        tags=comma_separated(tags),
        when=when.strip() or None,
    )
    await view.look_up_zones([memory.user])
    back = view.address("/person/memories", user=person.scope.user)
    return view.done(translate("Remembered."), back, "part/memory.html", memory=memory, new=True)


@dataclass(frozen=True, slots=True)
class Choice:
    """One memory that somebody may change, and whose it is."""

    view: View
    person: UserMemory

    def done(self, what: str, memory: MemoryRecord) -> Response:
        """Answer to a change: with the memory as it is now, and with a bar to undo it."""
        gone = memory.state in {"deactivated", "expired"}
        return self.view.done(
            f"{what}: {shorten(memory.text, _SHOWN_CHARACTERS)}",
            self.view.address("/person/memories", user=memory.user),
            "part/deleted.html" if gone else "part/memory.html",
            undo=(memory,),
            undo_in_part=gone,
            memory=memory,
        )


_MOST: Final = 500
"""Maximum memories of one request."""
Act = Callable[[UserMemory, int], Awaitable[MemoryRecord]]

_ACTS: Final[Mapping[str, Act]] = {
    "approve": lambda person, number: person.approve(number),
    "reject": lambda person, number: person.reject(number),
    "end": lambda person, number: person.end_memory(number),
    "delete": lambda person, number: person.deactivate(number),
    "restore": lambda person, number: person.reactivate(number),
}


# Before the routes of one memory, which would take these names for its number.
@router.post("/memories/bulk")
async def change_many(
    view: Looking,
    _: App,
    memory: Annotated[list[str] | None, Form()] = None,
    do: Annotated[str, Form()] = "",
    category: Annotated[str, Form()] = "",
    importance: Annotated[str, Form()] = "",
) -> Response:
    """Do the same with all chosen memories. Those in another state are left as they are, and counted."""
    numbers = [whole_number(each, translate("the memory"), "memory") for each in _some(memory)]
    act = _ACTS.get(do)
    if do == "edit":
        if category and category not in CATEGORIES:
            raise InvalidInput(translate("choose one of the categories"), "category")
        weight = whole_number(importance, translate("the importance"), "importance") if importance.strip() else None
        if not category and weight is None:
            raise InvalidInput(translate("choose a category or an importance"), "category")
        kept = category or None
        act = lambda person, number: person.edit_memory(number, category=kept, importance=weight)  # noqa: E731
    if act is None:
        raise InvalidInput(translate("choose what to do with the memories"), "do")
    changed = []
    for number in numbers:
        found, person = await one_memory(view, number)
        try:
            changed.append(await act(person, found.id))
        except WrongState:
            continue
    chosen = len(numbers)
    said = plural("{count} memory changed.", "{count} memories changed.", len(changed))
    if chosen > len(changed):
        said += " " + plural(
            "{count} was in another state and stays as it is.",
            "{count} were in another state and stay as they are.",
            chosen - len(changed),
        )
    return view.done(said, view.address("/memories"), undo=changed)


@router.post("/memories/undo")
async def undo_many(view: Looking, _: App, memory: Annotated[list[str] | None, Form()] = None) -> Response:
    """Undo the last change of memories that nobody changed since. Each is given as `id:revision`."""
    undone, others = 0, 0
    for each in _some(memory):
        number, _colon, revision = each.partition(":")
        try:
            found, person = await one_memory(view, whole_number(number, translate("the memory"), "memory"))
            await person.undo(found.id, revision=whole_number(revision, translate("the revision"), "memory"))
            undone += 1
        except (SourcesChanged, NotFound):
            others += 1
    said = plural("{count} change undone.", "{count} changes undone.", undone)
    if others:
        said += " " + plural(
            "{count} memory was changed since then and stays as it is.",
            "{count} memories were changed since then and stay as they are.",
            others,
        )
    return view.done(said, view.address("/memories"))


def _some(given: list[str] | None) -> list[str]:
    if not given:
        raise InvalidInput(translate("choose at least one memory"), "memory")
    if len(given) > _MOST:
        raise InvalidInput(translate("choose at most {most} memories", most=_MOST), "memory")
    return list(dict.fromkeys(given))


async def _choice(view: Looking, _: App, number: int) -> Choice:
    return Choice(view, (await one_memory(view, number))[1])


Chosen = Annotated[Choice, Depends(_choice)]


def _add_route(name: str, said: str, act: Act) -> None:
    async def change(chosen: Chosen, number: int) -> Response:
        return chosen.done(translate(said), await act(chosen.person, number))

    router.add_api_route(f"/memories/{{number}}/{name}", change, methods=["POST"])


for _name, _said in (
    ("delete", N_("Deleted")),
    ("end", N_("No longer true")),
    ("restore", N_("Restored")),
    ("approve", N_("Approved")),
    ("reject", N_("Rejected")),
):
    _add_route(_name, _said, _ACTS[_name])
_add_route("undo", N_("Undone"), lambda person, number: person.undo(number))


@router.post("/memories/{number}/delivered")
async def delivered(chosen: Chosen, number: int) -> Response:
    """Take a reminder off the list: it was delivered, or is done."""
    await chosen.person.delivered(number)
    memory, _ = await one_memory(chosen.view, number)
    return chosen.done(translate("Done"), memory)


@router.get("/memories/{number}")
async def one(view: Looking, number: int, *, edit: bool = False) -> Response:
    memory, person = await one_memory(view, number)
    when, zone = await _when(person, memory), view.zones[memory.user]
    if view.partly:
        return view.page("part/edit_memory.html" if edit else "part/memory.html", memory=memory, when=when, zone=zone)
    history = await person.memory_history(number)
    await view.look_up(version.actor for version in history)
    sources = await _sources(view, person, memory)
    return view.page("memory.html", memory=memory, edit=edit, history=history, sources=sources, when=when, zone=zone)


@router.post("/memories/{number}")
async def correct(
    chosen: Chosen,
    number: int,
    text: Annotated[str, Form()],
    category: Annotated[str, Form()],
    importance: Annotated[str, Form()],
    tags: Annotated[str, Form()] = "",
    when: Annotated[str, Form()] = "",
    revision: Annotated[str, Form()] = "",
) -> Response:
    """Correct a memory. What somebody else changed since it was read is not overwritten.

    A time that was left as it is does not count: then a new text may name another one.
    """
    before, person = await one_memory(chosen.view, number)
    untouched = when.strip() in {"", await _when(person, before)}
    memory = await chosen.person.edit_memory(
        number,
        text=typed_text(text).strip(),
        category=cast("Category", category),
        importance=whole_number(importance, translate("the importance"), "importance"),
        tags=comma_separated(tags),
        when=None if untouched else when.strip(),
        revision=whole_number(revision, translate("the revision"), "revision") if revision else None,
    )
    return chosen.done(translate("Corrected"), memory)


@router.get("/memories/{number}/story")
async def story(view: Looking, number: int) -> Response:
    memory, person = await one_memory(view, number)
    history = await person.memory_history(number)
    await view.look_up(version.actor for version in history)
    return view.page("part/story.html", memory=memory, history=history, sources=await _sources(view, person, memory))


async def one_memory(view: View, number: int) -> tuple[MemoryRecord, UserMemory]:
    """Return a memory and whose it is. One of another space, or of another person, does not exist."""
    memory = await view.memory.memory(number, space=view.space, actor=view.who.viewer)
    await view.look_up([memory.user, memory.speaker])
    await view.look_up_zones([memory.user])
    return memory, view.person(memory.user)


async def _when(person: UserMemory, memory: MemoryRecord) -> str:
    """Return when a memory happens or reminds, in the person's time zone, as a form shows it."""
    at = memory.remind_at or (memory.event.start if memory.event else None)
    whole_day = memory.remind_at is None and memory.event is not None and not memory.event.timed
    form = "%Y-%m-%d" if whole_day else "%Y-%m-%d %H:%M"
    return "" if at is None else to_zone(at, await person.time_zone()).strftime(form)


async def _sources(view: View, person: UserMemory, memory: MemoryRecord) -> list[Message]:
    found = await view.memory.store.read(MessagesByNumber(person.scope, memory.sources[:_SOURCES]))
    await view.look_up(message.author for message in found)
    return found
