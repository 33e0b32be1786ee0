"""Whether a store knows a user, and in which spaces: a mistyped id must not look like a user without data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aforesaid.domain.report import User
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.errors import NotFound, quoted

if TYPE_CHECKING:
    from aforesaid import SyncMemory


def data_of(memory: SyncMemory, user: str) -> dict[str, User]:
    """Return the spaces in which a user has data, with the counts of each."""
    known = memory.known_ids.spelled(user)
    return {each.space: each for each in memory.users() if each.id == known}


def unknown_user(memory: SyncMemory, user: str, space: str) -> str | None:
    """Return what to say about a user who has no data in a space; None for one who has."""
    found = data_of(memory, user)
    if memory.known_ids.spelled(space) in found:
        return None
    where = "" if space == DEFAULT_SPACE else f" in the space {quoted(space)}"
    told = f"there is no user {quoted(user)}{where}"
    if found:
        return f"{told}; this user has data in {_spaces(found)}: pass --space"
    return f"{told}; run: aforesaid users"


def must_know(memory: SyncMemory, user: str, space: str) -> None:
    """Raise NotFound for a user who has no data in a space."""
    if (told := unknown_user(memory, user, space)) is not None:
        raise NotFound(told)


def _spaces(names: dict[str, User]) -> str:
    return f"the {'space' if len(names) == 1 else 'spaces'} {', '.join(names)}"
