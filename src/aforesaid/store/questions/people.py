"""Questions about people, settings and the store itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from aforesaid.domain.context_receipt import ContextReceipt
from aforesaid.domain.report import AuditEntry, ListedUser, Setting, SpaceTotals, Stats, User
from aforesaid.store.questions.base import OfScope, OfScopeShort, OfSpace, Question


@dataclass(frozen=True, slots=True)
class Settings(OfScopeShort[list[Setting]]):
    """The user's settings, by name."""


@dataclass(frozen=True, slots=True)
class AuditRows(OfScope[list[AuditEntry]]):
    """The newest audit rows about the user, oldest first."""

    limit: int = 100


@dataclass(frozen=True, slots=True)
class Receipts(OfScopeShort[list[ContextReceipt]]):
    """Receipts of the user's contexts, newest first: since a moment (microseconds), by id, or by what they led to."""

    limit: int = 100
    since: int | None = None
    before: str | None = None
    """Only receipts with a smaller id, which are older."""
    ids: Sequence[str] | None = None
    replies: Sequence[int] | None = None
    """Sequence numbers of replies."""


@dataclass(frozen=True, slots=True)
class DisplayNames(OfSpace[dict[str, str]]):
    """The display names of a space by user id: of everybody who wrote under one, or of `users` alone.

    The name of the message that was said last counts, whoever owns that message. Authors who own nothing are included,
    the assistant too (under `assistant`). Does not read the log.
    """

    users: Collection[str] | None = None


@dataclass(frozen=True, slots=True)
class Users(Question[list[User]]):
    """The users who own something, of one space or of all, by space and id."""

    space: str | None = None


@dataclass(frozen=True, slots=True)
class UsersPage(OfSpace[list[ListedUser]]):
    """The users of a space who own something, last active first: `limit` of them after the first `skip`.

    With `users`, only these; with `id_part`, those too whose id contains it, whatever the case of its ASCII letters.
    The log is read for the names and first times of the returned users alone.
    """

    needs_store = True
    limit: int = 100
    skip: int = 0
    users: Collection[str] | None = None
    id_part: str | None = None


@dataclass(frozen=True, slots=True)
class TotalsOfSpaces(Question[list[SpaceTotals]]):
    """The counts of each space that has users, last active first. Does not read the log."""

    needs_store = True


@dataclass(frozen=True, slots=True)
class IrregularIds(Question[frozenset[str]]):
    """The ids of users, spaces, threads and named sessions that `domain.known_ids.regular` would change."""

    needs_store = True


@dataclass(frozen=True, slots=True)
class Totals(Question[Stats]):
    """Totals of the whole store."""


@dataclass(frozen=True, slots=True)
class Marks(Question[dict[str, str]]):
    """Small texts about the store itself, by name."""

    needs_store = True


@dataclass(frozen=True, slots=True)
class ChangeToken(Question[str]):
    """A text that is another one once any process has changed something. Cheap: no data is read.

    A store that one process has to itself always returns the same: that process knows what it changes.
    """

    needs_store = True
