"""What every page of the panel needs: who looks, at which space, at which person, and addresses that keep to it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlencode

from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response

from aforesaid.domain.report import User
from aforesaid.errors import InvalidInput
from aforesaid.memory import Memory, UserMemory
from aforesaid.server.auth import Credential
from aforesaid.server.dependencies import MemoryDep, Reader
from aforesaid.server.form_again import page_of_form
from aforesaid.server.pages import page

_MOST_OFFERED: Final = 200
"""Maximum people offered in the list; others can be typed."""

_TOLD: Final = "aforesaid_told"
"""The cookie with what the next page tells: a browser without scripts is sent on to it."""
_TOLD_SECONDS: Final = 30

Parts: TypeAlias = str | int | bool | None


class Space(NamedTuple):
    """A space that has people, with counts."""

    name: str
    people: int
    messages: int
    last_activity: datetime


@dataclass(frozen=True, slots=True)
class View:
    """A space, and who looks at it."""

    request: Request
    who: Credential
    memory: Memory
    space: str
    chosen: bool = False
    """Whether the address names the space."""
    known: list[User] = field(default_factory=list)
    """The people of the space, once `people` has read them."""
    names: dict[str, str] = field(default_factory=dict)
    """Display names by user id, as far as they were looked up for this page."""

    @property
    def parameters(self) -> dict[str, str]:
        """What addresses and forms of this space carry along."""
        return {"space": self.space} if self.chosen else {}

    def address(self, path: str, **parts: Parts) -> str:
        """Return the address of a page in the same space."""
        own = self.parameters
        given = {name: value for name, value in parts.items() if value is not None and value != ""}
        query = urlencode(own | given)
        return f"{path}?{query}" if query else path

    @staticmethod
    def in_space(space: str) -> str:
        """Return the address of the first page of a space."""
        return f"/?{urlencode({'space': space})}"

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:  # noqa: ANN401
        """Answer with a page. Its template knows the view as well."""
        told = _unfold(self.request.cookies.get(_TOLD, ""))
        answer = page(self.request, template, status=status, view=self, at=self.address, told=told, **values)
        if told:
            answer.delete_cookie(_TOLD)
        return answer

    def done(
        self,
        said: str,
        back: str,
        template: str | None = None,
        *,
        undo: int | None = None,
        **values: Any,  # noqa: ANN401
    ) -> Response:
        """Answer to a change: with the part of the page that is new, or, to a browser without scripts, with a page.

        `said` is shown to the person. `back` is where a browser without scripts goes, as one does whose scripts were
        not there yet when it was clicked at; `undo` is the memory whose last change can be taken back there. Without a
        `template`, scripts load the page again.
        """
        if not self.partly or template is None:
            place = str(page_of_form(self.request) or back)
            leading: Response = RedirectResponse(place, 303)
            if self.partly:
                leading = Response(status_code=204, headers={"HX-Redirect": place})
            leading.set_cookie(_TOLD, _fold(Told(said, undo)), max_age=_TOLD_SECONDS, httponly=True, samesite="strict")
            return leading
        answer = self.page(template, **values)
        answer.headers["HX-Trigger"] = json.dumps({"said": said})
        return answer

    def person(self, user: str) -> UserMemory:
        """Return the memory of a person whom the one who looks may see."""
        return self.who.person(self.memory, user, space=self.space)

    async def people(self) -> list[User]:
        """Return everybody here whom the one who looks may see, last active first."""
        if self.known:
            return self.known
        own = self.who.user_of(None)
        found = [user for user in await self.memory.users(self.space, actor=self.who.actor) if own in (None, user.id)]
        self.names.update({user.id: user.name for user in found if user.name})
        self.known[:] = sorted(found, key=lambda user: (user.last_activity or user.created_at, user.id), reverse=True)
        return self.known

    async def look_up(self, users: Iterable[str]) -> None:
        """Read the display names of users, for the page to show."""
        unknown = {user for user in users if user} - self.names.keys()
        if unknown:
            self.names.update(await self.memory.names(self.space, users=unknown))

    async def find(self, typed: str) -> str:
        """Return the id of the person whom somebody typed in: an id, or the display name of exactly one person.

        A text that is neither is returned as it is. Raises `InvalidInput` for a name that several people have.
        """
        wanted: str = self.memory.known_ids.spelled(typed)
        people = await self.people() if wanted else []
        if any(user.id == wanted for user in people):
            return wanted
        named = [user.id for user in people if (user.name or "").casefold() == wanted.casefold()]
        if len(named) > 1:
            raise InvalidInput(
                f"{len(named)} people are called {wanted!r}; type one of their ids: {', '.join(named)}", "user"
            )
        return named[0] if named else wanted

    async def spaces(self) -> list[Space]:
        """Return the spaces that have people, last active first; only the own one for a key that is limited to it."""
        users = await self.memory.users() if self.who.everywhere else await self.people()
        found = []
        for name in {user.space for user in users}:
            there = [user for user in users if user.space == name]
            last = max(user.last_activity or user.created_at for user in there)
            found.append(Space(name, len(there), sum(user.messages for user in there), last))
        return sorted(found, key=lambda each: each.last_activity, reverse=True)

    async def offered(self) -> Sequence[User]:
        """Return people to choose from."""
        return (await self.people())[:_MOST_OFFERED]

    @property
    def partly(self) -> bool:
        """Whether a part of a page is asked for, not all of it."""
        return self.request.headers.get("hx-request") == "true"


class Told(NamedTuple):
    """What a page tells about the change before it."""

    text: str
    undo: int | None
    """The memory whose last change can be taken back: a number, not an address, as others can write cookies too."""


def _fold(told: Told) -> str:
    return base64.urlsafe_b64encode(json.dumps(told).encode()).decode()


def _unfold(cookie: str) -> Told | None:
    try:
        text, undo = json.loads(base64.urlsafe_b64decode(cookie.encode()))
        return Told(str(text), None if undo is None else int(undo))
    except (ValueError, TypeError):
        return None


async def _view(request: Request, who: Reader, memory: MemoryDep, space: str | None = None) -> View:
    return View(request, who, memory, who.space_of(space or None), chosen=bool(space))


Looking = Annotated[View, Depends(_view)]


@dataclass(frozen=True, slots=True)
class PersonView:
    """A person, and who looks at them."""

    view: View
    user: str
    memory: UserMemory

    async def page(self, template: str, *, tab: str, **values: Any) -> Response:  # noqa: ANN401
        """Answer with a page about the person."""
        status = await self.memory.status()
        return self.view.page(template, person=self, tab=tab, status_now=status, **values)

    def part(self, template: str, **values: Any) -> Response:  # noqa: ANN401
        """Answer with a part of a page about the person."""
        return self.view.page(template, person=self, **values)

    @property
    def name(self) -> str:
        """The display name of the person; without one, their id."""
        return self.view.names.get(self.user, self.user)

    def address(self, path: str, **parts: Parts) -> str:
        """Return the address of a page about the person."""
        return self.view.address(path, user=self.user, **parts)


async def _person(view: Looking, user: str) -> PersonView:
    found = view.person(user)
    await view.look_up([found.scope.user])
    return PersonView(view, found.scope.user, found)


Person = Annotated[PersonView, Depends(_person)]
