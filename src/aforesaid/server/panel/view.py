"""What every page of the panel needs: who looks, at which space, at which person, and addresses that keep to it."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple, TypeAlias
from urllib.parse import urlencode, urlsplit

from fastapi import Depends, Request
from starlette.responses import RedirectResponse, Response

from aforesaid.domain.report import User
from aforesaid.memory import Memory, UserMemory
from aforesaid.server.auth import Credential
from aforesaid.server.dependencies import MemoryDep, Reader
from aforesaid.server.pages import page

_MOST_OFFERED: Final = 200
"""Maximum people offered in the list; others can be typed."""

_TOLD: Final = "aforesaid_told"
"""The cookie with what the next page tells: a browser without scripts is sent on to it."""
_TOLD_SECONDS: Final = 30

Parts: TypeAlias = str | int | bool | None


@dataclass(frozen=True, slots=True)
class View:
    """A space, and who looks at it."""

    request: Request
    who: Credential
    memory: Memory
    space: str

    def address(self, path: str, **parts: Parts) -> str:
        """Return the address of a page in the same space."""
        own = {} if self.space == self.who.space_of(None) else {"space": self.space}
        given = {name: value for name, value in parts.items() if value is not None and value != ""}
        query = urlencode(own | given)
        return f"{path}?{query}" if query else path

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
        not there yet when it was clicked at; `undo` is the memory whose last change can be taken back there.
        """
        if not self.partly or template is None:
            leading: Response = RedirectResponse(self._came_from(back), 303)
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
        own = self.who.user_of(None)
        found = [user for user in await self.memory.users(self.space, actor=self.who.actor) if own in (None, user.id)]
        return sorted(found, key=lambda user: (user.last_activity or user.created_at, user.id), reverse=True)

    async def offered(self) -> Sequence[User]:
        """Return people to choose from."""
        return (await self.people())[:_MOST_OFFERED]

    @property
    def partly(self) -> bool:
        """Whether a part of a page is asked for, not all of it."""
        return self.request.headers.get("hx-request") == "true"

    def _came_from(self, otherwise: str) -> str:
        came = urlsplit(self.request.headers.get("referer", ""))
        if came.netloc != self.request.url.netloc or not came.path.startswith("/"):
            return otherwise
        return f"{came.path}?{came.query}" if came.query else came.path


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
    return View(request, who, memory, who.space_of(space or None))


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

    def address(self, path: str, **parts: Parts) -> str:
        """Return the address of a page about the person."""
        return self.view.address(path, user=self.user, **parts)


async def _person(view: Looking, user: str) -> PersonView:
    found = view.person(user)
    return PersonView(view, found.scope.user, found)


Person = Annotated[PersonView, Depends(_person)]
