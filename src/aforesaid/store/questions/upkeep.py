"""Questions of background work."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from aforesaid.domain.agenda import Ahead, Backlog, Entry, Subject
from aforesaid.domain.retention import Discardable
from aforesaid.domain.scope import Scope
from aforesaid.store.questions.base import Question


@dataclass(frozen=True, slots=True)
class Unprocessed(Question[Ahead]):
    """The oldest messages, of all spaces, that a policy has not yet seen."""

    needs_store = True
    policy: str
    limit: int


@dataclass(frozen=True, slots=True)
class DueEntries(Question[list[Entry]]):
    """What a policy has to look at by a moment, longest waiting first.

    With `failing` also what failed and is to be tried again later.
    """

    needs_store = True
    policy: str
    due_by: int
    limit: int
    failing: bool = False


@dataclass(frozen=True, slots=True)
class PlannedEntry(Question[Entry | None]):
    """What is planned for one subject."""

    needs_store = True
    subject: Subject

    @property
    def within_space(self) -> str:
        """The subject's space."""
        return self.subject.space

    @property
    def short(self) -> bool:
        """True: the answer takes little time."""
        return True


@dataclass(frozen=True, slots=True)
class PolicyBacklog(Question[Backlog]):
    """How much a policy has to do by a moment, and how much of it fails."""

    needs_store = True
    policy: str
    due_by: int


@dataclass(frozen=True, slots=True)
class DiscardableCount(Question[int]):
    """How much the change `Discard` would remove in all, if it were made again and again."""

    needs_store = True
    what: Discardable
    before: int


@dataclass(frozen=True, slots=True)
class TokensSpent(Question[int]):
    """The tokens that a user spent on a day; with None, what all spent together."""

    day: date
    scope: Scope | None

    @property
    def short(self) -> bool:
        """True: the answer takes little time."""
        return True
