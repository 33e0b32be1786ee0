"""Summaries of a person: a tree that opens down to the messages; corrected and taken back by hand."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from aforesaid.domain.summary import Summary
from aforesaid.errors import NotFound
from aforesaid.server.dependencies import App
from aforesaid.server.languages import plural, translate
from aforesaid.server.panel import forms
from aforesaid.server.panel.conversation import shown_messages
from aforesaid.server.panel.view import Person, PersonView

router = APIRouter()


@router.get("/person/summaries")
async def tree(person: Person) -> Response:
    """Show the summaries that stand for what was said."""
    found = await person.memory.summaries()
    below = {source for summary in found if summary.kind != "tree" for source in summary.sources}
    return await person.page(
        "person/summaries.html",
        tab="summaries",
        archives=[summary for summary in found if summary.kind == "tree"],
        views=[summary for summary in found if summary.kind != "tree" and summary.id not in below],
    )


@router.get("/person/summaries/{number}")
async def below(person: Person, number: int) -> Response:
    """Show what a summary stands for: other summaries, or messages."""
    everything = await person.memory.summaries(active=None)
    summary = _named(everything, number)
    sources = [each for each in everything if each.id in summary.sources]
    messages = [] if sources else await person.memory.summary_messages(number)
    shown = await shown_messages(person, messages)
    earlier = _earlier(everything, summary)
    return person.part("part/below.html", summary=summary, sources=sources, earlier=earlier, **shown)


@router.get("/person/summaries/{number}/edit")
async def edit(person: Person, number: int) -> Response:
    """Show a form to correct a summary."""
    return person.part("part/edit_summary.html", summary=_named(await person.memory.summaries(active=None), number))


@router.get("/person/summaries/{number}/text")
async def text(person: Person, number: int) -> Response:
    """Show the text of a summary."""
    return person.part("part/summary_text.html", summary=_named(await person.memory.summaries(active=None), number))


@router.post("/person/summaries/{number}")
async def correct(person: Person, who: App, number: int, text: Annotated[str, Form()]) -> Response:
    """Correct a summary: the new text is its next version."""
    summary = await person.memory.edit_summary(number, forms.text(text).strip(), editor=who.actor)
    return _back(person, translate("Corrected; this is version {number}.", number=summary.version))


@router.post("/person/summaries/{number}/back")
async def roll_back(person: Person, who: App, number: int) -> Response:
    """Take back what a summary did."""
    del who
    await person.memory.roll_back(number)
    return _back(person, translate("Taken back: what it stood for is active again."))


@router.post("/person/summarise")
async def summarise(person: Person, who: App) -> Response:
    """Summarise now."""
    del who
    made = await person.memory.summarize()
    said = (
        plural("{count} made.", "{count} made.", len(made))
        if made
        else translate("There was nothing new to summarise.")
    )
    return _back(person, said)


def _back(person: PersonView, said: str) -> Response:
    return person.view.done(said, person.address("/person/summaries"))


def _named(summaries: list[Summary], number: int) -> Summary:
    found = next((summary for summary in summaries if summary.id == number), None)
    if found is None:
        raise NotFound(f"there is no summary {number}")
    return found


def _earlier(summaries: list[Summary], summary: Summary) -> list[Summary]:
    """Return the versions before one, newest first."""
    by_id = {each.id: each for each in summaries}
    found: list[Summary] = []
    while summary.version > 1 and summary.replaces in by_id:
        summary = by_id[summary.replaces]
        found.append(summary)
    return found
