"""The credential of a request, and what it may access."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

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
    """The credential of a request. All access decisions are made here."""

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
        """Return whether it has the permissions of a role."""
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
        """Whether it is for all users of all spaces."""
        return self.space is None and self.user is None
