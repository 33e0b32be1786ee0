"""Appending messages: recognising what was delivered before, finding the session, indexing, counting."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from aforesaid.domain.change import AddMessage
from aforesaid.domain.message import Draft, Message, repeats
from aforesaid.domain.receipt import Repeated, Stored
from aforesaid.domain.scope import automatic_name, is_direct, opening_message
from aforesaid.domain.transfer import Restored
from aforesaid.errors import NotFound
from aforesaid.store import records
from aforesaid.store.dialects import for_sqlite
from aforesaid.store.sql import appending
from aforesaid.store.sql.appending import Prepared, Returning, Version, replace_version, version_of
from aforesaid.store.sql.tables import MESSAGE
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.connection import prefixed_terms
from aforesaid.store.sqlite.indexing import INDEX
from aforesaid.store.sqlite.sessions import Sessions
from aforesaid.store.sqlite.write_transaction import WriteTransaction

_BY_GIVEN_ID: Final = "SELECT seq FROM log WHERE thread = ? AND given_id = ?"
_BY_TIME: Final = "SELECT seq, given_id FROM log WHERE thread = ? AND at = ? AND text = ? ORDER BY seq"
_NEW_MESSAGE: Final = """
INSERT INTO log (seq, owner, thread, shared, session, author, role, name, text, at, stored_at, given_id, words, hash,
                 replaces, replaced, details)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_COUNT_PERSON: Final = """
UPDATE person SET messages = messages + ?2, turns = turns + ?3, open_turns = open_turns + ?3, words = words + ?4,
       last_seq = ?5, last_at = max(coalesce(last_at, ?6), ?6) WHERE id = ?1
"""
_COUNT_THREAD: Final = "UPDATE thread SET messages = messages + ?2, words = words + ?3 WHERE id = ?1"
_MESSAGE: Final = f"{for_sqlite(MESSAGE)} WHERE log.seq = ?"


_Count: TypeAlias = tuple[int, int, int, int, int]
"""Messages, user turns, words, last sequence number and last time of an owner."""


@dataclass(slots=True)
class _Counts:
    """What was appended since the stored counts were last brought up to date."""

    people: dict[int, _Count] = field(default_factory=dict)
    threads: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Messages and words, for each shared thread."""


def prepare(change: AddMessage) -> Prepared:
    """Compute what needs no file."""
    return appending.prepare(change, " ".join)


class Appender:
    """Appends messages within one write transaction.

    Rows are collected and written together; whatever looks at them in the same transaction calls `write` first.
    """

    def __init__(self, transaction: WriteTransaction) -> None:
        """Start where the log ends."""
        self._transaction = transaction
        self.sessions = Sessions(transaction, before_change=self.write_messages)
        self._messages: list[tuple[object, ...]] = []
        self._index: list[tuple[int, str]] = []
        self._waiting: set[tuple[int, int | str | None]] = set()
        """The times and the ids, with their threads, of messages that are not written yet."""
        self._counts = _Counts()
        self.next_seq = self._read_next_seq()
        """The number of the next message."""

    def take_back(self) -> None:
        """Forget what was collected, after the changes themselves have been taken back."""
        self._messages.clear()
        self._index.clear()
        self._waiting.clear()
        self._counts = _Counts()
        self.sessions.take_back()
        self.next_seq = self._read_next_seq()

    def append(self, step: Prepared) -> Stored | Repeated:
        """Store a message, or return the one it repeats."""
        draft, names = step.draft, self._transaction.names
        scope = draft.scope
        version = None
        if draft.replaces is not None:
            version = self._version(draft)
            draft = version.named if isinstance(version, Version) else draft
        if draft.at_given or draft.id is not None:
            earlier = self._delivered_before(draft, names.thread(scope.space, scope.thread))
            if earlier is not None:
                return Repeated(earlier)
        if version is not None:
            if isinstance(version, NotFound):
                raise version
            draft = version.checked()
            step = step._replace(draft=draft, hash=draft.hash)
        owner, thread = names.place(scope, draft.stored_at)
        seq = self.next_seq
        session, session_name = self.sessions.place(draft, step.silence, thread, owner, seq)
        self._collect(step, owner, thread, session, seq)
        if version is not None:
            self._replace(draft)
        return Stored(draft, seq, session_name, step.hash)

    def restore(self, step: Returning) -> Restored:
        """Store a message of a dump, unless it is here."""
        draft, names = step.message.draft, self._transaction.names
        scope = draft.scope
        version = None
        if draft.replaces is not None:
            version = self._version(draft)
            draft = version.named if isinstance(version, Version) else draft._replace(replaces=None)
        earlier = self._delivered_before(draft, names.thread(scope.space, scope.thread))
        if earlier is not None:
            return Restored(earlier.seq, False)
        if isinstance(version, Version):
            draft = version.checked()
        owner, thread = names.place(scope, draft.stored_at)
        seq = max(self.next_seq, step.seq)
        name = automatic_name(seq) if opening_message(step.session) == step.seq else step.session
        session = self.sessions.enter(draft, step.message.silence, thread, owner, seq, name)
        self._collect(step.message._replace(draft=draft), owner, thread, session, seq, hidden=step.hidden)
        if isinstance(version, Version):
            self._replace(draft)
        return Restored(seq, True)

    def _version(self, draft: Draft) -> Version | NotFound:
        self.write_messages()
        return rows.answered(self._transaction.connection, version_of(draft))

    def _replace(self, draft: Draft) -> None:
        self.write_messages()
        replace_version(self._transaction.later, draft)

    def _collect(
        self, step: Prepared, owner: int, thread: int, session: int, seq: int, *, hidden: bool = False
    ) -> None:
        """Have a message written with the next ones."""
        draft, words = step.draft, step.words
        scope = draft.scope
        author = owner
        if draft.author != scope.user:
            author = self._transaction.names.author(scope.space, draft.author, draft.stored_at)
        shared_thread = None if is_direct(scope.thread) else thread
        row = (seq, owner, thread, shared_thread is not None, session, author, draft.role, draft.name, draft.text)
        self._messages.append(
            (*row, draft.at, draft.stored_at, draft.id, words, step.hash)
            + (draft.replaces, hidden or draft.is_tombstone, draft.details)
        )
        if step.terms is not None:
            self._index.append((seq, prefixed_terms(owner, shared_thread, step.terms)))
        self._waiting.add((thread, draft.at))
        if draft.id is not None:
            self._waiting.add((thread, draft.id))
        self.next_seq = seq + 1
        self.count(owner, shared_thread, (1, int(draft.role == "user"), words, seq, draft.at))

    def write(self) -> None:
        """Write all that was collected: messages, index, sessions and counts."""
        self.write_messages()
        self.sessions.write()
        if self._counts.people:
            many = self._transaction.connection.executemany
            many(_COUNT_PERSON, [(owner, *count) for owner, count in self._counts.people.items()])
            many(_COUNT_THREAD, [(thread, *count) for thread, count in self._counts.threads.items()])
            self._counts = _Counts()

    def write_messages(self) -> None:
        """Write the messages that were collected, and their index."""
        if self._messages:
            many = self._transaction.connection.executemany
            many(_NEW_MESSAGE, self._messages)
            many(INDEX, self._index)
            self._messages.clear()
            self._index.clear()
            self._waiting.clear()

    def _delivered_before(self, draft: Draft, thread: int) -> Message | None:
        if (thread, draft.at) in self._waiting or (thread, draft.id) in self._waiting:
            self.write_messages()
        execute = self._transaction.connection.execute
        if draft.id is not None:
            seq = execute(_BY_GIVEN_ID, (thread, draft.id)).get
            if seq is not None:
                return self._message(seq)
        if draft.at_given:
            for seq, given_id in rows.every(execute(_BY_TIME, (thread, draft.at, draft.text))):
                found = self._message(seq)
                if repeats(draft, found, given_id):
                    return found
        return None

    def _message(self, seq: int) -> Message:
        return records.message(rows.one(self._transaction.connection.execute(_MESSAGE, (seq,))))

    def count(self, owner: int, shared_thread: int | None, added: _Count) -> None:
        """Count messages that were collected or written."""
        people, threads = self._counts.people, self._counts.threads
        messages, turns, words, last_seq, last_at = added
        if owner in people:
            earlier = people[owner]
            people[owner] = (
                earlier[0] + messages, earlier[1] + turns, earlier[2] + words, last_seq, max(earlier[4], last_at)
            )  # fmt: skip
        else:
            people[owner] = added
        if shared_thread is not None:
            in_thread, counted = threads.get(shared_thread, (0, 0))
            threads[shared_thread] = in_thread + messages, counted + words

    def _read_next_seq(self) -> int:
        # Numbers are taken from the table that AUTOINCREMENT keeps, so that none is ever given twice.
        last: int | None = self._transaction.connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'log'"
        ).get
        return (last or 0) + 1
