"""What every store promises.

Ordering. Sequence numbers grow strictly in the order in which messages become visible, per space; a reader who has
seen message n will never see a smaller number appear later. Clocks play no part. Cursors and archives go by sequence
number. What people and models read (`messages`, `sessions`, `covered`, `said_between`) goes by when it was said, ties
by sequence number: an import may store the newest message first.

Atomicity. `apply` stores all of its changes or none. When it raises, nothing of it is visible to anybody, and the
same call can be made again. When it returns with `durable=True`, the changes survive `kill -9` and a power cut.
Cancelling a caller that waits for `apply` does not take its changes back.

Isolation. Every read names a scope, and what lies outside of it cannot be reached: a foreign id is NotFound, exactly
like one that does not exist.

Visibility. A message is found by its words as soon as `apply` has returned.

Versions. A message can replace an earlier one. `messages`, `search_text`, `match_text` and `search_vector` answer only
the newest version. All other reads answer every version, marked by `replaced`: cursors, counts and archives stay right.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from aforesaid.domain.agenda import Ahead, Backlog, Entry, Subject
from aforesaid.domain.change import Change
from aforesaid.domain.hit import Hit
from aforesaid.domain.literals import Timely, Within
from aforesaid.domain.memory import Derived, Facts, MemoryRecord, MemoryVersion, Tombstone, Unextracted
from aforesaid.domain.message import Message, Position
from aforesaid.domain.note import NoteMatch, UnembeddedNote
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Activity, AuditEntry, Component, Ledger, Setting, Stats, User, Verification
from aforesaid.domain.retention import Discardable
from aforesaid.domain.scope import Scope
from aforesaid.domain.session import Session
from aforesaid.domain.summary import Summary
from aforesaid.domain.transfer import Purged, Row
from aforesaid.domain.vector import Similar, Unembedded
from aforesaid.store.ranking import TextMatches

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


class Store(Protocol):
    """A place where the log and what is derived from it are kept."""

    async def apply(self, changes: Sequence[Change]) -> Receipt:
        """Store all changes, or none and raise."""

    async def messages(
        self,
        scope: Scope,
        *,
        within: Within = "user",
        limit: int = 50,
        before: int | Position | None = None,
        archived: bool = True,
        versions: bool = False,
    ) -> list[Message]:
        """Return the newest `limit` messages, by when they were said, oldest first.

        Of a message with several versions, only the newest; with `versions`, all of them.

        With `before`, only those that come before a position, or before the message with that sequence number. A number
        that is none of the scope's messages means: up to the message that was stored last before it, inclusive.
        """

    async def message(self, scope: Scope, message_id: str, *, within: Within = "user") -> Message:
        """Return one message by its id, or raise NotFound.

        Where several threads use the id, the one in the scope's own thread is returned, otherwise the newest.
        """

    async def covered(self, scope: Scope, summary: int) -> list[Message]:
        """Return the messages below a summary of any level, by when they were said."""

    async def above(self, scope: Scope, seq: int) -> list[Summary]:
        """Return the summaries, at every level and of every kind, that one of the user's messages lies below."""

    async def summary(self, scope: Scope, summary: int) -> Summary:
        """Return one of the user's summaries, in whatever state, or raise NotFound."""

    async def summaries(
        self,
        scope: Scope,
        *,
        active: bool | None = True,
        kind: str | None = None,
        day: date | None = None,
        here: bool = False,
    ) -> list[Summary]:
        """Return the user's summaries, highest level first, oldest first within a level; None for every state.

        With `here`, only those of the scope's thread.
        """

    async def without_model(self, kind: str, prompt: str, after: int, limit: int) -> list[Summary]:
        """Return active summaries of a kind and prompt, of all spaces, that no model and no person wrote, by id."""

    async def said_between(self, space: str, since: int, until: int) -> list[Message]:
        """Return what was said in a space from one moment to before another (microseconds), by when it was said."""

    async def said_per_day(self, space: str, since: int, until: int, user: str | None = None) -> list[Activity]:
        """Return how much was said on each day (of UTC) of such a time on which something was, by all or for one user.

        Counted where it is stored: it takes no more memory for a million messages than for ten.
        """

    async def vectors(self, scope: Scope, embedder: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Return the vectors of those of the messages that are the user's and that an embedder has seen."""

    async def ahead(self, policy: str, limit: int) -> Ahead:
        """Return the oldest messages, of all spaces, that a policy has not walked past."""

    async def agenda(self, policy: str, due_by: int, limit: int, *, failing: bool = False) -> list[Entry]:
        """Return what a policy has to look at by a moment, longest waiting first.

        With `failing` also what failed and is to be tried again later.
        """

    async def planned(self, subject: Subject) -> Entry | None:
        """Return what is planned for one subject."""

    async def backlog(self, policy: str, due_by: int) -> Backlog:
        """Return how much a policy has to do by a moment, and how much of it fails."""

    async def memories(self, scope: Scope, *, active: bool | None = True) -> list[MemoryRecord]:
        """Return the user's memories, most important first, newest first among equals."""

    async def memory(self, scope: Scope, memory: int) -> MemoryRecord:
        """Return one of the user's memories, in whatever state, or raise NotFound."""

    async def memories_in(
        self,
        space: str,
        *,
        user: str | None = None,
        active: bool | None = None,
        category: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[MemoryRecord]:
        """Return the newest `limit` memories of a space with an id below `before`, newest first: of all users, or one.

        For whoever looks after a space as a whole.
        """

    async def memory_versions(self, scope: Scope, memory: int) -> list[MemoryVersion]:
        """Return what a memory was before each of its changes, oldest first."""

    async def memories_due(self, what: Timely, before: datetime, limit: int) -> list[MemoryRecord]:
        """Return active memories, of all spaces, whose time has come at a moment, oldest first."""

    async def facts_versions(self, scope: Scope) -> list[Facts]:
        """Return all versions of the user's facts, oldest first."""

    async def forgotten(self, scope: Scope) -> list[Tombstone]:
        """Return what the user asked to forget, oldest first."""

    async def derived(self, scope: Scope, kind: str) -> Derived | None:
        """Return what was worked out for the user and kept."""

    async def unextracted(self, limit: int, after: Scope | None = None) -> list[Unextracted]:
        """Return users, of all spaces, of whom something was stored that nobody has looked through; after a user.

        Does not look at the messages of anybody.
        """

    async def following(
        self, scope: Scope, after: int, limit: int, *, here: bool = False, archived: bool = True
    ) -> list[Message]:
        """Return the user's first messages with a sequence number above `after`, by sequence number.

        With `here`, only those in the scope's thread.
        """

    async def facts(self, scope: Scope) -> Facts | None:
        """Return the newest version of the user's facts."""

    async def sessions(self, scope: Scope, *, within: Within = "user", limit: int = 50) -> list[Session]:
        """Return the sessions that the scope's newest messages are in, oldest first by start."""

    async def settings(self, scope: Scope) -> list[Setting]:
        """Return the user's settings, by name."""

    async def ledger(self, scope: Scope, *, here: bool = False) -> Ledger:
        """Return the user's counts. A user nobody has heard of has zeros.

        With `here`, only the user's messages in the scope's thread and the active summaries of that thread are counted;
        open turns are those that no archive and no summary of the thread covers.
        """

    async def search_text(self, scope: Scope, words: str, *, within: Within = "user", limit: int = 10) -> list[Hit]:
        """Return the messages that best match any of the words; newer first among equals. `words` may be anything."""

    async def match_text(
        self, scope: Scope, words: str, *, within: Within = "user", embedder: str | None = None
    ) -> TextMatches:
        """Return what `search_text` ranks: the scope's messages as columns, and which of them have which words.

        The vectors that `embedder` gave them may come with it.
        """

    async def unembedded(self, embedder: str, limit: int) -> list[Unembedded]:
        """Return the oldest messages, of all spaces, that an embedder has not seen."""

    async def search_vector(
        self,
        scope: Scope,
        embedder: str,
        vector: Vector,
        *,
        within: Within = "user",
        limit: int = 10,
        also: Sequence[int] = (),
    ) -> Similar | None:
        """Return the messages most similar to a vector, and those in `also`; None when `embedder` has seen nothing."""

    async def unembedded_notes(self, embedder: str, limit: int) -> list[UnembeddedNote]:
        """Return the oldest summaries and memories, of all spaces, that an embedder has not seen."""

    async def search_notes(
        self, scope: Scope, words: str, embedder: str, vector: Vector | None, *, limit: int = 10
    ) -> list[NoteMatch]:
        """Return the user's active summaries and memories that fit best, by words and by meaning."""

    async def pick(self, scope: Scope, seqs: Sequence[int], *, within: Within = "user") -> list[Message]:
        """Return those of the messages that the scope holds, in order."""

    async def spent(self, day: date, scope: Scope | None) -> int:
        """Return the tokens that a user spent on a day; with None, what all spent together."""

    async def users(self, space: str | None = None) -> list[User]:
        """Return the users who own something, by space and id."""

    async def names(self, space: str, users: Collection[str] | None = None) -> dict[str, str]:
        """Return the display names of a space by user id: of everybody who wrote under one, or of `users` alone.

        The name of the message that was said last counts, whoever owns that message. Authors who own nothing are
        included, the assistant too (under `assistant`). Does not read the log.
        """

    async def audit(self, scope: Scope, *, limit: int = 100) -> list[AuditEntry]:
        """Return the newest audit rows about the user, oldest first."""

    async def stats(self) -> Stats:
        """Return totals."""

    async def health(self) -> Component:
        """Say how the store is doing. Answers also when the store does not."""

    async def verify(self, progress: Progress | None = None) -> Verification:
        """Check everything that is stored against everything else. Reads all of it."""

    async def backup(self, target: Path, progress: Progress | None = None) -> None:
        """Copy the store as it is now to a new file, while it is in use. Raises InvalidInput if `target` exists."""

    def dump(self, *, vectors: bool = False) -> AsyncIterator[Sequence[Row]]:
        """Give out everything as it is at one moment, page by page, while the store is in use.

        In this order: messages (by number, space by space where each space has its own), sessions, summaries and
        memories (by number), facts (by version), forgotten, settings, users, days, spending, audit, vectors if asked.
        The change `Restore` takes the rows of it.
        """

    async def purge(self, scope: Scope, actor: str = "aforesaid") -> Purged:
        """Erase a user for good, and leave an audit row that says how much. Raises NotFound for one nobody knows.

        When this returns, no byte of what was erased is left in the store's files, nor in copies made afterwards.
        Erased are the messages that the user owns or, in another's memory, said; all that is known about the user; the
        summaries and memories of others that were made with these messages (day summaries: of the same days, as they
        read all that was said in shared threads). What those had archived is active again, and is summarised anew. No
        number is given out twice. When it raises after it began, call it again: it goes on where it stopped.
        """

    async def discardable(self, what: Discardable, before: int) -> int:
        """Return how much the change `Discard` would remove in all, if it were made again and again."""

    async def change_token(self) -> str:
        """Return a text that is another one once any process has changed something. Cheap: no data is read.

        A store that one process has to itself returns always the same: that process knows what it changes.
        """

    async def irregular_ids(self) -> frozenset[str]:
        """Return the ids of users, spaces, threads and named sessions that `domain.known_ids.regular` would change."""

    async def marks(self) -> dict[str, str]:
        """Return what is kept in mind about the store itself, by name."""

    async def close(self) -> None:
        """Finish what was handed in, then let go of everything. Closing twice is fine."""
