"""Changes to the memories and facts of a user."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeAlias

from aforesaid.domain import checks
from aforesaid.domain.memory import (
    MemoryDraft,
    MemoryRecord,
    check_kind,
    check_tags,
    check_times,
    check_weights,
    check_words,
)
from aforesaid.domain.note import NoteKey
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput


class Superseded(NamedTuple):
    """A memory to be superseded, with the revision that was read."""

    memory: int
    revision: int


@dataclass(frozen=True, slots=True)
class AddMemory:
    """Store a memory, in the place of others if there are some.

    Raises SourcesChanged when one of them has changed since it was read, or when a source was edited or taken back;
    NotFound when one is not this user's.
    """

    draft: MemoryDraft
    actor: str = "aforesaid"
    supersedes: tuple[Superseded, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeMemory:
    """Replace the stored memory with the same id. The earlier version is kept.

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
        check_kind(memory.kind, memory.about, memory.language, memory.confidence)
        checks.message_text(memory.text)
        check_weights(memory.importance, memory.priority)
        check_tags(memory.tags)
        check_times(memory.remind_at, memory.expires_at, memory.delivered_at, memory.valid_from, memory.valid_to)
        check_times(memory.said_at, *(memory.event or ())[:2])
        checks.identifier(self.actor, "the actor")
        if memory.active != (memory.state == "active"):
            raise InvalidInput(f"a memory in the state {memory.state!r} cannot have active={memory.active}")


@dataclass(frozen=True, slots=True)
class CountMemory:
    """Count that a memory was stated again. Its list of sources grows up to a limit.

    Raises SourcesChanged when a source was edited or taken back.
    """

    scope: Scope
    memory: int
    times: int
    seen_at: datetime
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Forget:
    """Store a request to forget, so that old messages do not bring the memory back.

    With `newest`, the user's newest memory must have that id (0: there must be none); otherwise SourcesChanged is
    raised, because a memory that was stored since may be one of those to forget.
    """

    scope: Scope
    words: tuple[str, ...]
    actor: str = "aforesaid"
    newest: int | None = None

    def __post_init__(self) -> None:
        """Refuse text that cannot be stored."""
        for words in self.words:
            checks.storable(words, "what to forget")


@dataclass(frozen=True, slots=True)
class PutDerived:
    """Keep something that was worked out, one of each kind for each user.

    With `instead_of`, the one that is kept must have that key (an empty text: there must be none); otherwise
    SourcesChanged is raised. With `known_user`, nothing is kept if nothing else is stored of the user, who may have
    been purged since. SourcesChanged is also raised when a message or a note that it was worked out from is gone.
    """

    scope: Scope
    kind: str
    key: str
    value: str
    instead_of: str | None = None
    known_user: bool = False
    messages: tuple[int, int, int] | None = None
    """The first and the last of the user's messages that it was worked out from, and how many these are."""
    notes: tuple[NoteKey, ...] = ()
    """The user's summaries and memories that it was worked out from."""

    def __post_init__(self) -> None:
        """Refuse text that cannot be stored."""
        checks.storable(self.value, f"the {self.kind}")


@dataclass(frozen=True, slots=True)
class MarkExtracted:
    """Record that memories were extracted from a user's messages after `after`, up to `up_to`.

    Raises SourcesChanged when somebody else has extracted from them already. With `requests`, the user must have made
    that many requests to forget; otherwise SourcesChanged is raised, because a memory of the same change set may be
    one that was forgotten since it was extracted.
    """

    scope: Scope
    after: int
    up_to: int
    requests: int | None = None


@dataclass(frozen=True, slots=True)
class AuditAccess:
    """Add an audit row: who viewed a user's data."""

    scope: Scope
    actor: str
    action: str
    subject: str

    def __post_init__(self) -> None:
        """Refuse texts that cannot be stored, or are too long."""
        checks.identifier(self.actor, "the actor")
        checks.identifier(self.action, "the action")
        checks.short_text(self.subject, "the subject")


MemoryChange: TypeAlias = AddMemory | ChangeMemory | CountMemory | Forget | PutDerived | MarkExtracted | AuditAccess

SOURCES_KEPT = 20
"""Maximum number of sources stored per memory."""
