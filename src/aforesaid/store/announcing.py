"""A store that says, in its own process, whose memory was changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from aforesaid.domain.change import AddMessage, Archive, Change, Discard, Spend
from aforesaid.domain.memory import AddMemory, AuditAccess, ChangeMemory, MarkExtracted, PutDerived
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Component, Verification
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import AddView
from aforesaid.domain.transfer import Purged, Restore, Row
from aforesaid.store.contract import Progress, Store
from aforesaid.store.questions import Question

T = TypeVar("T")

Owner: TypeAlias = tuple[str, str]
"""A space and a user."""
Listener: TypeAlias = Callable[[frozenset[Owner] | None], None]
"""Called after a change with the users whose memory it changed; None for all of them."""

_OF_MANY: Final = (Restore, Discard)
"""Changes whose users are not known here."""
_INVISIBLE: Final = (Spend, MarkExtracted, PutDerived)
"""Changes of a user's cursors and counters, which nobody reads."""


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
        if any(isinstance(change, _OF_MANY) for change in changes):
            self._tell(None, None)
            return
        self._tell(_owners(changes), _owners(each for each in changes if not isinstance(each, AuditAccess)))

    def announce_all(self) -> None:
        """Tell the listeners that anybody's memory may have been changed."""
        self._tell(None, None)

    def _tell(self, all_owners: frozenset[Owner] | None, changed: frozenset[Owner] | None) -> None:
        for listener, accesses in tuple(self._listeners):
            owners = all_owners if accesses else changed
            if owners is None or owners:
                listener(owners)


class _AnnouncingStore:
    """Passes everything on to a store, and announces what was changed."""

    def __init__(self, store: Store, announcements: Announcements) -> None:
        self._inner = store
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

    async def read(self, question: Question[T]) -> T:
        return await self._inner.read(question)

    def dump(self, *, vectors: bool = False) -> AsyncIterator[Sequence[Row]]:
        return self._inner.dump(vectors=vectors)

    async def verify(self, progress: Progress | None = None) -> Verification:
        return await self._inner.verify(progress)

    async def backup(self, target: Path, progress: Progress | None = None) -> None:
        await self._inner.backup(target, progress)

    async def health(self) -> Component:
        return await self._inner.health()

    async def close(self) -> None:
        await self._inner.close()


def announcing(store: Store, announcements: Announcements) -> Store:
    """Return a store that announces its changes."""
    return _AnnouncingStore(store, announcements)


def _owners(changes: Iterable[Change]) -> frozenset[Owner]:
    return frozenset(owner for owner in map(_owner, changes) if owner is not None)


def _owner(change: Change) -> Owner | None:
    """Return whose memory a change is about; None where nobody can see it."""
    if isinstance(change, _INVISIBLE):
        return None
    if isinstance(change, AddMessage | AddMemory | Archive | AddView):
        scope: Scope | None = change.draft.scope
    elif isinstance(change, ChangeMemory):
        return change.memory.space, change.memory.user
    else:
        scope = getattr(change, "scope", None)
    return None if scope is None else (scope.space, scope.user)
