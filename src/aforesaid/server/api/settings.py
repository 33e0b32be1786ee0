"""Routes for runtime settings of a user or a space."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException
from pydantic import BaseModel, Field, StringConstraints

from aforesaid.domain.scope import Scope
from aforesaid.domain.setting import EVERYBODY
from aforesaid.errors import InvalidInput
from aforesaid.profiles.effective import check_setting
from aforesaid.server.api.params import NAMES, Body, SpaceQuery, Text, UserQuery
from aforesaid.server.dependencies import App, MemoryDep, Reader

router = APIRouter(tags=["settings"])

Value = Annotated[Text, StringConstraints(max_length=100_000)] | int | float | bool | None


class SettingsShape(BaseModel):
    """Settings of a user, or of a space."""

    space: str
    user: str | None = Field(description="Null for the settings of the space.")
    settings: dict[str, str | int | float | bool | None] = Field(examples=[{"summary_every_n": 20}])


class SettingsEdit(Body):
    """Settings to change. Null resets one to its default."""

    settings: dict[str, Value] = Field(
        min_length=1,
        max_length=100,
        examples=[{"summary_every_n": 20}],
        json_schema_extra={"propertyNames": NAMES},  # Described only: `check_setting` checks them.
    )


@router.get("/settings", summary="Read settings")
async def read_settings(
    who: Reader, memory: MemoryDep, user: UserQuery = None, space: SpaceQuery = None
) -> SettingsShape:
    """Return the settings of a user, or of the whole space without a user."""
    whose, where = who.user_of(user), who.space_of(space)
    if whose is None:
        found = await memory.settings(where, actor=who.actor)
    else:
        found = await who.person(memory, whose, space=space).settings()
    return SettingsShape(space=where, user=whose, settings=found)


@router.put("/settings", summary="Change settings")
async def change_settings(
    who: App, memory: MemoryDep, edit: SettingsEdit, user: UserQuery = None, space: SpaceQuery = None
) -> SettingsShape:
    """Change settings of a user, or without a user of the whole space, which needs the role admin. Effective at once.

    Models and their addresses cannot be changed over HTTP.
    """
    whose, where = who.user_of(user), who.space_of(space)
    if whose is None and not who.may("admin"):
        raise HTTPException(403, "The settings of a space need the role admin; name a user.")
    person = None if whose is None else who.person(memory, whose, space=space)
    scope = Scope.of(EVERYBODY, where) if person is None else person.scope
    for key, value in edit.settings.items():  # All of them first: a wrong one changes nothing.
        try:
            check_setting(scope, key, value)
        except InvalidInput as error:
            error.field = f"settings.{key}"
            raise
    for key, value in edit.settings.items():
        if person is None:
            await memory.set(key, value, space=where, actor=who.actor)
        else:
            await person.set(key, value)
    return await read_settings(who, memory, user, space)
