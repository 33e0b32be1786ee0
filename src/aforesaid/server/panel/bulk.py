"""Many memories at once: approved, rejected, ended, deleted or edited, and undone as one step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Final

from fastapi import APIRouter, Form
from starlette.responses import Response

from aforesaid.domain.memory import CATEGORIES, MemoryRecord
from aforesaid.errors import InvalidInput, NotFound, SourcesChanged, WrongState
from aforesaid.memory import UserMemory
from aforesaid.server.dependencies import App
from aforesaid.server.languages import plural, translate
from aforesaid.server.panel import forms
from aforesaid.server.panel.memories import one_memory
from aforesaid.server.panel.view import Looking, View

router = APIRouter()

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
    return _answer(view, changed, len(numbers))


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


def _answer(view: View, changed: list[MemoryRecord], chosen: int) -> Response:
    said = plural("{count} memory changed.", "{count} memories changed.", len(changed))
    if chosen > len(changed):
        said += " " + plural(
            "{count} was in another state and stays as it is.",
            "{count} were in another state and stay as they are.",
            chosen - len(changed),
        )
    return view.done(said, view.address("/memories"), undo=changed)
