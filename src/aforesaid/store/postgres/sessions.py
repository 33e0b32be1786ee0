"""Finding the session of each message that is appended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from aforesaid.domain.message import Draft
from aforesaid.domain.scope import Scope, SessionBounds, automatic_name, opening_message, place
from aforesaid.errors import InvalidInput, quoted
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.postgres.queries import Row, insert_rows, over_rows
from aforesaid.store.postgres.write_transaction import WriteTransaction

LATEST: Final = over_rows(
    """
    SELECT s.space, new.thread, s.id, s.name, s.started_at, s.last_at
      FROM {rows} CROSS JOIN LATERAL (
        SELECT space, id, name, started_at, last_at FROM session
         WHERE space = {space} AND thread = new.thread AND automatic ORDER BY started_at DESC, id DESC LIMIT 2
      ) s ORDER BY s.started_at, s.id
    """,
    "thread text",
)
"""The newest two automatic sessions of each thread."""
_NEAR: Final = """
SELECT id, started_at, last_at, name FROM session
 WHERE space = $1 AND thread = $2 AND automatic AND started_at < $3 ORDER BY started_at DESC, id DESC LIMIT 2
"""
_NAMED: Final = """
SELECT id, name FROM session WHERE space = $1 AND name = $3 AND md5(thread) = md5($2) AND thread = $2
"""
_OF_MESSAGE: Final = """
SELECT s.id, s.name FROM log JOIN session s ON s.space = log.space AND s.id = log.session
 WHERE log.space = $1 AND log.seq = $3 AND log.thread = $2
"""
_NEW: Final = insert_rows(
    "session",
    """
    id bigint, thread text, name text, automatic boolean, opened_by text, started_at bigint, last_at bigint,
    first_seq bigint, last_seq bigint, messages bigint, timeout bigint
    """,
)
_GROW: Final = over_rows(
    """
    UPDATE session SET started_at = least(session.started_at, new.started_at),
           last_at = greatest(session.last_at, new.last_at), last_seq = new.last_seq,
           messages = session.messages + new.messages
      FROM {rows} WHERE session.space = {space} AND session.id = new.id
    """,
    "id bigint, started_at bigint, last_at bigint, last_seq bigint, messages bigint",
)
_BY_HAND: Final = CHECKSUMS.update("session", "space = $1 AND id = $2 AND automatic", automatic="false")
_MOVE: Final = """
UPDATE log SET session = $2 FROM session s
 WHERE s.space = $1 AND s.id = $3 AND log.space = $1 AND log.session = $3 AND log.thread = s.thread
   AND log.at BETWEEN s.started_at AND s.last_at
"""
_ABSORB: Final = """
UPDATE session SET started_at = least(session.started_at, o.started_at), last_at = greatest(session.last_at, o.last_at),
       first_seq = least(session.first_seq, o.first_seq), last_seq = greatest(session.last_seq, o.last_seq),
       messages = session.messages + o.messages
  FROM session o WHERE session.space = $1 AND session.id = $2 AND o.space = $1 AND o.id = $3
"""
_REGROUPED_PEOPLE: Final = """
UPDATE person SET revision = revision + 1 WHERE space = $1 AND name IN (
    SELECT log.owner FROM session s JOIN log ON log.space = s.space AND log.thread = s.thread
       AND log.at BETWEEN s.started_at AND s.last_at AND log.session = s.id
     WHERE s.space = $1 AND s.id = $2
)
"""
_REGROUPED_THREAD: Final = "UPDATE thread SET revision = revision + 1 WHERE space = $1 AND name = $2"
_GONE: Final = "DELETE FROM session WHERE space = $1 AND id = $2"


@dataclass(slots=True)
class _Latest:
    """The newest automatic session of a thread."""

    key: int
    name: str
    started: int
    last: int
    earlier_last: int | None
    """When the session before it ended."""


@dataclass(slots=True)
class _Growth:
    """What has been added to a session, and is still to be written down."""

    started: int
    last: int
    last_seq: int
    messages: int


class Sessions:
    """Sessions within one write transaction."""

    def __init__(self, transaction: WriteTransaction, before_change: Callable[[], None]) -> None:
        """`before_change` writes messages that are still on their way."""
        self._transaction = transaction
        self._before_change = before_change
        self._latest: dict[tuple[str, str], _Latest | None] = {}
        self._new_rows: list[Row] = []
        self._grown: dict[tuple[str, int], _Growth] = {}
        self._entered: dict[tuple[str, str, str], int] = {}
        """The sessions of messages that came back from a dump."""

    def remember(self, threads: Iterable[tuple[str, str]], found: Iterable[Row]) -> None:
        """Keep the newest sessions of threads."""
        self._latest.update(dict.fromkeys(threads))
        for space, thread, key, name, started, last in found:
            before = self._latest[space, thread]
            self._latest[space, thread] = _Latest(key, name, started, last, None if before is None else before.last)

    async def place(self, draft: Draft, silence: int, seq: int) -> tuple[int, str]:
        """Return the number and the name of the session that the message belongs to."""
        scope = draft.scope
        if scope.session is not None:
            return await self._named(draft, scope.session, silence, seq)
        if (scope.space, scope.thread) not in self._latest:
            await self._remember_again(scope)
        latest = self._latest[scope.space, scope.thread]
        if latest is None or draft.at >= latest.last + silence:
            # Sessions do not overlap, so none is near when the newest is not.
            return self._open(draft, silence, seq, None if latest is None else latest.last)
        if latest.started <= draft.at and (latest.earlier_last is None or draft.at >= latest.earlier_last + silence):
            latest.last = max(latest.last, draft.at)
            self._grow(scope.space, latest.key, draft.at, seq)
            return latest.key, latest.name
        return await self._between(draft, silence, seq)

    async def enter(self, draft: Draft, silence: int, seq: int, name: str) -> int:
        """Put a message into the session of its thread that has a name, whatever the silences say."""
        scope = draft.scope
        here = scope.space, scope.thread
        self._latest.pop(here, None)
        key = self._entered.get((*here, name))
        if key is None:
            self.write()
            found = await self._transaction.queries.first(_NAMED, *here, name)
            if found is None:
                automatic = opening_message(name) is not None
                key = self._new(scope, name, draft.at, seq, silence, automatic=automatic)
                self._entered[*here, name] = key
                return key
            key = self._entered[*here, name] = found[0]
        self._grow(scope.space, key, draft.at, seq)
        return key

    def write(self) -> None:
        """Bring the stored sessions up to date."""
        if self._new_rows:
            self._transaction.later_rows(_NEW, self._new_rows)
            self._new_rows = []
        if self._grown:
            rows = [
                (*session, each.started, each.last, each.last_seq, each.messages)
                for session, each in self._grown.items()
            ]
            self._transaction.later_rows(_GROW, rows)
            self._grown.clear()

    def _grow(self, space: str, key: int, at: int, seq: int) -> None:
        grown = self._grown.get((space, key))
        if grown is None:
            self._grown[space, key] = _Growth(at, at, seq, 1)
        else:
            grown.started, grown.last = min(grown.started, at), max(grown.last, at)
            grown.last_seq = seq
            grown.messages += 1

    def _open(self, draft: Draft, silence: int, seq: int, earlier_last: int | None) -> tuple[int, str]:
        name = automatic_name(seq)
        key = self._new(draft.scope, name, draft.at, seq, silence, automatic=True)
        self._latest[draft.scope.space, draft.scope.thread] = _Latest(key, name, draft.at, draft.at, earlier_last)
        return key, name

    def _new(self, scope: Scope, name: str, at: int, seq: int, silence: int, *, automatic: bool) -> int:
        numbers = self._transaction.numbers[scope.space]
        numbers.session += 1
        names = (scope.space, numbers.session, scope.thread, name, automatic, scope.user)
        self._new_rows.append((*names, at, at, seq, seq, 1, silence))
        return numbers.session

    def _settle(self) -> None:
        """Write what is remembered, because the sessions of a thread are about to be changed."""
        self._before_change()
        self.write()

    async def _remember_again(self, scope: Scope) -> None:
        self.write()
        thread = (scope.space, scope.thread)
        self.remember([thread], await self._transaction.queries.rows_of(LATEST, [thread]))

    async def _named(self, draft: Draft, name: str, silence: int, seq: int) -> tuple[int, str]:
        scope, transaction = draft.scope, self._transaction
        here = scope.space, scope.thread
        self._settle()
        found = await transaction.queries.first(_NAMED, *here, name)
        opened_by = opening_message(name)
        if found is None and opened_by is not None:
            # A name that the log gave out stays good when its session has become part of another.
            found = await transaction.queries.first(_OF_MESSAGE, *here, opened_by)
            if found is None:
                raise InvalidInput(
                    f"there is no session {quoted(name)} in this thread; names like it are given by Aforesaid"
                )
        if found is None:
            return self._new(scope, name, draft.at, seq, silence, automatic=False), name
        key, current = found
        # Whoever continues a session by name decides how long it lasts; the silences no longer do.
        transaction.later(_BY_HAND, scope.space, key)
        self._grow(scope.space, key, draft.at, seq)
        await self._remember_again(scope)
        return key, current

    async def _between(self, draft: Draft, silence: int, seq: int) -> tuple[int, str]:
        """Place a message that was said before the end of the newest session."""
        scope, transaction = draft.scope, self._transaction
        self._settle()
        near = await transaction.queries.rows(_NEAR, scope.space, scope.thread, draft.at + silence)
        placement = place(draft.at, silence, [SessionBounds(key, started, last) for key, started, last, _ in near])
        if placement.keep is None:
            name = automatic_name(seq)
            key = self._new(scope, name, draft.at, seq, silence, automatic=True)
        else:
            key = placement.keep.key
            name = next(name for number, _, _, name in near if number == key)
            if placement.absorb is not None:
                gone = placement.absorb.key
                transaction.later(_MOVE, scope.space, key, gone)
                transaction.later(_ABSORB, scope.space, key, gone)
                transaction.later(_REGROUPED_PEOPLE, scope.space, key)
                transaction.later(_REGROUPED_THREAD, scope.space, scope.thread)
                transaction.later(_GONE, scope.space, gone)
            self._grow(scope.space, key, draft.at, seq)
        await self._remember_again(scope)
        return key, name
