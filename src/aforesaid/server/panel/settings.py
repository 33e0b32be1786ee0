"""Settings that are stored, act at once and survive a restart: for a space, and for single people in it."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from fastapi import APIRouter, HTTPException, Request
from starlette.responses import Response

from aforesaid.domain.literals import SettingValue
from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.profiles import BUILT_IN, Profile, load_profile
from aforesaid.profiles.effective import check_setting
from aforesaid.profiles.recipe import LEAST_BUDGET, MOST_TOKENS
from aforesaid.server.auth import Credential
from aforesaid.server.dependencies import Admin
from aforesaid.server.panel import forms
from aforesaid.server.panel.view import Looking, Person

router = APIRouter()


class Field(NamedTuple):
    """A setting, and how it is asked for."""

    key: str
    label: str
    help: str
    kind: Literal["whole", "share", "text", "words", "switch", "choice"]
    least: int = 0
    most: int = 0
    choices: tuple[str, ...] = ()


LIMITS: Final = (
    Field(
        "short_term_memory_limit",
        "Recent exchanges",
        "The newest exchanges that every context holds, word for word.",
        "whole",
        1,
        500,
    ),
    Field(
        "long_term_memory_limit",
        "Search results",
        "How many past moments that fit the question a context may hold.",
        "whole",
        0,
        1000,
    ),
    Field(
        "semantic_similarity_threshold",
        "Similarity",
        "How near in meaning they must be, from 0 to 1. With 0, their words can be enough.",
        "share",
    ),
    Field(
        "persistent_memory_limit",
        "Memories",
        "How many of the most important memories every context holds.",
        "whole",
        0,
        1000,
    ),
)
"""The four limits."""
CONTEXT: Final = (
    Field(
        "context_profile",
        "Profile",
        "Which parts a context has, in which order, with which share.",
        "choice",
        choices=BUILT_IN,
    ),
    Field(
        "context_budget",
        "Token budget",
        "No context is longer, unless a program asks for another length.",
        "whole",
        LEAST_BUDGET,
        MOST_TOKENS,
    ),
    Field("bot_persona", "Persona", "The persona of the bot, part of the prompt.", "words"),
)
LEARNING: Final = (
    Field("memory_enabled", "Learn and summarise", "Messages are kept either way.", "switch"),
    Field("summary_every_n", "Summarise after", "Summarise after this many turns of a person.", "whole", 1, 500),
    Field("time_zone", "Time zone", "Where a day begins and ends, such as Europe/Berlin.", "text"),
)
SPACE_ALONE: Final = (
    Field(
        "session_timeout_minutes",
        "Session ends after",
        "Minutes of silence after which a session is closed.",
        "whole",
        1,
        5_256_000,
    ),
)
"""What can be set for a whole space alone."""


@router.get("/settings")
async def of_space(view: Looking, who: Admin) -> Response:
    """Show what is set for a space."""
    _whole(who)
    stored = await view.memory.settings(view.space, actor=who.actor)
    groups = _groups((LIMITS, CONTEXT, (*LEARNING, *SPACE_ALONE)))
    return view.page("settings.html", stored=stored, usual=usual(view.memory.profile, stored), groups=groups)


@router.post("/settings")
async def change_space(request: Request, view: Looking, who: Admin) -> Response:
    """Change what is set for a space."""
    _whole(who)
    given = await _given(request, (*LIMITS, *CONTEXT, *LEARNING, *SPACE_ALONE))
    stored = await view.memory.settings(view.space)
    changed = {key: value for key, value in given.items() if stored.get(key) != value}
    for key, value in changed.items():  # All of them first: a wrong one changes nothing.
        check_setting(Scope.of(EVERYBODY, view.space), key, value)
    for key, value in changed.items():
        await view.memory.set(key, value, space=view.space, actor=who.actor)
    return view.done(_said(changed), view.address("/settings"))


@router.get("/person/settings")
async def of_person(person: Person, who: Admin) -> Response:
    """Show what is set for a person."""
    del who
    above = await person.view.memory.settings(person.view.space)
    return await person.page(
        "person/settings.html",
        tab="settings",
        stored=await person.memory.settings(),
        usual=usual(person.view.memory.profile, above) | above,
        groups=_groups((LIMITS, CONTEXT, LEARNING)),
    )


@router.post("/person/settings")
async def change_person(request: Request, person: Person, who: Admin) -> Response:
    """Change what is set for a person."""
    del who
    given = await _given(request, (*LIMITS, *CONTEXT, *LEARNING))
    stored = await person.memory.settings()
    changed = {key: value for key, value in given.items() if stored.get(key) != value}
    for key, value in changed.items():
        check_setting(person.memory.scope, key, value)
    for key, value in changed.items():
        await person.memory.set(key, value)
    return person.view.done(_said(changed), person.address("/person/settings"))


def _whole(who: Credential) -> None:
    if who.user is not None:
        raise HTTPException(403, "These settings are about everybody; the key is for one person.")


def usual(profile: Profile, stored: dict[str, SettingValue]) -> dict[str, SettingValue]:
    """Return what holds where nothing is set."""
    chosen = stored.get("context_profile")
    recipe = (profile if chosen is None else load_profile(str(chosen))).context
    return {
        "short_term_memory_limit": recipe.recent // 2,
        "long_term_memory_limit": recipe.snippets,
        "semantic_similarity_threshold": recipe.similarity,
        "persistent_memory_limit": recipe.memories,
        "context_budget": recipe.budget,
        "bot_persona": profile.persona,
        "memory_enabled": True,
        "summary_every_n": profile.tree_turns,
        "time_zone": profile.time_zone,
        "session_timeout_minutes": profile.session_minutes,
    }


async def _given(request: Request, fields: tuple[Field, ...]) -> dict[str, SettingValue]:
    """Return what a form says about settings. An empty field takes a setting back."""
    form = await request.form()
    found: dict[str, SettingValue] = {}
    for field in fields:
        sent = form.get(field.key)
        if isinstance(sent, str):
            found[field.key] = _value(field, sent)
    return found


def _value(field: Field, sent: str) -> SettingValue:
    text = forms.text(sent).strip()
    if not text:
        return None
    if field.kind == "whole":
        return forms.whole(text, field.label, field.key)
    if field.kind == "share":
        return forms.number(text, field.label, field.key)
    if field.kind == "switch":
        return text == "on"
    return text


def _groups(groups: tuple[tuple[Field, ...], ...]) -> list[tuple[str, str, tuple[Field, ...]]]:
    names = (
        ("Limits", "How much of each layer of memory goes into a context."),
        ("Context", "What the model is sent, and how much of it."),
        ("Learning", "What happens by itself."),
    )
    return [(name, words, fields) for (name, words), fields in zip(names, groups, strict=True)]


def _said(changed: dict[str, SettingValue]) -> str:
    return "Saved. It acts at once." if changed else "Nothing was changed."
