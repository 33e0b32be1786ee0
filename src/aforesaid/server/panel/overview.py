"""The first page: how much there is, how it grows, what it saves, how it is doing."""

from __future__ import annotations

from typing import Final, NamedTuple

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.report import User
from aforesaid.memory import UserMemory
from aforesaid.models.tokens import count_tokens
from aforesaid.server.panel import figures
from aforesaid.server.panel.view import Looking, View

router = APIRouter()

_DAYS: Final = (7, 30, 90)
_USUAL_DAYS: Final = 30
_MOST_MEMORIES: Final = 5_000
"""Charts count the newest memories, at most so many."""
_AT_ONCE: Final = 500
_MEASURED_PEOPLE: Final = 5
_MEASURED_MESSAGES: Final = 2_000


class Saving(NamedTuple):
    """How long a person's context is, beside all that they and the assistant said."""

    user: str
    messages: int
    whole: int
    """The tokens of all that was said; of a long history, of its newest messages."""
    sent: int
    """The tokens of the context that a model would be sent now."""

    @property
    def saved(self) -> float:
        """The part that need not be sent."""
        return max(0.0, 1 - self.sent / self.whole) if self.whole else 0.0


@router.get("/")
async def overview(view: Looking, days: int = _USUAL_DAYS) -> Response:
    """Show the whole at a glance. Without a chosen space: the default one, or if it is empty the last active one."""
    shown = days if days in _DAYS else _USUAL_DAYS
    own = view.who.user_of(None)
    people = await view.people()
    spaces = [] if people else await view.spaces()
    if spaces and not view.chosen:
        return RedirectResponse(view.in_space(spaces[0].name), 303)
    activity = figures.longest_quiet(await view.memory.activity(shown, space=view.space, user=own))
    memories = await _memories(view, own)
    messages = sum(user.messages for user in people)
    return view.page(
        "overview.html",
        people=people,
        spaces=spaces,
        messages=messages,
        archived=sum(user.archived for user in people),
        memories=memories,
        waiting=[memory for memory in memories if memory.state == "quarantined"],
        reminders=[memory for memory in memories if memory.active and memory.remind_at and not memory.delivered_at],
        days=shown,
        all_days=_DAYS,
        activity=activity,
        per_day=figures.per_day(activity),
        growth=figures.growth(activity, messages, memories),
        categories=figures.by_category(memory for memory in memories if memory.active),
        importances=figures.by_importance([memory for memory in memories if memory.active]),
        health=await view.memory.health() if view.who.everywhere else None,
        operations=figures.latencies(view.memory.metrics.snapshot())[:6] if view.who.everywhere else [],
        stats=await view.memory.stats() if view.who.everywhere else None,
    )


@router.get("/overview/savings")
async def savings(view: Looking) -> Response:
    """Show what contexts save, measured now on those who were active last."""
    found = [await _saving(view.person(user.id), user) for user in (await view.people())[:_MEASURED_PEOPLE]]
    measured = [saving for saving in found if saving is not None]
    return view.page(
        "part/savings.html",
        savings=measured,
        whole=sum(saving.whole for saving in measured),
        sent=sum(saving.sent for saving in measured),
    )


async def _saving(person: UserMemory, user: User) -> Saving | None:
    said = await person.history(_MEASURED_MESSAGES)
    if not said:
        return None
    # The newest question is as good as any to make a context for.
    question = next((message.text for message in reversed(said) if message.role == "user"), said[-1].text)
    sent = await person.context(question)
    return Saving(user.id, user.messages, sum(count_tokens(message.text) for message in said), sent.tokens)


async def _memories(view: View, user: str | None) -> list[MemoryRecord]:
    """Return the newest memories of the space, in every state."""
    found: list[MemoryRecord] = []
    while len(found) < _MOST_MEMORIES:
        last = found[-1].id if found else None
        some = await view.memory.memories(space=view.space, user=user, active=None, before=last, limit=_AT_ONCE)
        found += some
        if len(some) < _AT_ONCE:
            break
    return found
