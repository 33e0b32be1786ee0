"""The credential of a request, and what it may access."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from starlette.requests import Request

from aforesaid.domain import checks
from aforesaid.domain.details import regular
from aforesaid.domain.scope import DEFAULT_SPACE, is_direct
from aforesaid.errors import NotFound, quoted
from aforesaid.memory import Memory, UserMemory

Role: TypeAlias = Literal["reader", "app", "admin"]
"""Reads; reads and writes; also settings, keys, audit, export and deletion. Each includes the ones before it."""

ROLES: Final[tuple[Role, ...]] = get_args(Role)
LINK: Final = "link"
"""The id of the credential that the sign-in link gives."""


@dataclass(frozen=True, slots=True)
class Credential:
    id: str
    """`key:…` or `link`: its id in the audit log and in rate limits."""
    name: str
    role: Role
    space: str | None = None
    """The space it is limited to; None for all."""
    user: str | None = None
    """The user it is limited to; None for all users of the space."""
    default_user: str | None = None
    """The user of proxy requests that name nobody; None: they get no memory, because many people may use the key."""
    csrf: str | None = None
    """The CSRF token that a browser must send with changes; None without a cookie."""
    refreshing: bool = False
    """Whether an open page fetches itself again, which is not audited: opening it was."""

    def may(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)

    def space_of(self, wanted: str | None) -> str:
        """Return the space that a request is about. Another one than the credential's own looks like none at all."""
        if self.space is None:
            return DEFAULT_SPACE if wanted is None else checks.identifier(wanted, "the space", "space")
        if wanted is not None and regular(wanted) != regular(self.space):
            raise NotFound(f"there is no space {quoted(wanted)} for this key")
        return self.space

    def user_of(self, wanted: str | None) -> str | None:
        """Return the user that a request is about: the credential's own, where it has one."""
        if self.user is None:
            return None if wanted is None else checks.identifier(wanted, "the user id", "user")
        if wanted is not None and regular(wanted) != regular(self.user):
            raise NotFound(f"there is no user {quoted(wanted)} for this key")
        return self.user

    def person(
        self,
        memory: Memory,
        user: str,
        *,
        space: str | None = None,
        thread: str | None = None,
        chat: str | None = None,
        session: str | None = None,
        audited: bool = True,
    ) -> UserMemory:
        """Return the memory of a user whom the credential may reach. What is seen and changed is audited under it.

        If it is not, whoever asks for it writes down what is seen.
        """
        whose = self.user_of(user) or user
        # A shared thread contains messages of others, so a key for one user can only use its own threads. Answers have
        # the whole name, which is accepted too.
        own = f"{whose}/"
        if self.user is not None and thread is not None and not is_direct(thread) and not thread.startswith(own):
            thread = f"{own}{thread}"
        actor = self.viewer if audited else None
        return memory.user(whose, space=self.space_of(space), thread=thread, chat=chat, session=session, actor=actor)

    @property
    def actor(self) -> str:
        """Its name in the audit log. Several keys can have the same name; there is only one link."""
        if self.id == LINK:
            return self.name
        return f"{self.id} {self.name}"[: checks.IDENTIFIER_CHARACTERS]

    @property
    def viewer(self) -> str | None:
        """Its name in the audit log for what it views; None for a page that refreshes itself."""
        return None if self.refreshing else self.actor

    @property
    def everywhere(self) -> bool:
        return self.space is None and self.user is None


REFRESH_HEADER: Final = "x-aforesaid-live"
"""The header that `live.js` sends when it fetches its own page again."""
PAGE_VIEW_SECONDS: Final = 24 * 60 * 60
"""How long after a view a page may refresh itself without an audit row. A page that stays open has a row a day."""
_MOST: Final = 10_000
_NO_PAGES: Final = ("/api", "/v1", "/mcp", "/live")


class PageViews:
    """The pages that browsers opened lately.

    The header alone proves nothing: everybody can send it. So a refresh counts as one only if the same session has
    opened the same address before, which has left its audit rows.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._opened: OrderedDict[tuple[str, str], float] = OrderedDict()

    def is_refresh(self, request: Request, who: Credential) -> bool:
        """Return whether a page refreshes itself. Any other request for a page is noted as a view of it."""
        if request.method != "GET" or request.url.path.startswith(_NO_PAGES):
            return False
        page = (who.csrf or who.id, f"{request.url.path}?{request.url.query}")
        opened = self._opened.get(page)
        now = self._clock()
        if REFRESH_HEADER in request.headers and opened is not None and now - opened < PAGE_VIEW_SECONDS:
            return True
        self._opened[page] = now
        self._opened.move_to_end(page)
        while len(self._opened) > _MOST:
            self._opened.popitem(last=False)
        return False
