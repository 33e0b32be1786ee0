"""Who looked at what, and who changed what."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from fastapi import APIRouter
from starlette.responses import Response

from aforesaid.domain.report import AuditEntry
from aforesaid.server.dependencies import Admin
from aforesaid.server.panel.view import Looking, Person, View

router = APIRouter()

_ROWS: Final = 200
_MEMORY: Final = re.compile(r"memory (\d+)")
_UNDOABLE: Final = frozenset(
    f"memory.{action}" for action in ("edit", "deactivate", "end", "reactivate", "approve", "reject", "undo", "add")
)
"""Actions on a memory that `undo` reverses."""
_PEOPLE: Final = 50
"""People whose entries are shown if nobody is selected: those who were active last. The space's own are shown too."""


@router.get("/audit")
async def audit(view: Looking, who: Admin, user: str = "", action: str = "", by: str = "") -> Response:
    """Show the newest entries of the audit log: about one person, or about those who were active last."""
    del who
    whose = await view.find(user)
    found = await _entries(view, whose)
    await view.look_up(name for entry in found for name in (entry.actor, entry.user))
    actions = sorted({entry.action for entry in found})
    shown = [
        entry
        for entry in found
        if action in ("", entry.action)
        and by.strip().casefold() in f"{entry.actor}\n{view.names.get(entry.actor, '')}".casefold()
    ]
    return view.page(
        "audit.html",
        entries=shown[:_ROWS],
        undoable=undoable(found),
        actions=actions,
        action=action,
        by=by.strip(),
        user=whose,
        people=await view.offered(),
    )


@router.get("/person/audit")
async def of_person(person: Person, who: Admin) -> Response:
    """Show the newest entries about a person."""
    del who
    entries = list(reversed(await person.memory.audit(_ROWS)))
    await person.view.look_up(entry.actor for entry in entries)
    return await person.page("person/audit.html", tab="audit", entries=entries, undoable=undoable(entries))


def undoable(entries: Iterable[AuditEntry]) -> dict[int, int]:
    """Return the memories whose newest change is among the entries (the newest first), by the id of its entry."""
    found: dict[int, int] = {}
    seen = set()
    for entry in entries:
        memory = _MEMORY.fullmatch(entry.subject)
        if memory is None or entry.action not in _UNDOABLE or memory[1] in seen:
            continue
        seen.add(memory[1])
        found[entry.id] = int(memory[1])
    return found


async def _entries(view: View, user: str) -> list[AuditEntry]:
    people = [user] if user else [each.user.id for each in await view.people(_PEOPLE)]
    found = [entry for each in people for entry in await view.person(each).audit(_ROWS)]
    if not user and view.who.user is None:
        found += await view.memory.audit(_ROWS, space=view.space, actor=view.who.viewer)
    return sorted(found, key=lambda entry: entry.id, reverse=True)
