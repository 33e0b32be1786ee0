"""The first page: how much there is, how it grows, what it saves, how it is doing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.report import User
from aforesaid.memory import UserMemory
from aforesaid.models.tokens import count_tokens
from aforesaid.server.panel import figures
from aforesaid.server.panel.health import shown_alerts
from aforesaid.server.panel.view import Looking, View
from aforesaid.store import questions

router = APIRouter()

_DAYS: Final = (7, 30, 90)
_USUAL_DAYS: Final = 30
_FACES: Final = 12
"""People shown with their faces."""
_MOST_REMINDERS: Final = 1_000
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
    totals = await view.totals()
    spaces = [] if totals else await view.spaces()
    if spaces and not view.chosen:
        return RedirectResponse(view.in_space(spaces[0].space), 303)
    activity = figures.longest_quiet(await view.memory.activity(shown, space=view.space, user=own))
    counts = await view.memory.store.read(questions.MemoryCounts(view.space, user=own))
    active = [each for each in counts if each.state == "active"]
    messages = totals.messages if totals else 0
    health = await view.memory.health() if view.who.everywhere else None
    alerts = [] if health is None else await shown_alerts(view.memory, health)
    return view.page(
        "overview.html",
        people=await view.people(_FACES) if totals else [],
        totals=totals,
        spaces=spaces,
        messages=messages,
        memories=sum(each.number for each in active),
        waiting=sum(each.number for each in counts if each.state == "quarantined"),
        reminders=len(await _reminders(view, own)),
        days=shown,
        all_days=_DAYS,
        activity=activity,
        per_day=figures.per_day(activity),
        growth=figures.growth(activity, messages, active),
        categories=figures.by_category(active),
        importances=figures.by_importance(active),
        health=health,
        alerts=[each.alert for each in alerts if each.by is None],
        operations=figures.latencies(view.memory.metrics.snapshot())[:6] if view.who.everywhere else [],
        stats=await view.memory.stats() if view.who.everywhere else None,
    )


@router.get("/overview/savings")
async def savings(view: Looking) -> Response:
    """Show what contexts save, measured now on those who were active last."""
    found = [
        await _saving(view.person(user.id), user)
        for user in (each.user for each in await view.people(_MEASURED_PEOPLE))
    ]
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


async def _reminders(view: View, user: str | None) -> list[MemoryRecord]:
    """Return the reminders of the space that are still to be delivered."""
    every = questions.DueMemories("reminder", datetime.max.replace(tzinfo=UTC), _MOST_REMINDERS)
    return [
        memory
        for memory in await view.memory.store.read(every)
        if memory.space == view.space and user in (None, memory.user)
    ]
