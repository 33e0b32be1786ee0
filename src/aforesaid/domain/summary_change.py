"""Changes to summaries and to the agenda of pending summaries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from aforesaid.domain.agenda import Subject, Touch
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import Quality, ViewDraft, check_origin, summary_text


@dataclass(frozen=True, slots=True)
class AddView:
    """Store a summary that archives nothing, in the place of the one before it.

    Raises SourcesChanged when another is the newest of its kind by now, when it covers other messages than was said, or
    when a message that was read for it was edited or taken back.
    """

    draft: ViewDraft
    actor: str = "aforesaid"


@dataclass(frozen=True, slots=True)
class Revise:
    """Store a newer version of an active summary: as a person edited it, or as a model wrote it anew.

    It covers what the old version covers, which is kept. Raises SourcesChanged when that is not active any more.
    """

    scope: Scope
    summary: int
    text: str
    edited_by: str | None = None
    model: str | None = None
    prompt: str = ""
    quality: Quality | None = None
    created_at: int | None = None
    actor: str = "aforesaid"

    def __post_init__(self) -> None:
        """Raise InvalidInput for an empty text."""
        summary_text(self.text)
        check_origin(self.model, self.prompt)


@dataclass(frozen=True, slots=True)
class Advance:
    """Update the agenda of a policy for the messages after `after`, up to `up_to`.

    Raises SourcesChanged when somebody else has processed them already, or when some of them were erased since.
    """

    policy: str
    after: int
    up_to: int
    touched: tuple[Touch, ...]
    space: str = ""
    """The space of the messages; a store that numbers each space for itself hands out those of one at a time."""
    messages: int | None = None
    """How many messages were read; None if their number does not matter."""


@dataclass(frozen=True, slots=True)
class FinishEntry:
    """Record that a subject was processed. Messages that arrived since then keep it on the agenda."""

    subject: Subject
    last_seq: int
    """The last message at the time of the check."""
    due_at: int | None
    """Time of the next check."""
    done_at: int | None = None
    """When it was summarised; None if it was not."""
    error: str | None = None
    """The error; None if there was none."""


SummaryChange: TypeAlias = AddView | Revise | Advance | FinishEntry
