"""Appending messages: what is read before they are placed, and how rows are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from aforesaid.domain.message import Draft, Message, repeats
from aforesaid.domain.receipt import Stored
from aforesaid.domain.scope import is_direct
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.messages import MESSAGE, read_message
from aforesaid.store.placing import Growth, Latest, Place, Placing, Prepared
from aforesaid.store.postgres.queries import Row, insert_rows, over_rows, statements
from aforesaid.store.postgres.write_transaction import WriteTransaction
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
        later = self._transaction.queries.later_rows
        if self._owners:
            owners = {
                place: (True, created, messages, turns, turns, *others)
                for place, (created, messages, turns, *others) in self._owners.items()
            }
            later(_OWNERS, self._table(owners))
            self._owners.clear()
        if self._authors:
            later(_AUTHORS, self._table({place: (at,) for place, at in self._authors.items()}))
            self._authors.clear()
        if self._threads:
            later(_THREADS, self._table(dict.fromkeys(self._threads, ())))
            self._threads.clear()
        if self._shared:
            later(_COUNT_THREADS, self._table({place: tuple(counts) for place, counts in self._shared.items()}))
            self._shared.clear()

    def write_messages(self) -> None:
        if self._messages:
            self._transaction.queries.later_rows(_NEW_MESSAGES, self._messages)
            self._messages = []

    def write_sessions(self) -> None:
        if self._sessions:
            self._transaction.queries.later_rows(_NEW_SESSIONS, self._sessions)
            self._sessions = []
        super().write_sessions()

    def write_growth(self, grown: Mapping[tuple[str, int], Growth]) -> None:
        rows = [(*key, each.started, each.last, each.last_seq, each.messages) for key, each in grown.items()]
        self._transaction.queries.later_rows(_GROW, rows)

    def _table(self, counted: dict[Place, tuple[int, ...]]) -> list[Row]:
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
        else:
            self._threads.add((scope.space, scope.thread))


def _place(draft: Draft) -> Place:
    return draft.scope.space, draft.scope.thread


def _message(known: Message | Stored) -> Message:
    return known.message if isinstance(known, Stored) else known
