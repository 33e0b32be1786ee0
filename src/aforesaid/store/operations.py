"""What can be asked of a store and changed in it, as values.

The value says how: `answer` of a question and `carry_out` of a change are generators of statements for both databases
(`store.sql`). A change also writes, by the methods of its transaction; when it raises, nothing of its change set is
stored. Each subject has a file: messages, summaries, memories, people, agenda, erasing. Searches (`store.searches`) and
appending messages (`store.placing`) are written once for each database, because that is much faster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, cast

from aforesaid.domain.hit import VectorRow
from aforesaid.domain.memory import NoteKey, NoteVector
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import VectorOf
from aforesaid.store.checksums import Checksums
from aforesaid.store.sql import Answer

T = TypeVar("T", covariant=True)  # noqa: PLC0105 - the usual name would say less


class Question(Generic[T]):
    """Something asked of a store, about all spaces unless it says otherwise."""

    __slots__ = ()
    needs_store: ClassVar[bool] = False
    """Only the primary store may answer; never the fallback."""

    @property
    def within_space(self) -> str | None:
        """The space that the answer comes from; None for all of them."""
        return None

    @property
    def short(self) -> bool:
        """Whether the answer takes so little time that several may be read in one go."""
        return False

    def answer(self) -> Answer[T]:
        """Return the answer. Searches have none: each database answers them in its own way."""
        raise TypeError(f"{type(self).__name__} is answered by each database in its own way")


@dataclass(frozen=True, slots=True)
class OfScope(Question[T]):
    """A question about what a scope holds."""

    scope: Scope

    @property
    def within_space(self) -> str:
        return self.scope.space


@dataclass(frozen=True, slots=True)
class OfScopeShort(OfScope[T]):
    """A question about a scope whose answer is short."""

    short = True


@dataclass(frozen=True, slots=True)
class OfSpace(Question[T]):
    """A question about a whole space."""

    space: str

    @property
    def within_space(self) -> str:
        return self.space


class Change:
    """Something that a change set does. A list of changes is applied as a whole or not at all."""

    __slots__ = ()
    visible: ClassVar[bool] = True
    """Whether somebody can see what it changes: cursors and counters are read by nobody."""
    of_many: ClassVar[bool] = False
    """Whether it changes memories of users whom it does not name."""

    @property
    def whose(self) -> Scope | None:
        """The user whose memory it changes; None where it is nobody's."""
        return cast("Scope | None", getattr(self, "scope", None))

    @property
    def spaces(self) -> Collection[str]:
        """The spaces that it writes to. What is about the whole store belongs to the space without a name."""
        return ("" if self.whose is None else self.whose.space,)

    def carry_out(self, within: Transaction) -> Answer[Any]:  # noqa: ARG002 - each change has its own
        raise TypeError(f"{type(self).__name__} is carried out by each database in its own way")


class Transaction(ABC):
    """One write transaction of a database. What it writes is there before the next statement is run."""

    __slots__ = ()
    checksums: ClassVar[Checksums]

    @abstractmethod
    def later(self, text: str, *values: Any) -> None:  # noqa: ANN401 - whatever the text binds
        """Run a statement for both databases, or for the one that it has a text for."""

    def insert(self, table: str, row: Mapping[str, Any], *, replacing: tuple[str, ...] = ()) -> None:
        """Insert a row with its checksum. `replacing` is the key of a row that it may take the place of."""
        self.later(self.checksums.insert_or_replace(table, tuple(row), replacing), *row.values())

    def update(self, table: str, where: str, key: tuple[Any, ...], **values: Any) -> None:  # noqa: ANN401
        """Set columns of the rows that a condition finds, and their checksums. `key` is what the condition binds."""
        self.later(self.checksums.update_bound(table, where, len(key), tuple(values)), *key, *values.values())

    @abstractmethod
    def number(self, table: str, space: str, least: int = 0) -> int:
        """Return the number of a new row, which is at least `least`."""

    @abstractmethod
    def space(self, space: str) -> dict[str, str]:
        """Return the column that names the space of a row; SQLite has none."""

    @abstractmethod
    def whose(self, space: str, user: str) -> dict[str, Any]:
        """Return the columns that name the owner of a row."""

    @abstractmethod
    def person(self, space: str, name: str, at: int | None = None) -> Any:  # noqa: ANN401 - a number or a name
        """Return what a column holds of a person, who is stored if they are new (since `at`, or now)."""

    @abstractmethod
    def thread(self, space: str, name: str) -> Any:  # noqa: ANN401
        """Return what a column holds of a thread, which is stored if it is new."""

    @abstractmethod
    def terms(self, text: str) -> dict[str, Any]:
        """Return the column by which the words of a note are found; SQLite has an index instead."""

    @abstractmethod
    def own(self, scope: Scope, at: int) -> None:
        """Create the user if missing, and mark them as an owner."""

    @abstractmethod
    def audit(self, scope: Scope, actor: str, action: str, subject: str, at: int | None = None) -> None:
        """Add a row to the audit log, at a moment (microseconds) or now."""

    @abstractmethod
    def index_note(self, scope: Scope, key: NoteKey, text: str, before: str | None = None) -> None:
        """Let a summary or memory be found by its words; one whose text changed, by the new ones."""

    @abstractmethod
    def add_vectors(self, embedder: str, rows: Sequence[VectorRow], up_to: int) -> None:
        """Store vectors of messages, and how far the embedder has come."""

    @abstractmethod
    def add_note_vectors(self, embedder: str, rows: Sequence[NoteVector]) -> None:
        """Store vectors of notes, and how far the embedder has come."""

    @abstractmethod
    def put_vector(self, row: VectorOf) -> Answer[bool]:
        """Store the vector of a message unless it has one. Return whether it was stored."""

    @abstractmethod
    def overwriting(self) -> AbstractContextManager[None]:
        """Overwrite the bytes of what is deleted, where the database writes files of its own."""

    @abstractmethod
    def dropped(self, space: str) -> None:
        """Forget what is remembered of the people, threads and sessions of a space: some were deleted or changed."""
