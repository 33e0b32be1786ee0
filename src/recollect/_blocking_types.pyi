# Made from memory.py by `make stubs`; a test fails when it is out of date.

import os
from collections.abc import Collection, Sequence
from datetime import datetime
from types import TracebackType
from typing import Self

from recollect.domain.hit import Hit
from recollect.domain.message import Message
from recollect.domain.receipt import Receipt
from recollect.domain.report import AuditEntry, Health, Stats, User, Verification
from recollect.domain.scope import Scope
from recollect.domain.session import Session
from recollect.domain.summary import Summary
from recollect.domain.words import HitKind, Role, Within
from recollect.recall import Arms
from recollect.store import Progress
from recollect.upkeep import UpkeepReport

class BlockingMemory:
    """All that is remembered, of all users."""

    def user(
        self,
        user: str | int,
        *,
        space: str | int = ...,
        thread: str | int | None = None,
        session: str | int | None = None,
    ) -> BlockingUserMemory:
        """Return the memory of one user.

        Without a thread, messages go to the user's own direct chat. With one, `within="thread"` also reaches what
        others said there. A session, if named, holds the messages that are added through this handle.
        """

    def users(self, space: str | int | None = None) -> list[User]:
        """Return everybody who owns something, with counts."""

    def stats(self) -> Stats:
        """Return totals."""

    def health(self) -> Health:
        """Say how each part is doing."""

    def upkeep(self, progress: Progress | None = None) -> UpkeepReport:
        """Do all that is due, to the end: embed what was stored. Otherwise it happens in the background."""

    def verify(self, progress: Progress | None = None) -> Verification:
        """Check everything that is stored. Reads all of it; `progress` is called from another thread."""

    def backup(self, path: str | os.PathLike[str], progress: Progress | None = None) -> None:
        """Copy the memory as it is now to a new file, while it is in use."""

    def close(self) -> None:
        """Finish what was handed in and let go of the file. Closing twice is fine."""

    def __enter__(self) -> Self:
        """Return itself."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""

class BlockingUserMemory:
    """What is remembered of one user."""

    scope: Scope

    def add(
        self,
        role: Role,
        text: str,
        *,
        at: datetime | None = None,
        id: str | int | None = None,
        author: str | int | None = None,
        name: str | None = None,
    ) -> Receipt:
        """Store a message for good. When this returns, it is on the disk (`receipt.durable`).

        `at` is when it was said (default: now). `id` is the platform's id. A message with an id that the thread has, or
        with the same author, role, text and given `at`, is recognised and not stored twice (`receipt.duplicate`).
        `author` and `name` say who spoke, where that is not the user (or the assistant) itself.
        """

    def history(
        self,
        limit: int = 50,
        *,
        before: Message | str | int | None = None,
        archived: bool = True,
        within: Within = "user",
    ) -> list[Message]:
        """Return the newest `limit` messages, oldest first. To read on, pass the first one as `before`.

        `before` is a message, its id or its sequence number. `archived=False` leaves out what a summary stands for.
        """

    def search(
        self,
        query: str,
        limit: int = 10,
        *,
        within: Within = "user",
        at: datetime | None = None,
        arms: Arms = "all",
        kinds: Sequence[HitKind] = ...,
        around: int = 0,
        similarity: float | None = None,
        without: Collection[str] = (),
        tokens: int | None = None,
    ) -> list[Hit]:
        """Return what fits best, by its words and by its meaning, best first.

        The query may hold anything. `at` is when it is asked (default: now), for what "last May" means. `kinds` says
        what is looked for: messages, summaries, memories, whole sessions. `around` adds so many messages around each
        hit, a third before it and two thirds after. `similarity` keeps what is at least as near in meaning (up to 1).
        `without` leaves out messages by their ids, and `tokens` stops before the texts are longer than that. `arms`
        limits the search to `keyword` or `dense` alone. `hit.explain()` says why something was found.
        """

    def sessions(self, limit: int = 50, *, within: Within = "user") -> list[Session]:
        """Return the newest sessions, oldest first."""

    def summaries(self, *, active: bool | None = True) -> list[Summary]:
        """Return the summaries, highest level first; with `active=None` those too that others stand for."""

    def roll_back(self, summary: int) -> Summary:
        """Make what a summary archived active again. The summary is kept, marked as rolled back."""

    def audit(self, limit: int = 100) -> list[AuditEntry]:
        """Return the newest changes that were made to this user's memory, oldest first."""
