"""What every store promises, what its checks report, and what errors of databases mean."""

from __future__ import annotations

import errno
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Check, Component, Verification
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import Purged, Row
from aforesaid.errors import AforesaidError, StoreError, StoreFailed, StoreFull, StoreUnavailable
from aforesaid.store.operations import Change, Question
from aforesaid.store.people import AuditAccess

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


@runtime_checkable
class Store(Protocol):
    """A place where the log and what is derived from it are kept."""

    async def apply(self, changes: Sequence[Change], progress: Progress | None = None) -> Receipt:
        """Store all changes, or none and raise.

        `progress` counts the changes that were prepared, then those that were stored. It may be called from another
        thread. When it raises, nothing is stored.
        """

    async def read(self, question: Question[T]) -> T:
        """Answer a question."""

    def dump(self, *, vectors: bool = False) -> AsyncIterator[Sequence[Row]]:
        """Give out everything as it is at one moment, page by page, while the store is in use.

        In this order: messages (by number, space by space where each space has its own), sessions, summaries and
        memories (by number), facts (by version), forgotten, settings, users, days, spending, receipts, audit,
        vectors if asked.
        The change `Restore` takes the rows of it.
        """

    async def verify(self, progress: Progress | None = None) -> Verification:
        """Check everything that is stored against everything else. Reads all of it."""

    async def backup(self, target: Path, progress: Progress | None = None) -> None:
        """Copy the store as it is now to a new file, while it is in use. Raises InvalidInput if `target` exists."""

    async def purge(self, scope: Scope, actor: str = "aforesaid") -> Purged:
        """Erase a user for good, and leave an audit row that says how much. Raises NotFound for one nobody knows.

        When this returns, no byte of what was erased is left in the store's files, nor in copies made afterwards.
        Erased are the messages that the user owns or, in another's memory, said; all that is known about the user; the
        summaries and memories of others that were made with these messages (day summaries: of the same days, as they
        read all that was said in shared threads). What those had archived is active again, and is summarised anew. No
        number is given out twice. When it raises after it began, call it again: it goes on where it stopped.
        """

    async def erase(self, scope: Scope, seqs: Sequence[int], actor: str = "aforesaid") -> Purged:
        """Erase messages of a user for good, in all their versions, like `purge`. Those that are gone are no error.

        Erased are also the summaries and memories that were made with them. What these had archived is active again,
        and is summarised anew.
        """

    async def health(self) -> Component:
        """Say how the store is doing. Answers also when the store does not."""

    async def close(self) -> None:
        """Finish what was handed in, then let go of everything. Closing twice is fine."""


_SHOWN: Final = 5
"""Maximum examples named of each kind of damage."""


def run(name: str, findings: Callable[[], Iterable[str]]) -> Check:
    """Run one check. A store too damaged to be checked has failed it."""
    started = time.monotonic()
    found: list[str] = []
    try:
        found.extend(findings())
    except Exception as error:
        # Whatever damage does to a check, the others still say what they find.
        found.append(f"the check could not finish: {error}")
    return told(name, found, started)


def told(name: str, found: Sequence[str], started: float) -> Check:
    """Say what a check found that started then, by the monotonic clock."""
    detail = "; ".join(found[:_SHOWN])
    if len(found) > _SHOWN:
        detail += f"; and {len(found) - _SHOWN} more"
    return Check(name=name, ok=not found, detail=detail or "ok", seconds=time.monotonic() - started)


_MOST_NAMED: Final = 50
"""Maximum numbers of missing records that are named for each kind."""
_MOST_SCANNED: Final = 10_000_000
"""Numbers above this do not begin at 1: messages of a fallback store have very large ones."""


@dataclass(frozen=True, slots=True)
class Salvage:
    """Rows in the order of a dump, and what is missing."""

    rows: Sequence[Row]
    lost: tuple[str, ...]
    """What could not be read, one line each."""


def missing(what: str, there: Collection[int], given: int, named: Collection[int] = ()) -> list[str]:
    """Return a line that names the records whose numbers were given out and that are not there; none if all are.

    `given` is the highest number that was given out, as far as it is known. Records in `named` have a line already.
    """
    last = max([*there, given])
    first = 1 if last <= _MOST_SCANNED else min(there, default=last)
    gone = sorted(set(range(first, last + 1)).difference(there, named))
    return [f"{what} that are not there (erased before, or lost): {ranges(gone[:_MOST_NAMED])}"] if gone else []


def ranges(numbers: Sequence[int]) -> str:
    """Write numbers as people do: #3, #5 to #9."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(f"#{first}" if first == last else f"#{first} to #{last}" for first, last in parts)


MANY: Final = 200
"""From this number of changes on they are prepared in another thread, so that the event loop goes on."""
EVERY: Final = 1_000
"""Changes between two reports."""


def reporting(items: Sequence[T], what: str, progress: Progress | None) -> Iterator[T]:
    """Yield the items, and report after every thousandth of them, and after the last, how many were dealt with."""
    if progress is None:
        yield from items
        return
    for place, item in enumerate(items, 1):
        yield item
        if place % EVERY == 0 or place == len(items):
            progress(what, place, len(items))


@dataclass(frozen=True, slots=True)
class Rule:
    """Some errors of a library, and the error of ours that they become."""

    errors: str
    """Which errors, in the words of the library's documentation."""
    applies: Callable[[BaseException], bool]
    becomes: type[AforesaidError]
    advice: str
    """What to do, added to the message. Empty where the message says all."""

    @property
    def consequence(self) -> str:
        """What it leads to: fail over, retry or refuse."""
        return self.becomes.consequence if issubclass(self.becomes, StoreError) else "refuse"


def rule_for(error: BaseException, rules: Sequence[Rule]) -> Rule:
    """Return the first rule that applies. The last one of each table applies to everything."""
    return next(rule for rule in rules if rule.applies(error))


def of(*kinds: type[BaseException]) -> Callable[[BaseException], bool]:
    """Make a condition: the error is of one of these classes."""
    return lambda error: isinstance(error, kinds)


def numbered(*numbers: int) -> Callable[[BaseException], bool]:
    """Make a condition: the error is one of the operating system with one of these numbers."""
    return lambda error: isinstance(error, OSError) and error.errno in numbers


FILE_RULES: Final = (
    Rule("ENOSPC, EDQUOT", numbered(errno.ENOSPC, errno.EDQUOT), StoreFull, "free some space and try again"),
    Rule(
        "EACCES, EPERM, EROFS, ENOENT, ENOTDIR, EISDIR, ELOOP",
        numbered(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP),
        StoreUnavailable,
        "check the folder and its rights",
    ),
    Rule("every other error of the operating system", of(OSError), StoreFailed, "the disk failed"),
)
"""What errors of the operating system mean."""


Owner: TypeAlias = tuple[str, str]
"""A space and a user."""
Listener: TypeAlias = Callable[[frozenset[Owner] | None], None]
"""Called after a change with the users whose memory it changed; None for all of them."""


class Announcements:
    """The listeners of one memory. They are called on the event loop that made the change, and must not block."""

    def __init__(self) -> None:
        self._listeners: list[tuple[Listener, bool]] = []

    def listen(self, listener: Listener, *, accesses: bool = True) -> Callable[[], None]:
        """Call a function after every change. Return what stops that.

        Without `accesses`, records of who viewed something are no changes.
        """
        entry = (listener, accesses)
        self._listeners.append(entry)
        return lambda: self._listeners.remove(entry)

    def announce(self, changes: Sequence[Change]) -> None:
        """Tell the listeners whose memory was changed."""
        if not self._listeners:
            return
        if any(change.of_many for change in changes):
            self._tell(None, None)
            return
        self._tell(owners(changes), owners(each for each in changes if not isinstance(each, AuditAccess)))

    def announce_all(self) -> None:
        """Tell the listeners that anybody's memory may have been changed."""
        self._tell(None, None)

    def _tell(self, all_owners: frozenset[Owner] | None, changed: frozenset[Owner] | None) -> None:
        for listener, accesses in tuple(self._listeners):
            owners = all_owners if accesses else changed
            if owners is None or owners:
                listener(owners)


class WrappedStore:
    """Passes on to a store whatever a subclass does not do in its own way."""

    def __init__(self, store: Store) -> None:
        self._inner = store

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what the store has
        return getattr(self._inner, name)


class _AnnouncingStore(WrappedStore):
    """Announces what was changed."""

    def __init__(self, store: Store, announcements: Announcements) -> None:
        super().__init__(store)
        self._announcements = announcements

    async def apply(self, changes: Sequence[Change], progress: Progress | None = None) -> Receipt:
        receipt = await self._inner.apply(changes, progress)
        self._announcements.announce(changes)
        return receipt

    async def purge(self, scope: Scope, actor: str = "aforesaid") -> Purged:
        done = await self._inner.purge(scope, actor)
        self._announcements.announce_all()  # Others' summaries and memories go with it.
        return done

    async def erase(self, scope: Scope, seqs: Sequence[int], actor: str = "aforesaid") -> Purged:
        done = await self._inner.erase(scope, seqs, actor)
        self._announcements.announce_all()
        return done


def announcing(store: Store, announcements: Announcements) -> Store:
    """Return a store that announces its changes."""
    return cast("Store", _AnnouncingStore(store, announcements))


def owners(changes: Iterable[Change]) -> frozenset[Owner]:
    """Return the users whose memory changes are about."""
    return frozenset(change.whose[:2] for change in changes if change.visible and change.whose is not None)
