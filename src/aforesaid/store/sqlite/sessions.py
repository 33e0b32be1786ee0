"""Finding the session of each message that is appended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from aforesaid.domain.message import Draft
from aforesaid.domain.scope import SessionBounds, automatic_name, opening_message, place
from aforesaid.errors import InvalidInput, quoted
from aforesaid.store.checksums import SQLITE as CHECKSUMS
from aforesaid.store.sqlite import rows
from aforesaid.store.sqlite.rows import LatestSession, WriteTransaction

_LATEST: Final = """
SELECT id, name, started_at, last_at FROM session WHERE thread = ? AND automatic = 1
 ORDER BY started_at DESC, id DESC LIMIT 2
"""
_NEAR: Final = """
SELECT id, started_at, last_at, name FROM session
 WHERE thread = ? AND automatic = 1 AND started_at < ? ORDER BY started_at DESC, id DESC LIMIT 2
"""
_NAMED: Final = "SELECT id, name FROM session WHERE thread = ? AND name = ?"
_NAMED_WITH_TIMES: Final = "SELECT id, started_at, last_at FROM session WHERE thread = ? AND name = ?"
_OF_MESSAGE: Final = """
SELECT s.id, s.name FROM log JOIN session s ON s.id = log.session WHERE log.seq = ? AND log.thread = ?
"""
NEW_SESSION: Final = CHECKSUMS.insert_selected(
    "session",
    {
        "thread": "$1",
        "name": "$2",
        "automatic": "$3",
        "opened_by": "$4",
        "started_at": "$5",
        "last_at": "$5",
        "first_seq": "$6",
        "last_seq": "$6",
        "messages": "1",
        "timeout": "$7",
    },
    "",
)
_BY_HAND: Final = CHECKSUMS.update("session", "id = $1 AND automatic = 1", automatic="0")
GROW: Final = """
UPDATE session SET started_at = min(started_at, ?2), last_at = max(last_at, ?3), last_seq = ?4, messages = messages + ?5
 WHERE id = ?1
"""
_ABSORB: Final = """
UPDATE session SET started_at = min(session.started_at, o.started_at), last_at = max(session.last_at, o.last_at),
       first_seq = min(session.first_seq, o.first_seq), last_seq = max(session.last_seq, o.last_seq),
       messages = session.messages + o.messages
  FROM (SELECT * FROM session WHERE id = ?2) o WHERE session.id = ?1
"""
_MOVE: Final = """
UPDATE log SET session = ?1 WHERE session = ?2 AND seq IN (
    SELECT l.seq FROM log l JOIN session s ON s.id = ?2
     WHERE l.thread = s.thread AND l.at BETWEEN s.started_at AND s.last_at
)
"""
_REGROUPED_PEOPLE: Final = """
UPDATE person SET revision = revision + 1 WHERE id IN (
    SELECT l.owner FROM session s JOIN log l
        ON l.thread = s.thread AND l.at BETWEEN s.started_at AND s.last_at AND l.session = s.id
     WHERE s.id = ?
)
"""


class Sessions:
    """Sessions within one write transaction."""

    def __init__(self, transaction: WriteTransaction, before_change: Callable[[], None]) -> None:
        """Start from what the writer remembers. `before_change` writes messages that are still on their way."""
        self._transaction = transaction
        self._before_change = before_change
        self._grown: set[int] = set()
        self._entered: dict[tuple[int, str], LatestSession] = {}
        """Sessions of messages that came back from a dump, and by how much they grew."""

    def place(self, draft: Draft, silence: int, thread: int, owner: int, seq: int) -> tuple[int, str]:
        """Return the number and the name of the session that the message belongs to."""
        self._write_entered()
        if draft.scope.session is not None:
            self._settle(thread)
            return self._named(draft, draft.scope.session, silence, thread, owner, seq)
        latest = self._latest(thread)
        if latest is not None and _surely_in(latest, draft.at, silence):
            latest.last = max(latest.last, draft.at)
            latest.last_seq = seq
            latest.grown_by += 1
            self._grown.add(thread)
            return latest.key, latest.name
        self._settle(thread)
        return self._automatic(draft, silence, thread, owner, seq)

    def newest_for(self, times: Sequence[int], silence: int, thread: int) -> LatestSession | None:
        """Return the newest session of a thread if messages of these times surely belong to it; otherwise None."""
        self._write_entered()
        latest = self._latest(thread)
        surely = latest is not None and all(_surely_in(latest, at, silence) for at in (min(times), max(times)))
        return latest if surely else None

    def extend(self, latest: LatestSession, thread: int, times: Sequence[int], last_seq: int) -> None:
        """Note messages that belong to the newest session of a thread."""
        latest.last = max(latest.last, *times)
        latest.last_seq = last_seq
        latest.grown_by += len(times)
        self._grown.add(thread)

    def enter(self, draft: Draft, silence: int, thread: int, owner: int, seq: int, name: str) -> int:
        """Put a message into the session of its thread that has a name, whatever the silences say."""
        if thread in self._transaction.names.sessions:
            self._settle(thread)
        session = self._entered.get((thread, name))
        if session is None:
            found = self._transaction.connection.execute(_NAMED_WITH_TIMES, (thread, name)).fetchone()
            if found is None:
                automatic = opening_message(name) is not None
                self._transaction.connection.execute(
                    NEW_SESSION, (thread, name, automatic, owner, draft.at, seq, silence)
                )
                key = self._transaction.connection.last_insert_rowid()
                self._entered[thread, name] = LatestSession(key, name, draft.at, draft.at, None, seq)
                return key
            session = self._entered[thread, name] = LatestSession(found[0], name, found[1], found[2], None)
        session.started, session.last = min(session.started, draft.at), max(session.last, draft.at)
        session.last_seq = seq
        session.grown_by += 1
        return session.key

    def write(self) -> None:
        """Bring the stored sessions up to date."""
        self._write_entered()
        memo = self._transaction.names.sessions
        grown = [memo[thread] for thread in self._grown]
        self._transaction.connection.executemany(
            GROW, [(latest.key, latest.started, latest.last, latest.last_seq, latest.grown_by) for latest in grown]
        )
        for latest in grown:
            latest.grown_by = 0
        self._grown.clear()
        self._transaction.names.trim()

    def take_back(self) -> None:
        """Forget what was noted, after the changes themselves have been taken back."""
        self._grown.clear()
        self._entered.clear()

    def _write_entered(self) -> None:
        if not self._entered:
            return
        grown = [session for session in self._entered.values() if session.grown_by]
        self._transaction.connection.executemany(
            GROW, [(each.key, each.started, each.last, each.last_seq, each.grown_by) for each in grown]
        )
        self._entered.clear()

    def _latest(self, thread: int) -> LatestSession | None:
        memo = self._transaction.names.sessions
        latest = memo.get(thread)
        if latest is None:
            newest = rows.every(self._transaction.connection.execute(_LATEST, (thread,)))
            if not newest:
                return None
            key, name, started, last = newest[0]
            latest = memo[thread] = LatestSession(key, name, started, last, newest[1][3] if newest[1:] else None)
        return latest

    def _settle(self, thread: int) -> None:
        """Write and forget what is remembered of a thread, because its sessions are about to be changed."""
        self._before_change()
        self.write()
        self._transaction.names.sessions.pop(thread, None)

    def _named(self, draft: Draft, name: str, silence: int, thread: int, owner: int, seq: int) -> tuple[int, str]:
        execute = self._transaction.connection.execute
        found = execute(_NAMED, (thread, name)).fetchone()
        opened_by = opening_message(name)
        if found is None and opened_by is not None:
            # A name that the log gave out stays good when its session has become part of another.
            found = execute(_OF_MESSAGE, (opened_by, thread)).fetchone()
            if found is None:
                raise InvalidInput(
                    f"there is no session {quoted(name)} in this thread; names like it are given by Aforesaid"
                )
        if found is None:
            execute(NEW_SESSION, (thread, name, 0, owner, draft.at, seq, silence))
            return self._transaction.connection.last_insert_rowid(), name
        key, current = found
        # Whoever continues a session by name decides how long it lasts; the silences no longer do.
        execute(_BY_HAND, (key,))
        self._grow(key, draft.at, draft.at, seq, 1)
        return key, current

    def _automatic(self, draft: Draft, silence: int, thread: int, owner: int, seq: int) -> tuple[int, str]:
        execute = self._transaction.connection.execute
        near = rows.every(execute(_NEAR, (thread, draft.at + silence)))
        placement = place(draft.at, silence, [SessionBounds(key, started, last) for key, started, last, _ in near])
        if placement.keep is None:
            name = automatic_name(seq)
            execute(NEW_SESSION, (thread, name, 1, owner, draft.at, seq, silence))
            return self._transaction.connection.last_insert_rowid(), name
        keep = placement.keep.key
        if placement.absorb is not None:
            gone = placement.absorb.key
            execute(_MOVE, (keep, gone))
            execute(_ABSORB, (keep, gone))
            execute(_REGROUPED_PEOPLE, (keep,))
            execute("UPDATE thread SET revision = revision + 1 WHERE id = ?", (thread,))
            execute("DELETE FROM session WHERE id = ?", (gone,))
        self._grow(keep, draft.at, draft.at, seq, 1)
        return keep, next(name for key, _, _, name in near if key == keep)

    def _grow(self, key: int, first: int, last: int, last_seq: int, messages: int) -> None:
        self._transaction.connection.execute(GROW, (key, first, last, last_seq, messages))


def _surely_in(latest: LatestSession, at: int, silence: int) -> bool:
    """Tell whether the newest session is the only one that is near, without asking the file."""
    if not latest.started <= at < latest.last + silence:
        return False
    return latest.earlier_last is None or at >= latest.earlier_last + silence
