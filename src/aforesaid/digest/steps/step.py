"""What every policy's steps promise."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from aforesaid.domain.agenda import Entry, Subject
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Summary


class Step(NamedTuple):
    """What was done about an entry."""

    made: tuple[Summary, ...] = ()
    """Empty when there was nothing to do."""
    messages: int = 0
    """How many messages were dealt with."""
    look_again_at: int | None = None
    """When to look again although nothing was said, where nothing was made."""


class Steps(Protocol):
    """How one policy deals with an entry of the agenda."""

    def subject(self, scope: Scope) -> Subject:
        """Return the entry that a user's summaries depend on."""

    async def step(self, entry: Entry, *, asked: bool = False) -> Step:
        """Do one thing about an entry. Whoever calls it goes on until nothing is made any more."""
