"""Changes to what is known about a user."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeAlias

from aforesaid.domain import checks
from aforesaid.domain.memory import MemoryDraft, MemoryRecord, check_weights, check_words
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput


class Superseded(NamedTuple):
    """A memory that a new one takes the place of, as it was when that was decided."""

    memory: int
    revision: int


@dataclass(frozen=True, slots=True)
class AddMemory:
    """Store a memory, in the place of others if there are some.

    Raises SourcesChanged when one of them has changed since it was read, NotFound when it is not this user's.
    """

    draft: MemoryDraft
    actor: str = "aforesaid"
    supersedes: tuple[Superseded, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeMemory:
    """Put a memory in the place of the stored one with the same id. What it was before is kept.

    Raises SourcesChanged when the stored one is not of the revision that `memory` has: somebody else changed it.
    Whose it is, when it was stored and its sources stay as they are.
    """

    memory: MemoryRecord
    action: str
    actor: str = "aforesaid"

    def __post_init__(self) -> None:
        """Refuse what cannot be stored."""
        memory = self.memory
        check_words(memory.category, memory.state, memory.trust)
        checks.message_text(memory.text)
        check_weights(memory.importance, memory.priority)
        for tag in memory.tags:
            checks.identifier(tag, "a tag")
        if memory.active != (memory.state == "active"):
            raise InvalidInput(f"a memory in the state {memory.state!r} cannot have active={memory.active}")


@dataclass(frozen=True, slots=True)
class CountMemory:
    """Count that something known was said again. Its sources grow up to a limit."""

    scope: Scope
    memory: int
    times: int
    seen_at: datetime
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Forget:
    """Keep in mind that something was asked to be forgotten, so that it is not learned again from what is old."""

    scope: Scope
    words: tuple[str, ...]
    actor: str = "aforesaid"

    def __post_init__(self) -> None:
        """Refuse text that cannot be stored."""
        for words in self.words:
            checks.storable(words, "what to forget")


@dataclass(frozen=True, slots=True)
class PutDerived:
    """Keep something that was worked out, one of each kind for each user.

    With `instead_of`, the one that is kept must have that key (an empty text: there must be none); otherwise
    SourcesChanged is raised.
    """

    scope: Scope
    kind: str
    key: str
    value: str
    instead_of: str | None = None

    def __post_init__(self) -> None:
        """Refuse text that cannot be stored."""
        checks.storable(self.value, f"the {self.kind}")


@dataclass(frozen=True, slots=True)
class MarkExtracted:
    """Say that a user's messages were looked through, from the one after `after` up to `up_to`.

    Raises SourcesChanged when somebody else has extracted from them already.
    """

    scope: Scope
    after: int
    up_to: int


@dataclass(frozen=True, slots=True)
class AuditAccess:
    """Write down that somebody saw what is known about a user."""

    scope: Scope
    actor: str
    action: str
    subject: str


MemoryChange: TypeAlias = AddMemory | ChangeMemory | CountMemory | Forget | PutDerived | MarkExtracted | AuditAccess

SOURCES_KEPT = 20
"""Of a memory that was said very often, so many sources are kept."""
