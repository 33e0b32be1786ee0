"""Settings that are stored, act at once and survive a restart: for a space, and for single people in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from fastapi import APIRouter, HTTPException, Request
from starlette.responses import Response

from aforesaid.domain.checks import SettingValue
from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.profiles import Profile
from aforesaid.profiles.effective import PROFILE, RUNTIME_SETTINGS, Group, RuntimeSetting, check_setting, tuned
from aforesaid.server.auth import Credential
from aforesaid.server.dependencies import Admin
from aforesaid.server.languages import N_, translate
from aforesaid.server.panel import forms
from aforesaid.server.panel.view import Looking, Person

router = APIRouter()


GROUPS: Final[Mapping[Group, str]] = {
    "Limits": N_("How much of each layer of memory goes into a context."),
    "Context": N_("What the model is sent, and how much of it."),
    "Learning": N_("What happens by itself."),
}


class Source(NamedTuple):
    """The value of a setting that applies now, where it comes from, and what applies without it."""

    value: SettingValue
    place: str
    """`person`, `space`, `profile` or `default`."""
    otherwise: SettingValue
    """What applies when the field is left empty."""


@router.get("/settings")
async def of_space(view: Looking, who: Admin) -> Response:
    """Show what is set for a space."""
    _whole(who)
    stored = await view.memory.settings(view.space, actor=who.viewer)
    usual = _defaults(view.memory.profile, stored)
    sources = {key: _source(stored.get(key), None, usual.get(key), "space") for key in RUNTIME_SETTINGS}
    return view.page("settings.html", stored=stored, sources=sources, groups=_groups(of_space=True))


@router.post("/settings")
async def change_space(request: Request, view: Looking, who: Admin) -> Response:
    """Change what is set for a space."""
    _whole(who)
    given = await _given(request, of_space=True)
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
    stored = await person.memory.settings()
    usual = _defaults(person.view.memory.profile, above | stored)
    return await person.page(
        "person/settings.html",
        tab="settings",
        stored=stored,
        sources={key: _source(stored.get(key), above.get(key), usual.get(key), "person") for key in RUNTIME_SETTINGS},
        groups=_groups(of_space=False),
    )


@router.post("/person/settings")
async def change_person(request: Request, person: Person, who: Admin) -> Response:
    """Change what is set for a person."""
    del who
    given = await _given(request, of_space=False)
    stored = await person.memory.settings()
    changed = {key: value for key, value in given.items() if stored.get(key) != value}
    for key, value in changed.items():
        check_setting(person.memory.scope, key, value)
    for key, value in changed.items():
        await person.memory.set(key, value)
    return person.view.done(_said(changed), person.address("/person/settings"))


def _source(own: SettingValue, above: SettingValue, usual: SettingValue, place: str) -> Source:
    """Return where a value comes from: set here, set for the space, or as the profile has it."""
    otherwise = usual if above is None else above
    if own is not None:
        return Source(own, place, otherwise)
    return Source(otherwise, "profile" if above is None else "space", otherwise)


def _whole(who: Credential) -> None:
    if who.user is not None:
        raise HTTPException(403, translate("These settings are about everybody; the key is for one person."))


def _defaults(profile: Profile, stored: dict[str, SettingValue]) -> dict[str, SettingValue]:
    """Return the values of the profile, which hold where nothing is set."""
    chosen = tuned(profile, {PROFILE: stored.get(PROFILE)})
    return {key: setting.default(chosen) for key, setting in RUNTIME_SETTINGS.items()}


async def _given(request: Request, *, of_space: bool) -> dict[str, SettingValue]:
    """Return what a form says about settings. An empty field takes a setting back."""
    form = await request.form()
    found: dict[str, SettingValue] = {}
    for field in _shown(of_space=of_space):
        sent = form.get(field.key)
        if isinstance(sent, str):
            found[field.key] = _value(field, sent)
    return found


def _value(field: RuntimeSetting, sent: str) -> SettingValue:
    text = forms.text(sent).strip()
    if not text:
        return None
    if field.kind == "whole":
        return forms.whole(text, translate(field.label), field.key)
    if field.kind == "share":
        return forms.number(text, translate(field.label), field.key)
    if field.kind == "switch":
        return text == "on"
    return text


def _shown(*, of_space: bool) -> list[RuntimeSetting]:
    return [each for each in RUNTIME_SETTINGS.values() if each.group and (of_space or not each.space_only)]


def _groups(*, of_space: bool) -> list[tuple[str, str, list[RuntimeSetting]]]:
    shown = _shown(of_space=of_space)
    return [(name, words, [each for each in shown if each.group == name]) for name, words in GROUPS.items()]


def _said(changed: dict[str, SettingValue]) -> str:
    return translate("Saved. It takes effect at once.") if changed else translate("Nothing was changed.")
