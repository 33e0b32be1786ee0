"""A store in the memory of the process: for tests, for trying things out, and as the last resort of a broken disk.

It behaves exactly like the others except that nothing survives, and its receipts say so. It is written as plainly as
possible, because the other stores are compared with it.
"""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from recollect.domain.change import AddMessage, Change
from recollect.domain.checks import moment
from recollect.domain.clock import now
from recollect.domain.hit import Hit
from recollect.domain.memory import Facts, Memory
from recollect.domain.message import Message, message_hash
from recollect.domain.note import NoteKey, NoteMatch, UnembeddedNote
from recollect.domain.receipt import Receipt
from recollect.domain.report import AuditEntry, Check, Component, Ledger, Setting, Stats, User, Verification
from recollect.domain.scope import Scope, is_direct
from recollect.domain.session import Session
from recollect.domain.summary import Summary
from recollect.domain.vector import Similar, Unembedded
from recollect.domain.words import Within
from recollect.errors import InvalidInput, NotFound, StoreClosed
from recollect.store.columns import ColumnRow, columns_of
from recollect.store.contract import Progress
from recollect.store.ephemeral.changes import Changes
from recollect.store.ephemeral.notes import find_notes, has_notes
from recollect.store.ephemeral.state import Entry, Name, State, as_microseconds, person
from recollect.store.matrix import Matrix
from recollect.store.ranking import Posting, TextMatches, best_hits, hit, posting, telling
from recollect.store.terms import query_words

if TYPE_CHECKING:
    from recollect.store.contract import Vector

P = ParamSpec("P")
T = TypeVar("T")


def _locked(
    read: Callable[Concatenate[EphemeralStore, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[EphemeralStore, P], Coroutine[Any, Any, T]]:
    """Keep other threads from changing what is being read. Reads never wait for anything while they hold the lock."""

    @functools.wraps(read)
    async def locked(self: EphemeralStore, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._lock:
            return await read(self, *args, **kwargs)

    return locked


class EphemeralStore:
    """The store contract in memory."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._state = State()
        self._lock = threading.RLock()
        self._closed = False
        self._last_update: datetime | None = None

    async def apply(self, changes: Sequence[Change]) -> Receipt:
        """Keep all changes, or none and raise."""
        with self._lock:
            # A single message is checked before anything is touched, and needs no copy to go back to.
            before = None if len(changes) == 1 and isinstance(changes[0], AddMessage) else self._open.copy()
            work = Changes(self._open)
            try:
                results = tuple(work.carry_out(change) for change in changes)
            except BaseException:
                if before is not None:
                    self._state = before
                raise
            self._last_update = moment(now())
            return Receipt(durable=False, results=results)

    @_locked
    async def messages(
        self,
        scope: Scope,
        *,
        within: Within = "user",
        limit: int = 50,
        before: int | None = None,
        archived: bool = True,
    ) -> list[Message]:
        """Return the newest messages below `before`, oldest first."""
        found = [
            entry.message
            for entry in self._open.inside(scope, within)
            if (before is None or entry.message.seq < before) and (archived or entry.message.active)
        ]
        return found[-limit:]

    @_locked
    async def message(self, scope: Scope, message_id: str, *, within: Within = "user") -> Message:
        """Return one message by its id."""
        found = [entry.message for entry in self._open.inside(scope, within) if entry.message.id == message_id]
        if not found:
            raise NotFound(f"{scope.user!r} has no message {message_id!r}")
        return min(found, key=lambda message: (message.thread != scope.thread, message.seq))

    @_locked
    async def covered(self, scope: Scope, summary: int) -> list[Message]:
        """Return the messages below a summary."""
        chunks = self._open.summary(scope, summary).chunks
        return [entry.message for entry in self._open.inside(scope, "user") if entry.message.chunk in chunks]

    @_locked
    async def summaries(self, scope: Scope, *, active: bool | None = True) -> list[Summary]:
        """Return the user's summaries, highest level first."""
        found = [
            summary
            for summary in self._open.summaries.values()
            if (summary.space, summary.user) == person(scope) and active in (None, summary.active)
        ]
        return sorted(found, key=lambda summary: (-summary.level, summary.id))

    @_locked
    async def memories(self, scope: Scope, *, active: bool | None = True) -> list[Memory]:
        """Return the user's memories, most important first."""
        found = [
            memory
            for memory in self._open.memories.values()
            if (memory.space, memory.user) == person(scope) and active in (None, memory.active)
        ]
        return sorted(found, key=lambda memory: (-memory.importance, -memory.id))

    @_locked
    async def facts(self, scope: Scope) -> Facts | None:
        """Return the newest version of the user's facts."""
        versions = [facts for (owner, _), facts in self._open.facts.items() if owner == person(scope)]
        return max(versions, key=lambda facts: facts.version, default=None)

    @_locked
    async def sessions(self, scope: Scope, *, within: Within = "user", limit: int = 50) -> list[Session]:
        """Return the sessions that the scope's newest messages are in, oldest first by start."""
        newest_first = reversed(self._open.inside(scope, within))
        names = dict.fromkeys((entry.message.thread, entry.message.session) for entry in newest_first)
        wanted = set(list(names)[:limit])
        found = [
            kept
            for kept in self._open.sessions.values()
            if kept.session.space == scope.space and (kept.session.thread, kept.session.id) in wanted
        ]
        return [kept.session for kept in sorted(found, key=lambda kept: (kept.session.started_at, kept.key))]

    @_locked
    async def settings(self, scope: Scope) -> list[Setting]:
        """Return the user's settings, by name."""
        found = [setting for (owner, _), setting in self._open.settings.items() if owner == person(scope)]
        return sorted(found, key=lambda setting: setting.key)

    @_locked
    async def ledger(self, scope: Scope) -> Ledger:
        """Return the user's counts."""
        mine = [entry.message for entry in self._open.inside(scope, "user")]
        turns = [message for message in mine if message.role == "user"]
        active = Counter(summary.level for summary in await self.summaries(scope))
        stored = await self.summaries(scope, active=None)
        return Ledger(
            messages=len(mine),
            archived=sum(not message.active for message in mine),
            turns=len(turns),
            open_turns=sum(message.chunk is None for message in turns),
            last_seq=max((message.seq for message in mine), default=0),
            last_chunk=self._open.chunks.get(person(scope), 0),
            active_summaries=tuple(sorted(active.items())),
            highest_level=max((summary.level for summary in stored if not summary.rolled_back), default=0),
        )

    @_locked
    async def search_text(self, scope: Scope, words: str, *, within: Within = "user", limit: int = 10) -> list[Hit]:
        """Return the messages that best match any of the words."""
        best = best_hits(await self.match_text(scope, words, within=within), limit)
        return [hit(self._open.log[seq].message, score, found) for seq, score, found in best]

    @_locked
    async def match_text(self, scope: Scope, words: str, *, within: Within = "user") -> TextMatches:
        """Return which messages of the scope have which words."""
        import numpy as np  # noqa: PLC0415 - loaded with the first search

        # Rarity is judged among all that the scope's posting lists hold, like in the other stores.
        shared = within != "user" and not is_direct(scope.thread)
        judged = self._open.inside(scope, "thread" if shared else "user")
        visible = {entry.message.seq for entry in self._open.inside(scope, within)}
        threads = {name: number for number, name in enumerate(self._open.threads)}
        sessions = {
            (kept.session.thread, kept.session.id): kept.key
            for kept in self._open.sessions.values()
            if kept.session.space == scope.space
        }
        columns = columns_of([_column(entry, threads, sessions) for entry in judged])
        inside = np.array([entry.message.seq in visible for entry in judged], dtype=bool)
        notes = within == "user" and has_notes(self._open, scope)
        postings = []
        for word, stored_as in query_words(words):
            counts = np.array([sum(entry.terms.get(term, 0) for term in stored_as) for entry in judged], dtype=np.int64)
            rows = np.flatnonzero(counts)
            rarity = posting(word, rows, counts[rows], len(judged)).rarity
            kept_rows = rows[inside[rows]]
            postings.append(Posting(word, rarity, kept_rows, counts[kept_rows]))
        total = sum(entry.length for entry in judged)
        return TextMatches(columns, telling(postings), max(total / max(len(judged), 1), 1.0), notes)

    @_locked
    async def unembedded(self, embedder: str, limit: int) -> list[Unembedded]:
        """Return the oldest messages that an embedder has not seen."""
        seen = self._open.seen.get(embedder, 0)
        known = {
            self._open.log[seq].message.text: value
            for (name, seq), value in self._open.vectors.items()
            if name == embedder
        }
        due = [entry.message for entry in self._open.log.values() if entry.message.seq > seen][:limit]
        return [Unembedded(message.seq, message.text, known.get(message.text)) for message in due]

    @_locked
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
        """Return the messages most similar to a vector."""
        seqs = [entry.message.seq for entry in self._open.inside(scope, within)]
        rows = [(seq, self._open.vectors[embedder, seq]) for seq in seqs if (embedder, seq) in self._open.vectors]
        matrix = Matrix()
        matrix.extend(rows)
        return matrix.similar(vector, limit, also)

    @_locked
    async def unembedded_notes(self, embedder: str, limit: int) -> list[UnembeddedNote]:
        """Return the oldest notes that an embedder has not seen."""
        notes = [UnembeddedNote(NoteKey("summary", each.id), each.text) for each in self._open.summaries.values()]
        notes += [UnembeddedNote(NoteKey("memory", each.id), each.text) for each in self._open.memories.values()]
        return [note for note in notes if (embedder, note.key) not in self._open.note_vectors][:limit]

    @_locked
    async def search_notes(
        self, scope: Scope, words: str, embedder: str, vector: Vector | None, *, limit: int = 10
    ) -> list[NoteMatch]:
        """Return the user's active notes that fit best."""
        return find_notes(self._open, scope, words, embedder, vector, limit)

    @_locked
    async def pick(self, scope: Scope, seqs: Sequence[int], *, within: Within = "user") -> list[Message]:
        """Return messages of the scope by sequence number, in order."""
        wanted = set(seqs)
        return [entry.message for entry in self._open.inside(scope, within) if entry.message.seq in wanted]

    @_locked
    async def texts(self, scope: Scope, seqs: Sequence[int], *, within: Within = "user") -> dict[int, str]:
        """Return what messages of the scope say, by sequence number."""
        return {message.seq: message.text for message in await self.pick(scope, seqs, within=within)}

    @_locked
    async def spent(self, day: date, scope: Scope | None) -> int:
        """Return the tokens that were spent on a day."""
        return self._open.spending.get((day, None if scope is None else person(scope)), 0)

    @_locked
    async def users(self, space: str | None = None) -> list[User]:
        """Return the users who own something."""
        found = []
        for (where, name), created_at in sorted(self._open.owners.items()):
            if space in (None, where):
                mine = [entry.message for entry in self._open.inside(Scope(where, name, ""), "user")]
                last = max((message.at for message in mine), default=None)
                found.append(
                    User(where, name, len(mine), sum(not message.active for message in mine), created_at, last)
                )
        return found

    @_locked
    async def audit(self, scope: Scope, *, limit: int = 100) -> list[AuditEntry]:
        """Return the newest audit rows about the user."""
        return [entry for entry in self._open.audit.values() if (entry.space, entry.user) == person(scope)][-limit:]

    @_locked
    async def stats(self) -> Stats:
        """Return totals."""
        state = self._open
        return Stats(
            spaces=len({space for space, _ in state.owners}),
            users=len(state.owners),
            threads=len(state.threads),
            sessions=len(state.sessions),
            messages=len(state.log),
            archived=sum(not entry.message.active for entry in state.log.values()),
            summaries=len(state.summaries),
            memories=len(state.memories),
            bytes=sum(len(entry.message.text.encode()) for entry in state.log.values()),
        )

    async def health(self) -> Component:
        """Say how the store is doing."""
        note = "nothing kept here survives the process"
        return Component("store", "active", self._last_update, (), (("backend", "memory"), ("note", note)))

    @_locked
    async def verify(self, progress: Progress | None = None) -> Verification:
        """Check what is in memory."""
        changed = [entry.message.id for entry in self._open.log.values() if not _intact(entry)]
        if progress is not None:
            progress("hashes", len(self._open.log), len(self._open.log))
        return Verification((Check("hashes", not changed, "; ".join(changed) or "ok", 0.0),))

    async def backup(self, target: Path, progress: Progress | None = None) -> None:  # noqa: ARG002 - the contract's
        """Refuse: there is no file to copy."""
        raise InvalidInput("a store in memory cannot be backed up; open a file instead of ':memory:'")

    async def close(self) -> None:
        """Forget everything."""
        self._closed = True
        self._state = State()

    @property
    def _open(self) -> State:
        if self._closed:
            raise StoreClosed("this store in memory has been closed")
        return self._state


def _intact(entry: Entry) -> bool:
    message = entry.message
    names = message.space, message.user, message.thread, entry.given_id, message.role, message.author, message.name
    times = as_microseconds(message.at), as_microseconds(message.stored_at)
    return message.hash == message_hash(*names, message.text, *times)


def _column(entry: Entry, threads: Mapping[Name, int], sessions: Mapping[Name, int]) -> ColumnRow:
    message = entry.message
    return ColumnRow(
        message.seq,
        as_microseconds(message.at),
        threads[message.space, message.thread],
        sessions[message.thread, message.session],
        message.name or message.author,
        message.role,
        entry.length,
    )
