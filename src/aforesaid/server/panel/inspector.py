"""What would the model be sent now? A context, with its budget and the reason of each of its items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from fastapi import APIRouter
from starlette.responses import Response

from aforesaid.context import Context, Item, LeftOut, SectionReport
from aforesaid.profiles.recipe import SectionName
from aforesaid.server.languages import N_, translate
from aforesaid.server.panel import forms
from aforesaid.server.panel.view import Looking

router = APIRouter()

WHY: Final[Mapping[SectionName, str]] = {
    "system": N_("The application's own instructions; always in, cut before anything is dropped."),
    "rules": N_("The profile's rules for using what is quoted."),
    "persona": N_("The character of the bot."),
    "instructions": N_("Standing requests of the person, for the model to follow."),
    "portrait": N_("What should be known about the person."),
    "habits": N_("What the person seems to like, counted in what they said."),
    "memories": N_("Memories that this message is about; without a portrait also the most important ones."),
    "summaries": N_("Summaries of older messages, highest level first."),
    "snippets": N_("What the search found for this message: best first here, sent in the order of time."),
    "recent": N_("The newest messages, word for word; the last exchange is always in."),
    "date": N_("Date, weekday, time and time zone of the person."),
    "current": N_("The message itself; always in."),
}


class Section(NamedTuple):
    """A section of a context, with what is in it and what is not."""

    report: SectionReport
    why: str
    items: list[Item]
    left_out: list[LeftOut]
    start: float
    """Where its part of the budget's bar begins, and how long it is, up to 100."""
    length: float


@router.get("/context")
async def context(
    view: Looking, text: str = "", user: str = "", budget: str = "", system: str = "", persona: str = ""
) -> Response:
    """Show what a model that answers a message would be sent."""
    people = await view.offered()
    whose = await view.find(user) or (people[0].id if people else "")
    made: Context | None = None
    if text.strip() and whose:
        made = await view.person(whose).context(
            forms.text(text),
            forms.whole(budget, translate("the budget"), "budget") if budget.strip() else None,
            system=forms.text(system) or None,
            persona=forms.text(persona) or None,
        )
    return view.page(
        "context.html",
        text=text,
        user=whose,
        people=people,
        budget=budget,
        system=system,
        persona=persona,
        context=made,
        sections=[] if made is None else list(sections(made)),
    )


def sections(context: Context) -> Iterator[Section]:
    """Take a context apart, with the place of each section on a bar that is the whole budget."""
    start = 0.0
    for report in context.sections:
        length = 100 * report.tokens / max(context.budget, 1)
        yield Section(
            report,
            WHY[report.name],
            sorted(
                (item for item in context.items if item.section == report.name),
                key=lambda item: -(item.score or 0.0) if report.name == "snippets" else 0.0,
            ),
            [left for left in context.left_out if left.item.section == report.name],
            round(start, 3),
            round(length, 3),
        )
        start += length
