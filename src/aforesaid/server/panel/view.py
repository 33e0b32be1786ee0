"""What every page of the panel needs: who looks, at which space, at which person, and addresses that keep to it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Annotated, Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlencode

from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response

from aforesaid.domain.memory import MemoryRecord
from aforesaid.domain.report import ListedUser, SpaceTotals, User
from aforesaid.errors import InvalidInput
from aforesaid.memory import Memory, UserMemory
from aforesaid.server.auth import Credential
from aforesaid.server.auth.page_views import REFRESH_HEADER
from aforesaid.server.dependencies import MemoryDep, Reader
from aforesaid.server.form_again import page_of_form
from aforesaid.server.languages import translate
from aforesaid.server.pages import page
from aforesaid.store import questions

_MOST_OFFERED: Final = 200
"""Maximum people offered in the list; others can be typed."""

_NOTICE_COOKIE: Final = "aforesaid_told"
"""The cookie with what the next page tells: a browser without scripts is sent on to it."""
_NOTICE_SECONDS: Final = 30

Parts: TypeAlias = str | int | bool | None


@dataclass(frozen=True, slots=True)
class View:
    """A space, and who looks at it."""

    request: Request
    who: Credential
    memory: Memory
    space: str
    chosen: bool = False
    """Whether the address names the space."""
    listed: dict[int, list[ListedUser]] = field(default_factory=dict)
    """The first people of the space, by how many were asked for: a page asks for them more than once."""
    names: dict[str, str] = field(default_factory=dict)
    """Display names by user id, as far as they were looked up for this page."""
    zones: dict[str, tzinfo] = field(default_factory=dict)
    """Time zones by user id, as far as they were looked up for this page."""

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
        # A part of a page, or one that refreshes itself, would take the message away from the page that shows it.
        whole = not self.partly and REFRESH_HEADER not in self.request.headers
        notice = _from_cookie(self.request.cookies.get(_NOTICE_COOKIE, "")) if whole else None
        answer = page(self.request, template, status=status, view=self, at=self.address, notice=notice, **values)
        if notice:
            answer.delete_cookie(_NOTICE_COOKIE)
        return answer

    def done(
        self,
        said: str,
        back: str,
        template: str | None = None,
        *,
        undo: Sequence[MemoryRecord] = (),
        undo_in_part: bool = False,
        leave: bool = False,
        **values: Any,  # noqa: ANN401
    ) -> Response:
        """Answer to a change: with the part of the page that is new, or, to a browser without scripts, with a page.

        `said` is shown to the person. `back` is where a browser without scripts goes, as one does whose scripts were
        not there yet when it was clicked at; `undo` are the memories, as they are now, whose last change can be undone
        there; `undo_in_part` if the template has a button for that itself. Without a `template`, scripts load the page
        again. With `leave`, the page of the form is left for `back`.
        """
        if not self.partly or template is None:
            place = str((None if leave else page_of_form(self.request)) or back)
            leading: Response = RedirectResponse(place, 303)
            if self.partly:
                leading = Response(status_code=204, headers={"HX-Redirect": place})
            leading.set_cookie(
                _NOTICE_COOKIE,
                _to_cookie(ChangeNotice(said, tuple((each.id, each.revision) for each in undo))),
                max_age=_NOTICE_SECONDS,
                httponly=True,
                samesite="strict",
            )
            return leading
        answer = self.page(template, **values)
        told = {"text": said, "undo": [] if undo_in_part else [f"{each.id}:{each.revision}" for each in undo]}
        answer.headers["HX-Trigger"] = json.dumps({"said": told})
        return answer

    def person(self, user: str) -> UserMemory:
        """Return the memory of a person whom the one who looks may see."""
        return self.who.person(self.memory, user, space=self.space)

    async def people(self, limit: int = _MOST_OFFERED) -> list[ListedUser]:
        """Return people here whom the one who looks may see, last active first."""
        if limit not in self.listed:
            self.listed[limit] = await self.page_of_people(limit)
        return self.listed[limit]

    async def page_of_people(self, limit: int, skip: int = 0, part: str = "") -> list[ListedUser]:
        """Return a page of the people, last active first. With `part`, those whose name or id contains it."""
        own = self.who.user_of(None)
        if part:
            names = await self.memory.names(self.space)
            wanted = part.casefold()
            users: list[str] | None = [user for user, name in names.items() if wanted in name.casefold()]
        else:
            users = None
        if own is not None:
            users = [own]
        page = questions.UsersPage(
            self.space, limit=limit, skip=skip, users=users, id_part=part if part and own is None else None
        )
        found = await self.memory.store.read(page)
        await self.memory.record_access("users.read", "users", actor=self.who.viewer, space=self.space)
        self.names.update({each.user.id: each.user.name for each in found if each.user.name})
        return found

    async def look_up(self, users: Iterable[str]) -> None:
        """Read the display names of users, for the page to show."""
        unknown = {user for user in users if user} - self.names.keys()
        if unknown:
            self.names.update(await self.memory.names(self.space, users=unknown))

    async def look_up_zones(self, users: Iterable[str]) -> None:
        """Read the time zones of users: a day without a time of day is a day of theirs."""
        for user in set(users) - self.zones.keys():
            self.zones[user] = await self.memory.user(user, space=self.space).time_zone()

    async def find(self, typed: str) -> str:
        """Return the id of the person whom somebody typed in: an id, or the display name of exactly one person.

        A text that is neither is returned as it is. Raises `InvalidInput` for a name that several people have.
        """
        wanted: str = self.memory.known_ids.spelled(typed)
        if not wanted or self.who.user_of(None) is not None:
            return wanted
        if await self.memory.store.read(questions.UsersPage(self.space, users=[wanted])):
            return wanted
        names = await self.memory.names(self.space)
        named = [user for user, name in names.items() if name.casefold() == wanted.casefold()]
        people = await self.memory.store.read(questions.UsersPage(self.space, users=named)) if named else []
        if len(people) > 1:
            ids = ", ".join(each.user.id for each in people)
            raise InvalidInput(
                translate(
                    "{count} people are called {name}; type one of their ids: {ids}",
                    count=len(people),
                    name=repr(wanted),
                    ids=ids,
                ),
                "user",
            )
        return people[0].user.id if people else wanted

    async def spaces(self) -> list[SpaceTotals]:
        """Return the spaces that have people, last active first; only the own one for a key that is limited to it."""
        found = await self.memory.store.read(questions.TotalsOfSpaces())
        return found if self.who.everywhere else [each for each in found if each.space == self.space]

    async def totals(self) -> SpaceTotals | None:
        """Return the counts of this space for whoever looks; None if it has nobody whom they may see."""
        if self.who.user_of(None) is None:
            return next((each for each in await self.spaces() if each.space == self.space), None)
        people = [each.user for each in await self.people()]
        if not people:
            return None
        own = people[0]
        return SpaceTotals(self.space, 1, own.messages, own.archived, own.last_activity or own.created_at)

    async def offered(self) -> Sequence[User]:
        """Return people to choose from."""
        return [each.user for each in await self.people()]

    @property
    def partly(self) -> bool:
        """Whether a part of a page is asked for, not all of it."""
        return self.request.headers.get("hx-request") == "true"


class ChangeNotice(NamedTuple):
    """What a page says about the change that led to it."""

    text: str
    undo: tuple[tuple[int, int], ...] = ()
    """Ids and revisions of the memories whose last change can be undone. Not an address: others can write cookies."""


def _to_cookie(notice: ChangeNotice) -> str:
    return base64.urlsafe_b64encode(json.dumps(notice).encode()).decode()


def _from_cookie(cookie: str) -> ChangeNotice | None:
    try:
        text, undo = json.loads(base64.urlsafe_b64decode(cookie.encode()))
        return ChangeNotice(str(text), tuple((int(number), int(revision)) for number, revision in undo))
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
