"""Appending messages: what is read before they are placed, and how rows are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final

from aforesaid.domain.message import Draft, Message, repeats
from aforesaid.domain.receipt import Result, Stored
from aforesaid.domain.scope import is_direct
from aforesaid.extras import re
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.messages import MESSAGE, read_message
from aforesaid.store.placing import Growth, Latest, Place, Placing, Prepared
from aforesaid.store.postgres.queries import (
    Queries,
    Row,
    RowStatement,
    insert_rows,
    over_rows,
    statements,
)
from aforesaid.store.postgres.write_transaction import Numbers, WriteTransaction
from aforesaid.store.sql import Answer, done, for_postgres

_BY_GIVEN_ID: Final = over_rows(
    for_postgres(MESSAGE)
    + """
    JOIN {rows} ON log.space = {space} AND log.given_id = new.given_id AND md5(log.thread) = md5(new.thread)
     AND log.thread = new.thread
    """,
    "thread text, given_id text",
)
_BY_TIME: Final = over_rows(
    for_postgres(MESSAGE)
    + "JOIN {rows} ON log.space = {space} AND log.thread = new.thread AND log.at = new.at ORDER BY log.seq",
    "thread text, at bigint",
)
_NEW_MESSAGES: Final = insert_rows(
    "log",
    """
    seq bigint, owner text, thread text, shared boolean, session bigint, author text, role text, name text,
    text text, at bigint, stored_at bigint, given_id text, words integer, terms bytea, hash bytea, replaces bigint,
    replaced boolean, details text
    """,
)
_AUTHORS: Final = insert_rows("person", "name text, created_at bigint, revision bigint", "ON CONFLICT DO NOTHING")
_OWNERS: Final = insert_rows(
    "person",
    """
    name text, owner boolean, created_at bigint, messages bigint, turns bigint, open_turns bigint, words bigint,
    last_seq bigint, last_at bigint, revision bigint
    """,
    f"""
    ON CONFLICT (space, name) DO UPDATE SET owner = true, messages = person.messages + excluded.messages,
           turns = person.turns + excluded.turns, open_turns = person.open_turns + excluded.open_turns,
           words = person.words + excluded.words, last_seq = excluded.last_seq,
           last_at = greatest(person.last_at, excluded.last_at),
           checksum = CASE WHEN person.owner THEN person.checksum ELSE {CHECKSUMS.changed("person", owner="true")} END
    """,
)
_THREADS: Final = insert_rows("thread", "name text, revision bigint", "ON CONFLICT DO NOTHING")
_COUNT_THREADS: Final = insert_rows(
    "thread",
    "name text, messages bigint, words bigint, revision bigint",
    """
    ON CONFLICT (space, name) DO UPDATE SET messages = thread.messages + excluded.messages,
           words = thread.words + excluded.words
    """,
)
_LATEST: Final = over_rows(
    """
    SELECT s.space, new.thread, s.id, s.name, s.started_at, s.last_at
      FROM {rows} CROSS JOIN LATERAL (
        SELECT space, id, name, started_at, last_at FROM session
         WHERE space = {space} AND thread = new.thread AND automatic ORDER BY started_at DESC, id DESC LIMIT 2
      ) s ORDER BY s.started_at, s.id
    """,
    "thread text",
)
"""The newest two automatic sessions of each thread, the newest last."""
_NEW_SESSIONS: Final = insert_rows(
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


class Appender(Placing):
    """Appends messages within one write transaction."""

    def __init__(self, transaction: WriteTransaction, steps: Sequence[Prepared]) -> None:
        """Append the messages of these steps, and no others."""
        super().__init__(transaction, {})
        self._transaction = transaction
        self._steps = steps
        self._by_id: dict[tuple[str, str, str], Message | Stored] = {}
        self._by_time: dict[tuple[str, str, int], list[tuple[Message | Stored, str | None]]] = {}
        self._messages: list[Row] = []
        self._sessions: list[Row] = []
        self._authors: dict[Place, int] = {}
        self._owners: dict[Place, list[int]] = {}
        self._threads: set[Place] = set()
        self._shared: dict[Place, list[int]] = {}

    async def begin(self) -> None:
        """Hold the spaces, and read all that is needed to place the messages, in one journey."""
        ids = [step.draft for step in self._steps if step.draft.id is not None]
        timed = [step.draft for step in self._steps if step.draft.at_given]
        threads = sorted({(step.draft.scope.space, step.draft.scope.thread) for step in self._steps})
        wanted = (
            (_BY_GIVEN_ID, [(*_place(each), each.id) for each in ids]),
            (_BY_TIME, sorted({(*_place(each), each.at) for each in timed})),
            (_LATEST, threads),
        )
        distributed = self._transaction.queries.distributed
        asked = [statements(text, table, distributed=distributed) if table else [] for text, table in wanted]
        answers = iter(await self._transaction.begin(*(statement for some in asked for statement in some)))
        by_id, by_time, sessions = ([row for _ in some for row in next(answers)] for some in asked)
        for row in by_id:
            self._by_id[row[2], row[4], row[1]] = read_message(row)
        for row in by_time:
            self._by_time.setdefault((row[2], row[4], row[10]), []).append((read_message(row), row[1]))
        self._latest.update(dict.fromkeys(threads))
        for space, thread, key, name, started, last in sessions:
            before = self._latest[space, thread]
            self._latest[space, thread] = Latest(key, name, started, last, None if before is None else before.last)

    def delivered_before(self, draft: Draft) -> Answer[Message | None]:
        if draft.id is not None:
            found = self._by_id.get((*_place(draft), draft.id))
            if found is not None:
                return done(_message(found))
        if draft.at_given:
            for known, given in self._by_time.get((*_place(draft), draft.at), ()):
                message = _message(known)
                if repeats(draft, message, given):
                    return done(message)
        return done(None)

    def next_number(self, space: str) -> int:
        return self._transaction.numbers[space].seq + 1

    def open_session(self, draft: Draft, name: str, silence: int, seq: int, *, automatic: bool) -> int:
        scope, numbers = draft.scope, self._transaction.numbers[draft.scope.space]
        numbers.session += 1
        names = (scope.space, numbers.session, scope.thread, name, automatic, scope.user)
        self._sessions.append((*names, draft.at, draft.at, seq, seq, 1, silence))
        if is_direct(scope.thread):
            self._threads.add((scope.space, scope.thread))
        return numbers.session

    def collect(self, stored: Stored, step: Prepared, session: int, *, hidden: bool = False) -> None:
        draft, seq, _, digest = stored
        scope = draft.scope
        shared = not is_direct(scope.thread)
        self._transaction.numbers[scope.space].seq = seq
        self._messages.append(
            (scope.space, seq, scope.user, scope.thread, shared, session, draft.author, draft.role, draft.name)
            + (draft.text, draft.at, draft.stored_at, draft.id, step.words, step.terms, digest, draft.replaces)
            + (hidden or draft.is_tombstone, draft.details)
        )
        self._count(draft, seq, step.words, shared=shared)
        if draft.id is not None:
            self._by_id[(*_place(draft), draft.id)] = stored
        self._by_time.setdefault((*_place(draft), draft.at), []).append((stored, draft.id))

    def write(self) -> None:
        super().write()
        if self._owners:
            owners = {
                place: (True, created, messages, turns, turns, *others)
                for place, (created, messages, turns, *others) in self._owners.items()
            }
            self.later(_OWNERS, self._table(owners))
        if authors := {place: (at,) for place, at in self._authors.items() if place not in self._owners}:
            self.later(_AUTHORS, self._table(authors))
        self._owners.clear()
        self._authors.clear()
        if self._threads:
            self.later(_THREADS, self._table(dict.fromkeys(self._threads, ())))
            self._threads.clear()
        if self._shared:
            self.later(_COUNT_THREADS, self._table({place: tuple(counts) for place, counts in self._shared.items()}))
            self._shared.clear()

    def later(self, statement: RowStatement, rows: Sequence[Row]) -> None:
        self._transaction.queries.later_rows(statement, rows)

    def write_messages(self) -> None:
        if self._messages:
            self.later(_NEW_MESSAGES, self._messages)
            self._messages = []

    def write_sessions(self) -> None:
        if self._sessions:
            self.later(_NEW_SESSIONS, self._sessions)
            self._sessions = []
        super().write_sessions()

    def write_growth(self, grown: Mapping[tuple[str, int], Growth]) -> None:
        self.later(
            _GROW, [(*key, each.started, each.last, each.last_seq, each.messages) for key, each in grown.items()]
        )

    def newest_sessions(self) -> dict[Place, Latest]:
        """Return the newest sessions of threads, as far as they are known in the end."""
        return {place: latest for place, latest in self._latest.items() if latest is not None}

    def _table(self, counted: Mapping[Place, tuple[int, ...]]) -> list[Row]:
        numbers = self._transaction.numbers
        return [(*place, *counts, numbers[place[0]].first_revision) for place, counts in sorted(counted.items())]

    def _count(self, draft: Draft, seq: int, words: int, *, shared: bool) -> None:
        scope, turn = draft.scope, int(draft.role == "user")
        counts = self._owners.get((scope.space, scope.user))
        if counts is None:
            self._owners[scope.space, scope.user] = [draft.stored_at, 1, turn, words, seq, draft.at]
        else:
            created, messages, turns, counted, _, last_at = counts
            counts[:] = [created, messages + 1, turns + turn, counted + words, seq, max(last_at, draft.at)]
        if draft.author != scope.user:
            self._authors.setdefault((scope.space, draft.author), draft.stored_at)
        if shared:
            in_thread = self._shared.setdefault((scope.space, scope.thread), [0, 0])
            in_thread[:] = [in_thread[0] + 1, in_thread[1] + words]


_HOLD: Final = """
SELECT FROM (
    SELECT set_config('aforesaid.space', $1, true) AS space, set_config('aforesaid.reach', 'one', true),
           -- The plan of what follows is made once, and looks every row up by its key, however few there were then.
           set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
           set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)
) wall CROSS JOIN LATERAL (SELECT FROM space WHERE space.space = wall.space FOR UPDATE) held
"""
"""Names the space, then locks it: what the next statement sees is all that has been stored in it."""
_CONTINUES: Final = """
UPDATE space SET last_seq = space.last_seq + 1
 WHERE space.space = $1::text
   AND EXISTS (
       SELECT FROM (
           SELECT array_agg(id) AS id, array_agg(started_at) AS started_at, array_agg(last_at) AS last_at FROM (
               SELECT id, started_at, last_at FROM session
                WHERE space = $1::text AND thread = $2::text AND automatic ORDER BY started_at DESC, id DESC LIMIT 2
           ) two
       ) newest
        WHERE id[1] = $3::bigint AND started_at[1] <= $4::bigint AND last_at[1] >= $5::bigint
          AND last_at[2] IS NOT DISTINCT FROM $6::bigint)
   AND NOT EXISTS (SELECT FROM log WHERE space = $1::text AND thread = $2::text AND at = $7::bigint)
   AND NOT EXISTS (SELECT FROM log WHERE space = $1::text AND thread = $2::text AND given_id = $8::text)
RETURNING space.last_seq - 1 AS last_seq, space.purges << 32 AS first_revision
"""
"""Takes a number, if a session is still the newest of its thread, and no message has the time or the id of the new one.

The session may have grown since it was known: a message that surely belonged to it then still does.
"""
_NUMBER_OF: Final = """
SELECT min(seq) FROM log WHERE space = $1 AND thread = $2 AND at = $3 AND stored_at = $4 AND hash = $5
"""
_VALUE: Final = re.compile(r"\$(\d+)")


class Continuation:
    """A message that belongs to the newest session of its thread, as far as that is known.

    It is placed before anything is locked, as if the space were empty. One statement then stores it after the last
    message of the space, or nothing if something is otherwise than was known.
    """

    def __init__(self, step: Prepared, known: dict[Place, Latest]) -> None:
        self._step = step
        self._known = known
        self._stored: Stored | None = None
        """The message, as if the space had been empty."""

    @property
    def possible(self) -> bool:
        """Whether it surely belongs to a session that is known."""
        latest = self._known.get(_place(self._step.draft))
        return latest is not None and latest.surely_has(self._step.draft.at, self._step.silence)

    async def store(self, queries: Queries) -> list[tuple[Result, ...]] | None:
        """Store it in one round trip, and return the result; None when nothing was stored."""
        draft = self._step.draft
        place = _place(draft)
        latest = self._known[place]
        appender = _Ahead(WriteTransaction(queries, [draft.scope.space]), place, latest)
        self._stored = appender.place(self._step)
        held = (*place, latest.key, latest.started, latest.last, latest.earlier_last, draft.at, draft.id)
        text = _joined(tuple(statement.after for statement, _ in appender.parts))
        values = (value for _, row in appender.parts for value in row)
        _, found = await queries.together((_HOLD, place[:1]), (text, (*held, *values)))
        if not found:
            return None
        self._known.update(appender.newest_sessions())
        return [(self._stored._replace(seq=found[0][0]),)]

    async def found(self, queries: Queries) -> list[tuple[Result, ...]] | None:
        """Return the result if it is stored, where the answer was lost."""
        draft = self._step.draft
        seq = await queries.value(_NUMBER_OF, *_place(draft), draft.at, draft.stored_at, draft.hash)
        return None if seq is None or self._stored is None else [(self._stored._replace(seq=seq),)]


class _Ahead(Appender):
    """Collects what is to be written of one message, and writes nothing."""

    def __init__(self, transaction: WriteTransaction, place: Place, latest: Latest) -> None:
        super().__init__(transaction, ())
        transaction.numbers[place[0]] = Numbers()
        self._latest[place] = replace(latest)
        self.parts: list[tuple[RowStatement, Row]] = []

    def place(self, step: Prepared) -> Stored:
        """Place a message that surely belongs to the newest session."""
        try:
            asked = next(self.append(step))
        except StopIteration as end:
            self.write()
            stored: Stored = end.value
            return stored
        raise AssertionError(f"a message that continues a session asks for nothing, but it asked: {asked}")

    def later(self, statement: RowStatement, rows: Sequence[Row]) -> None:
        (row,) = rows
        self.parts.append((statement, row))


@lru_cache(maxsize=100)
def _joined(parts: tuple[str, ...]) -> str:
    """Return one statement of these parts, each of which binds its own values after those of the ones before it."""
    bound = 8
    named: list[str] = []
    for part in parts:
        text = _VALUE.sub(lambda value, before=bound: f"${int(value[1]) + before}", part)  # type: ignore[misc]
        named.append(f"part{len(named)} AS ({text})")
        bound += max(int(value) for value in _VALUE.findall(part))
    return f"WITH held AS ({_CONTINUES}), {', '.join(named)} SELECT last_seq + 1 FROM held"


def _place(draft: Draft) -> Place:
    return draft.scope.space, draft.scope.thread


def _message(known: Message | Stored) -> Message:
    return known.message if isinstance(known, Stored) else known
