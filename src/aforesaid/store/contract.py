"""What every store promises.

Ordering. Sequence numbers grow strictly in the order in which messages become visible, per space; a reader who has
seen message n will never see a smaller number appear later. Clocks play no part. Cursors and archives go by sequence
number. What people and models read (`Messages`, `Sessions`, `CoveredMessages`, `MessagesBetween`) goes by when it was
said, ties by sequence number: an import may store the newest message first.

Atomicity. `apply` stores all of its changes or none. When it raises, nothing of it is visible to anybody, and the
same call can be made again. When it returns with `durable=True`, the changes survive `kill -9` and a power cut.
Cancelling a caller that waits for `apply` does not take its changes back.

Visibility. A message is found by its words as soon as `apply` has returned.

Changes are values of `aforesaid.domain.change`, questions those of `aforesaid.store.questions`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from aforesaid.domain.change import Change
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Component, Verification
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import Purged, Row
from aforesaid.store.questions import Question

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
