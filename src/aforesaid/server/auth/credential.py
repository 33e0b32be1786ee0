"""Who is asking, and what they may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from aforesaid.domain import checks
from aforesaid.domain.known_ids import regular
from aforesaid.domain.scope import DEFAULT_SPACE, is_direct
from aforesaid.errors import NotFound, quoted
from aforesaid.memory import Memory, UserMemory

Role: TypeAlias = Literal["reader", "app", "admin"]
"""Reads; reads and writes; also settings, keys, audit, export and erasure. Each may do what those before it may."""

ROLES: Final[tuple[Role, ...]] = get_args(Role)


@dataclass(frozen=True, slots=True)
class Credential:
    """Who is asking. What they may reach is decided here and nowhere else."""

    id: str
    """`key:…` or `link`: what the audit log and the limits know it by."""
    name: str
    role: Role
    space: str | None = None
    """The one space it is for; None for all of them."""
    user: str | None = None
    """The one user it is for; None for everybody in the space."""
    default_user: str | None = None
    """Whose memory the proxy uses for a request that names nobody; None: no memory, as many people may use the key."""
    csrf: str | None = None
    """What a browser has to send along when it changes something; None where there is no cookie."""

    def may(self, role: Role) -> bool:
        """Return whether it is allowed what a role is."""
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
        session: str | None = None,
        audited: bool = True,
    ) -> UserMemory:
        """Return the memory of a user whom the credential may reach. What is seen and changed is audited under it.

        If it is not, whoever asks for it writes down what is seen.
        """
        whose = self.user_of(user) or user
        # In a thread others can be read along with. Whoever has a key for one user has threads of their own.
        if self.user is not None and thread is not None and not is_direct(thread):
            thread = f"{whose}/{thread}"
        actor = self.actor if audited else None
        return memory.user(whose, space=self.space_of(space), thread=thread, session=session, actor=actor)

    @property
    def actor(self) -> str:
        """What the audit log calls it."""
        return f"{self.id} {self.name}"[: checks.IDENTIFIER_CHARACTERS]

    @property
    def everywhere(self) -> bool:
        """Whether it is for all users of all spaces."""
        return self.space is None and self.user is None
