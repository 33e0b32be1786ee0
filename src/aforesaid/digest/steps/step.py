"""The contract of the policies' steps."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from aforesaid.domain.scope import Entry, Scope, Subject
from aforesaid.domain.summary import Summary


class Step(NamedTuple):
    """The result of one step for an entry."""

    made: tuple[Summary, ...] = ()
    """The new summaries; empty if there was nothing to do."""
    messages: int = 0
    """Number of processed messages."""
    look_again_at: int | None = None
    """When to check again without a new message, if nothing was made."""


class Steps(Protocol):
    """Processes agenda entries of one policy."""

    def subject(self, scope: Scope) -> Subject:
        """Return the entry that a user's summaries depend on."""

    async def step(self, entry: Entry, *, asked: bool = False) -> Step:
        """Do one step for an entry. The caller repeats it until nothing is made."""
