"""Memories: all of them, with filters; created, edited, deactivated, restored, approved."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple, cast

from fastapi import APIRouter, Depends, Form
from starlette.responses import Response

from aforesaid.domain.checks import Category, CategoryOrKind, Kind, MemoryState, to_zone
from aforesaid.domain.memory import CATEGORIES, KINDS, STATES, USUAL_IMPORTANCE, MemoryRecord
from aforesaid.domain.message import Message
from aforesaid.errors import InvalidInput, NotFound, SourcesChanged, WrongState
from aforesaid.memory import UserMemory
from aforesaid.server.auth.authentication import App
from aforesaid.server.languages import N_, plural, translate
from aforesaid.server.panel import view
from aforesaid.server.panel import view as forms
from aforesaid.server.panel.view import Looking, Person, View
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
    def known_kind(self) -> Kind | None:
        return cast("Kind", self.kind) if self.kind else None

    @property
    def known_category(self) -> Category | None:
        return cast("Category", self.category) if self.category else None

    @property
    def known_state(self) -> MemoryState | None:
        return None if self.state == "all" else cast("MemoryState", self.state)

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
            raise InvalidInput(view.unknown(value, known), what)
    return Filters(kind, category, state, importance, text.strip(), by)


Filtered = Annotated[Filters, Depends(_filters)]


router = APIRouter()

_PAGE: Final = 50
_AT_ONCE: Final = 500
_MOST_LOOKED_THROUGH: Final = 20_000
_SOURCES: Final = 5


@router.get("/memories")
async def everybody(view: Looking, filters: Filtered, user: str = "", before: int | None = None) -> Response:
    whose = view.who.user_of(await view.find(user) or None)
    found, further = await _looked_for(view, filters, whose, before)
    await view.look_up(memory.speaker for memory in found)
    await view.look_up_zones(memory.user for memory in found if memory.event is not None)
    return view.page(
        "memories.html",
        memories=found,
        filters=filters,
        user=whose or "",
        further=further,
        people=await view.offered(),
        waiting=len(await _waiting(view, whose)),
    )


@router.get("/person/memories")
async def of_person(person: Person, filters: Filtered) -> Response:
    """Show the memories of a person by kind or category, the most important of each first."""
    found = await person.memory.memories(
        filters.known_category, active=None, state=filters.known_state, kind=filters.known_kind
    )
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
        forms.text(text).strip(),
        importance=forms.whole(importance, translate("the importance"), "importance"),
        tags=forms.words(tags),
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
            f"{what}: {_short(memory)}",
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
    numbers = [forms.whole(each, translate("the memory"), "memory") for each in _some(memory)]
    act = _edit(category, importance) if do == "edit" else _ACTS.get(do)
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
            found, person = await one_memory(view, forms.whole(number, translate("the memory"), "memory"))
            await person.undo(found.id, revision=forms.whole(revision, translate("the revision"), "memory"))
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


def _edit(category: str, importance: str) -> Act:
    """Return a change of category and importance; an empty one keeps each memory's own."""
    if category and category not in CATEGORIES:
        raise InvalidInput(translate("choose one of the categories"), "category")
    weight = forms.whole(importance, translate("the importance"), "importance") if importance.strip() else None
    if not category and weight is None:
        raise InvalidInput(translate("choose a category or an importance"), "category")

    async def edit(person: UserMemory, number: int) -> MemoryRecord:
        return await person.edit_memory(number, category=category or None, importance=weight)

    return edit


async def _choice(view: Looking, _: App, number: int) -> Choice:
    return Choice(view, (await one_memory(view, number))[1])


Chosen = Annotated[Choice, Depends(_choice)]


@router.post("/memories/{number}/delete")
async def delete(chosen: Chosen, number: int) -> Response:
    """Put a memory away, with one click. It can be brought back with one more."""
    return chosen.done(translate("Deleted"), await chosen.person.deactivate(number))


@router.post("/memories/{number}/end")
async def end(chosen: Chosen, number: int) -> Response:
    return chosen.done(translate("No longer true"), await chosen.person.end_memory(number))


@router.post("/memories/{number}/undo")
async def undo(chosen: Chosen, number: int) -> Response:
    return chosen.done(translate("Undone"), await chosen.person.undo(number))


@router.post("/memories/{number}/restore")
async def restore(chosen: Chosen, number: int) -> Response:
    return chosen.done(translate("Restored"), await chosen.person.reactivate(number))


@router.post("/memories/{number}/approve")
async def approve(chosen: Chosen, number: int) -> Response:
    return chosen.done(translate("Approved"), await chosen.person.approve(number))


@router.post("/memories/{number}/reject")
async def reject(chosen: Chosen, number: int) -> Response:
    return chosen.done(translate("Rejected"), await chosen.person.reject(number))


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
        text=forms.text(text).strip(),
        category=cast("Category", category),
        importance=forms.whole(importance, translate("the importance"), "importance"),
        tags=forms.words(tags),
        when=None if untouched else when.strip(),
        revision=forms.whole(revision, translate("the revision"), "revision") if revision else None,
    )
    return chosen.done(translate("Corrected"), memory)


@router.get("/memories/{number}/story")
async def story(view: Looking, number: int) -> Response:
    """Show what a memory rests on, and what it was before."""
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
    return (
        ""
        if at is None
        else to_zone(at, await person.time_zone()).strftime("%Y-%m-%d" if whole_day else "%Y-%m-%d %H:%M")
    )


async def _looked_for(
    view: View, filters: Filters, user: str | None, before: int | None
) -> tuple[list[MemoryRecord], bool]:
    """Return a page of memories, and whether there are more."""
    found: list[MemoryRecord] = []
    looked, last = 0, before
    while len(found) <= _PAGE and looked < _MOST_LOOKED_THROUGH:
        size = _AT_ONCE if filters.importance else _PAGE + 1
        some = await view.memory.memories(
            filters.known_category,
            space=view.space,
            user=user,
            active=None,
            state=filters.known_state,
            kind=filters.known_kind,
            containing=filters.text or None,
            before=last,
            limit=size,
            actor=view.who.viewer,
        )
        found += [memory for memory in some if filters.fits(memory)]
        if len(some) < size:
            return found[:_PAGE], len(found) > _PAGE
        looked, last = looked + len(some), some[-1].id
    return found[:_PAGE], True


async def _waiting(view: View, user: str | None) -> list[MemoryRecord]:
    return await view.memory.memories(space=view.space, user=user, active=None, state="quarantined", limit=_PAGE)


async def _sources(view: View, person: UserMemory, memory: MemoryRecord) -> list[Message]:
    """Return the first of the messages that a memory was learned from."""
    found = await view.memory.store.read(MessagesByNumber(person.scope, memory.sources[:_SOURCES]))
    await view.look_up(message.author for message in found)
    return found


def _short(memory: MemoryRecord, most: int = 60) -> str:
    text = " ".join(memory.text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
