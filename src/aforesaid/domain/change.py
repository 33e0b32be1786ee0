"""Changes: the only way anything enters a store. A list of them is applied as a whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import repeat
from types import EllipsisType
from typing import Final, Literal, NamedTuple, TypeAlias, get_args, overload

from aforesaid.domain import checks
from aforesaid.domain.checks import SettingValue
from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.hit import VectorRow
from aforesaid.domain.memory import MemoryChange, NoteVector
from aforesaid.domain.message import Draft
from aforesaid.domain.scope import SESSION_SILENCE, Scope
from aforesaid.domain.summary import SummaryChange, SummaryDraft
from aforesaid.domain.transfer import Restore
from aforesaid.errors import InvalidInput, SourcesChanged

Discardable: TypeAlias = Literal[
    "messages", "summaries", "memories", "versions", "derived", "audit", "spending", "receipts"
]
"""What can be deleted by age.

`messages`: whole archives, by their last message; their summaries stay. `summaries`: replaced or rolled back ones that
no other summary covers. `memories`: inactive ones, by their last change, except those that wait for approval.
`versions`: earlier versions of facts and memories. `derived`: computed values, which can be computed again. `audit`:
entries of the audit log. `spending`: token counts per day. `receipts`: receipts of contexts.
"""
DISCARDABLE: Final[tuple[Discardable, ...]] = get_args(Discardable)


@dataclass(frozen=True, slots=True)
class Discard:
    """Delete about `limit` rows that are older than `before` (in microseconds), oldest first.

    Active rows are never deleted and ids are never reused. The audit log records the number of deleted rows per user.
    """

    what: Discardable
    before: int
    limit: int = 500
    actor: str = "aforesaid"

    def __post_init__(self) -> None:
        """Raise InvalidInput for kinds that cannot be deleted by age."""
        if self.what not in DISCARDABLE:
            raise InvalidInput(f"{self.what!r} cannot be removed by age; use one of {', '.join(DISCARDABLE)}")
        checks.at_least(self.limit, 1, "the limit")


@dataclass(frozen=True, slots=True)
class Discarded:
    """The number of deleted items."""

    count: int


@dataclass(frozen=True, slots=True)
class PutMark:
    """Store a value about the store itself under a name; None deletes it.

    With `only_if`, raises SourcesChanged unless the stored value is that one (None: there is none).
    """

    name: str
    value: str | None
    only_if: str | EllipsisType | None = ...

    def __post_init__(self) -> None:
        """Raise InvalidInput for a name or value that cannot be stored."""
        checks.identifier(self.name, "the mark's name")
        if self.value is not None:
            checks.storable(self.value, "the mark")

    def check(self, current: str | None) -> None:
        """Raise SourcesChanged if the stored value is not the one that `only_if` names."""
        if self.only_if is not ... and self.only_if != current:
            raise SourcesChanged(f"the mark {self.name!r} was changed by somebody else")


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The result of one retention rule."""

    kind: str
    action: Literal["archive", "purge"]
    days: int
    before: datetime
    """The rule applies to items older than this."""
    count: int


@dataclass(frozen=True, slots=True)
class Cleanup:
    """The results of all retention rules."""

    dry_run: bool
    rules: tuple[Cleaned, ...]
    error: str | None = None
    """The error that stopped the cleanup; the next run continues."""


class AddMessage(NamedTuple):
    """Append a message. A repeated delivery is recognised and answered with what is stored.

    With `draft.replaces`, it is a new version of an earlier message of the same owner, thread and role (or of the
    newest version of that one). It keeps that message's time unless the draft names one. Memories of the user that rest
    on versions with another text alone are deactivated, and what such a memory had superseded is active again. Raises
    NotFound when there is no such message, InvalidInput when the role is another.
    """

    draft: Draft
    silence: int = SESSION_SILENCE
    """The silence that closes a session, in microseconds."""


@dataclass(frozen=True, slots=True)
class AddMessages(Sequence[AddMessage]):
    """The change set of a batch: many messages of one scope. Each `AddMessage` is made when it is read."""

    drafts: Sequence[Draft]
    silence: int = SESSION_SILENCE

    def __len__(self) -> int:
        return len(self.drafts)

    def __iter__(self) -> Iterator[AddMessage]:
        return map(AddMessage, self.drafts, repeat(self.silence))

    @overload
    def __getitem__(self, index: int) -> AddMessage: ...

    @overload
    def __getitem__(self, index: slice) -> AddMessages: ...

    def __getitem__(self, index: int | slice) -> AddMessage | AddMessages:
        if isinstance(index, slice):
            return AddMessages(self.drafts[index], self.silence)
        return AddMessage(self.drafts[index], self.silence)


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Undo what was made from messages of the user that are taken back by tombstones in the same change set.

    Memories that rest on these messages alone are deactivated, and what such a memory had superseded is active again.
    Summaries that cover one of them are deleted; what they archived is active again, and is summarised anew.
    """

    scope: Scope
    messages: tuple[int, ...]
    """Any version of each message."""
    actor: str = "aforesaid"


@dataclass(frozen=True, slots=True)
class SetAside:
    """Let messages of the user not count any more, because their chat goes on from another version of an earlier turn.

    Histories, recent windows and what is made from messages leave them out, as they leave out older versions; searches
    still find them. Memories that rest on them alone are deactivated. One counts again when a new version of it is
    stored. Messages of others, and those that do not exist, are left alone.
    """

    scope: Scope
    messages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Archive:
    """Store a summary and archive its sources; archived messages get the next chunk id.

    Raises SourcesChanged when a source is not active any more, or when a message that was read for it was edited or
    taken back; NotFound when a source is not this user's.
    """

    draft: SummaryDraft
    actor: str = "aforesaid"


@dataclass(frozen=True, slots=True)
class RollBack:
    """Undo an archive: its sources become active again, and its summary is kept but marked as rolled back.

    Raises SourcesChanged if another summary was made from this one: roll that one back first.
    """

    scope: Scope
    summary: int
    actor: str = "aforesaid"


@dataclass(frozen=True, slots=True)
class PutFacts:
    """Store the next version of a user's facts; older versions are kept.

    With `instead_of`, that version must be the newest (0: there must be none); otherwise SourcesChanged is raised.
    """

    scope: Scope
    text: str
    cause: str
    """The statement that led to this version."""
    actor: str = "aforesaid"
    instead_of: int | None = None

    def __post_init__(self) -> None:
        """Raise InvalidInput for text that cannot be stored."""
        checks.storable(self.text, "the facts")
        checks.storable(self.cause, "the cause")


@dataclass(frozen=True, slots=True)
class PutSetting:
    """Store a setting of a user. None removes it."""

    scope: Scope
    key: str
    value: SettingValue
    actor: str = "aforesaid"

    def __post_init__(self) -> None:
        """Raise InvalidInput for a key or value that cannot be stored."""
        checks.identifier(self.key, "the setting's name")
        checks.setting_value(self.value, "the setting's value")


@dataclass(frozen=True, slots=True)
class AddVectors:
    """Store vectors of messages, and that the embedder has processed the log up to `up_to`. Idempotent.

    A store that numbers each space for itself goes by the last message of each space instead.
    """

    embedder: str
    rows: tuple[VectorRow, ...]
    up_to: int


@dataclass(frozen=True, slots=True)
class AddNoteVectors:
    """Store vectors of summaries and memories, oldest first. Idempotent."""

    embedder: str
    rows: tuple[NoteVector, ...]


@dataclass(frozen=True, slots=True)
class Spend:
    """Count the tokens of a model call, for all users together and for one user if named."""

    day: date
    scope: Scope | None
    tokens: int

    def __post_init__(self) -> None:
        """Raise InvalidInput for a negative count."""
        checks.at_least(self.tokens, 0, "the tokens")


@dataclass(frozen=True, slots=True)
class KeepReceipt:
    """Store the receipt of a context, in the place of one with the same id.

    Nothing is stored for a user of whom nothing else is stored: asking for a context makes nobody a user.
    """

    receipt: ContextReceipt

    @property
    def scope(self) -> Scope:
        """Whose receipt it is."""
        return self.receipt.scope


Change: TypeAlias = (
    AddVectors
    | AddNoteVectors
    | Spend
    | KeepReceipt
    | AddMessage
    | Withdraw
    | SetAside
    | Archive
    | RollBack
    | SummaryChange
    | PutFacts
    | PutSetting
    | MemoryChange
    | Restore
    | Discard
    | PutMark
)
