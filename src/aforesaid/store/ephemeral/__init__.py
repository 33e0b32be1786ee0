"""A store in the memory of the process: for tests, for trying things out, and as the last resort of a broken disk.

It behaves exactly like the others except that nothing survives, and its receipts say so. It is written as plainly as
possible, because the other stores are compared with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from aforesaid.domain.agenda import Ahead, Backlog, Subject
from aforesaid.domain.agenda import Entry as Planned
from aforesaid.domain.change import Change
from aforesaid.domain.checks import EARLIEST, LATEST, moment
from aforesaid.domain.clock import now
from aforesaid.domain.hit import Hit
from aforesaid.domain.known_ids import is_regular
from aforesaid.domain.literals import Within
from aforesaid.domain.message import Message, Position, in_time_order, message_hash
from aforesaid.domain.note import NoteKey, NoteMatch, UnembeddedNote
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.report import Activity, AuditEntry, Check, Component, Ledger, Setting, Stats, User, Verification
from aforesaid.domain.retention import Discardable
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.domain.session import Session
from aforesaid.domain.setting import EVERYBODY
from aforesaid.domain.summary import Summary
from aforesaid.domain.vector import Similar, Unembedded
from aforesaid.errors import InvalidInput, NotFound, quoted
from aforesaid.store.contract import Progress
from aforesaid.store.ephemeral import agenda, retention, summaries
from aforesaid.store.ephemeral.changes import carry_out
from aforesaid.store.ephemeral.held import locked
from aforesaid.store.ephemeral.index import Index
from aforesaid.store.ephemeral.moving import Moving
from aforesaid.store.ephemeral.names import DisplayNames
from aforesaid.store.ephemeral.notes import find_notes, has_notes
from aforesaid.store.ephemeral.numbers import Name
from aforesaid.store.ephemeral.state import Entry, State, as_microseconds, person, thread
from aforesaid.store.ephemeral.time_order import TimeOrder
from aforesaid.store.matrix import Matrix
from aforesaid.store.ranking import Posting, TextMatches, best_hits, hit, posting, telling
from aforesaid.store.terms import query_words

if TYPE_CHECKING:
    from aforesaid.store.contract import Vector


class EphemeralStore(Moving):
    """The store contract in memory."""

    def __init__(self, first: int = 0) -> None:
        """Start with nothing. Messages are numbered from after `first`."""
        super().__init__()
        if first:
            self._state.given["log"] = first
        self._last_update: datetime | None = None
        self._indexes: dict[tuple[bool, Name], Index] = {}
        self._display_names = DisplayNames()
        self._time_order = TimeOrder()

    async def apply(self, changes: Sequence[Change]) -> Receipt:
        """Keep all changes, or none and raise."""
        with self._lock:
            changed = self._open.layered()
            results = carry_out(changed, changes)
            self._state.take_over(changed)
            self._last_update = moment(now())
            return Receipt(durable=False, results=results)

    @locked
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
        """Return the newest messages by when they were said, oldest first."""
        newest_first = (
            entry.message
            for entry in self._newest(scope, within, before)
            if (archived or entry.message.active) and (versions or not entry.message.replaced)
        )
        return list(islice(newest_first, limit))[::-1]

    def _newest(self, scope: Scope, within: Within, before: int | Position | None = None) -> Iterator[Entry]:
        """Return what the scope holds before a position, by when it was said, newest first."""
        state = self._open
        holds = state.holding(scope, within)
        ordered = self._time_order.of(state, person(scope) if within == "user" else thread(scope), within != "user")
        end = len(ordered)
        if before is not None:
            end = bisect_left(ordered, self._position(scope, within, before))
        for place in range(end - 1, -1, -1):
            entry = state.log[ordered[place].seq]
            if within != "session" or holds(entry.message):
                yield entry

    def _position(self, scope: Scope, within: Within, before: int | Position) -> Position:
        """Return the position that a read ends before."""
        if isinstance(before, Position):
            return before
        for entry in self._open.newest_inside(scope, within):
            if entry.message.seq <= before:
                at, seq = entry.message.position
                return Position(at, seq if seq == before else seq + 1)
        return Position(EARLIEST, 0)

    @locked
    async def message(self, scope: Scope, message_id: str, *, within: Within = "user") -> Message:
        """Return one message by its id."""
        found = [entry.message for entry in self._open.inside(scope, within) if entry.message.id == message_id]
        if not found:
            raise NotFound(f"{quoted(scope.user)} has no message {quoted(message_id)}")
        return max(found, key=lambda message: (message.thread == scope.thread, message.seq))

    @locked
    async def covered(self, scope: Scope, summary: int) -> list[Message]:
        """Return the messages below a summary."""
        return in_time_order(summaries.below(self._open, self._open.summary(scope, summary)))

    @locked
    async def above(self, scope: Scope, seq: int) -> list[Summary]:
        """Return the summaries that a message lies below."""
        return summaries.above(self._open, scope, seq)

    @locked
    async def summary(self, scope: Scope, summary: int) -> Summary:
        """Return one of the user's summaries."""
        return self._open.summary(scope, summary)

    @locked
    async def summaries(
        self,
        scope: Scope,
        *,
        active: bool | None = True,
        kind: str | None = None,
        day: date | None = None,
        here: bool = False,
    ) -> list[Summary]:
        """Return the user's summaries, highest level first."""
        found = [
            summary
            for summary in self._open.summaries.values()
            if (summary.space, summary.user) == person(scope)
            and active in (None, summary.active)
            and kind in (None, summary.kind)
            and day in (None, summary.day)
            and (not here or summary.thread == scope.thread)
        ]
        return sorted(found, key=lambda summary: (-summary.level, summary.id))

    @locked
    async def said_between(self, space: str, since: int, until: int) -> list[Message]:
        """Return what was said in a space, by when it was said."""
        first, last = moment(max(since, EARLIEST)), moment(min(until - 1, LATEST))
        every = (entry.message for entry in self._open.log.values())
        return in_time_order(each for each in every if each.space == space and first <= each.at <= last)

    async def said_per_day(self, space: str, since: int, until: int, user: str | None = None) -> list[Activity]:
        """Return how much was said on each day."""
        said = await self.said_between(space, since, until)
        roles: dict[date, list[str]] = {}
        for message in said:
            if user in (None, message.user):
                roles.setdefault(message.at.astimezone(UTC).date(), []).append(message.role)
        return [Activity(day, len(some), some.count("user")) for day, some in sorted(roles.items())]

    @locked
    async def vectors(self, scope: Scope, embedder: str, seqs: Sequence[int]) -> dict[int, bytes]:
        """Return the vectors of messages."""
        known = self._open.vectors
        mine = [message.seq for message in await self.pick(scope, seqs)]
        return {seq: known[embedder, seq] for seq in mine if (embedder, seq) in known}

    @locked
    async def without_model(self, kind: str, prompt: str, after: int, limit: int) -> list[Summary]:
        """Return active summaries that no model and no person wrote, oldest first."""
        return [
            summary
            for summary in self._open.summaries.values()
            if summary.active
            and (summary.kind, summary.prompt) == (kind, prompt)
            and summary.id > after
            and summary.model is None
            and summary.edited_by is None
        ][:limit]

    @locked
    async def ahead(self, policy: str, limit: int) -> Ahead:
        """Return the oldest messages that a policy has not walked past."""
        return Ahead(self._open.walks.get(policy, 0), tuple(islice(agenda.unwalked(self._open, policy), limit)))

    @locked
    async def agenda(self, policy: str, due_by: int, limit: int, *, failing: bool = False) -> list[Planned]:
        """Return what is due, longest waiting first."""
        return agenda.entries(self._open, policy, due_by, failing=failing)[:limit]

    @locked
    async def planned(self, subject: Subject) -> Planned | None:
        """Return what is planned for a subject."""
        return self._open.agenda.get(subject)

    @locked
    async def backlog(self, policy: str, due_by: int) -> Backlog:
        """Return how much is due."""
        return agenda.backlog(self._open, policy, due_by)

    @locked
    async def sessions(self, scope: Scope, *, within: Within = "user", limit: int = 50) -> list[Session]:
        """Return the sessions that the scope's newest messages are in, oldest first by start."""
        state, wanted = self._open, dict[int, None]()
        for entry in self._newest(scope, within):
            message = entry.message
            wanted[state.session_names[(message.space, message.thread), message.session]] = None
            if len(wanted) == limit:
                break
        found = [state.sessions[key] for key in wanted]
        return [kept.session for kept in sorted(found, key=lambda kept: (kept.session.started_at, kept.key))]

    @locked
    async def settings(self, scope: Scope) -> list[Setting]:
        """Return the user's settings, by name."""
        found = [setting for (owner, _), setting in self._open.settings.items() if owner == person(scope)]
        return sorted(found, key=lambda setting: setting.key)

    @locked
    async def ledger(self, scope: Scope, *, here: bool = False) -> Ledger:
        """Return the user's counts."""
        mine = [entry.message for entry in self._open.inside(scope, "user")]
        found = await self.summaries(scope, kind=None if here else "tree", here=here)
        covered, last_chunk = 0, self._open.chunks.get(person(scope), 0)
        if here:
            mine = [message for message in mine if message.thread == scope.thread]
            found = [summary for summary in found if summary.reach in ("thread", "chunks")]
            covered = max((summary.last for summary in found if summary.reach == "thread"), default=0)
            last_chunk = max((message.chunk or 0 for message in mine), default=0)
        turns = [message for message in mine if message.role == "user"]
        active = Counter(summary.level for summary in found)
        return Ledger(
            messages=len(mine),
            archived=sum(not message.active for message in mine),
            turns=len(turns),
            open_turns=sum(message.chunk is None and message.seq > covered for message in turns),
            last_seq=max((message.seq for message in mine), default=0),
            last_chunk=last_chunk,
            active_summaries=tuple(sorted(active.items())),
            highest_level=max(active, default=0),
        )

    @locked
    async def search_text(self, scope: Scope, words: str, *, within: Within = "user", limit: int = 10) -> list[Hit]:
        """Return the messages that best match any of the words."""
        best = best_hits(await self.match_text(scope, words, within=within), limit)
        return [hit(self._open.log[seq].message, score, found) for seq, score, found in best]

    @locked
    async def match_text(
        self,
        scope: Scope,
        words: str,
        *,
        within: Within = "user",
        embedder: str | None = None,  # noqa: ARG002
    ) -> TextMatches:
        """Return which messages of the scope have which words."""
        import numpy as np  # noqa: PLC0415 - loaded with the first search

        # Rarity is judged among all that the scope's posting lists hold, like in the other stores.
        shared = within != "user" and not is_direct(scope.thread)
        index = self._index(scope, shared=shared)
        columns = index.columns()
        inside = np.ones(len(columns), dtype=bool)
        if within != "user" and (not shared or within == "session"):
            inside = np.isin(columns.seq, [entry.message.seq for entry in self._open.inside(scope, within)])
        notes = within == "user" and has_notes(self._open, scope)
        postings = []
        for word, stored_as in query_words(words):
            rows, counts = index.having(stored_as)
            rarity = posting(word, rows, counts, index.count).rarity
            kept = inside[rows]
            postings.append(Posting(word, rarity, rows[kept], counts[kept]))
        return TextMatches(columns, telling(postings), max(index.length / max(index.count, 1), 1.0), notes)

    def _index(self, scope: Scope, *, shared: bool) -> Index:
        """Return the words of a thread or of a user, brought up to date."""
        state = self._open
        key = (shared, thread(scope) if shared else person(scope))
        index = self._indexes.get(key)
        if index is None or not index.is_of(state):
            index = self._indexes[key] = Index(state)
        index.grow(state.numbers.said(key[1]) if shared else state.numbers.owned(key[1]))
        return index

    @locked
    async def unembedded(self, embedder: str, limit: int) -> list[Unembedded]:
        """Return the oldest messages that an embedder has not seen."""
        state = self._open
        due = [entry.message for entry in islice(state.after(state.seen.get(embedder, 0)), limit)]
        equal = [state.embedded.get((embedder, message.text)) for message in due]
        return [
            Unembedded(message.seq, message.text, None if seq is None else state.vectors[embedder, seq])
            for message, seq in zip(due, equal, strict=True)
        ]

    @locked
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
        inside = [entry.message for entry in self._open.inside(scope, within)]
        seqs = [message.seq for message in inside if not message.replaced]
        rows = [(seq, self._open.vectors[embedder, seq]) for seq in seqs if (embedder, seq) in self._open.vectors]
        matrix = Matrix()
        matrix.extend(rows)
        return matrix.similar(vector, limit, also)

    @locked
    async def unembedded_notes(self, embedder: str, limit: int) -> list[UnembeddedNote]:
        """Return the oldest notes that an embedder has not seen."""
        notes = [UnembeddedNote(NoteKey("summary", each.id), each.text) for each in self._open.summaries.values()]
        notes += [UnembeddedNote(NoteKey("memory", each.id), each.text) for each in self._open.memories.values()]
        return [note for note in notes if (embedder, note.key) not in self._open.note_vectors][:limit]

    @locked
    async def search_notes(
        self, scope: Scope, words: str, embedder: str, vector: Vector | None, *, limit: int = 10
    ) -> list[NoteMatch]:
        """Return the user's active notes that fit best."""
        return find_notes(self._open, scope, words, embedder, vector, limit)

    @locked
    async def pick(self, scope: Scope, seqs: Sequence[int], *, within: Within = "user") -> list[Message]:
        """Return messages of the scope by sequence number, in order."""
        holds = self._open.holding(scope, within)
        found = [self._open.log[seq].message for seq in sorted(set(seqs)) if seq in self._open.log]
        return [message for message in found if holds(message)]

    @locked
    async def spent(self, day: date, scope: Scope | None) -> int:
        """Return the tokens that were spent on a day."""
        return self._open.spending.get((day, None if scope is None else person(scope)), 0)

    @locked
    async def users(self, space: str | None = None) -> list[User]:
        """Return the users who own something."""
        found = []
        names = self._display_names.of(self._open)
        for (where, name), created_at in sorted(self._open.owners.items()):
            if space in (None, where):
                mine = [entry.message for entry in self._open.inside(Scope(where, name, ""), "user")]
                last = max((message.at for message in mine), default=None)
                archived = sum(not message.active for message in mine)
                found.append(User(where, name, len(mine), archived, created_at, last, names.get((where, name))))
        return found

    @locked
    async def irregular_ids(self) -> frozenset[str]:
        """Return the ids that are not spelled regularly."""
        state = self._open
        ids = {each for pair in chain(state.owners, state.threads) for each in pair}
        ids |= {kept.session.id for kept in state.sessions.values()}
        ids |= {entry.message.author for entry in state.log.values()}
        return frozenset(each for each in ids if not is_regular(each))

    @locked
    async def names(self, space: str, users: Collection[str] | None = None) -> dict[str, str]:
        """Return the display names of a space by user id."""
        every = self._display_names.of(self._open)
        if users is not None:
            return {user: every[space, user] for user in users if (space, user) in every}
        return {user: name for (where, user), name in every.items() if where == space}

    @locked
    async def audit(self, scope: Scope, *, limit: int = 100) -> list[AuditEntry]:
        """Return the newest audit rows about the user."""
        return [entry for entry in self._open.audit.values() if (entry.space, entry.user) == person(scope)][-limit:]

    @locked
    async def stats(self) -> Stats:
        """Return totals."""
        state = self._open
        return Stats(
            spaces=len({space for space, _ in state.owners}),
            users=sum(user != EVERYBODY for _, user in state.owners),
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

    @locked
    async def verify(self, progress: Progress | None = None) -> Verification:
        """Check what is in memory."""
        changed = [entry.message.id for entry in self._open.log.values() if not _intact(entry)]
        if progress is not None:
            progress("hashes", len(self._open.log), len(self._open.log))
        return Verification((Check("hashes", not changed, "; ".join(changed) or "ok", 0.0),))

    async def backup(self, target: Path, progress: Progress | None = None) -> None:  # noqa: ARG002 - the contract's
        """Refuse: there is no file to copy."""
        raise InvalidInput("a store in memory cannot be backed up; open a file instead of ':memory:'")

    @locked
    async def discardable(self, what: Discardable, before: int) -> int:
        """Return how much is older than a moment."""
        return retention.discardable(self._open, what, before)

    @locked
    async def change_token(self) -> str:
        """Return always the same text: no other process can change this store."""
        return ""

    async def marks(self) -> dict[str, str]:
        """Return what is kept in mind about the store."""
        return dict(self._open.marks)

    async def close(self) -> None:
        """Forget everything."""
        self._closed = True
        self._state = State()


def _intact(entry: Entry) -> bool:
    message = entry.message
    names = message.space, message.user, message.thread, entry.given_id, message.role, message.author, message.name
    times = as_microseconds(message.at), as_microseconds(message.stored_at)
    return message.hash == message_hash(*names, message.text, *times)
