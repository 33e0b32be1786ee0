"""The inside of a write transaction: rows, numbers and the audit log; messages that are appended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from typing import Any, Final

from aforesaid.domain.checks import now
from aforesaid.domain.hit import TOKENS, VectorRow
from aforesaid.domain.memory import NoteKey, NoteKind, NoteVector
from aforesaid.domain.message import Draft, Message, repeats
from aforesaid.domain.receipt import Result, Stored
from aforesaid.domain.scope import Scope, is_direct
from aforesaid.domain.transfer import VectorOf
from aforesaid.extras import re
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.messages import MESSAGE, read_message
from aforesaid.store.operations import Transaction
from aforesaid.store.placing import Growth, Latest, Place, Placing, Prepared
from aforesaid.store.postgres.queries import (
    HalfVector,
    Queries,
    Row,
    RowStatement,
    Statement,
    insert_rows,
    over_rows,
    statements,
)
from aforesaid.store.ranking import content_hash, hashed, note_number_of
from aforesaid.store.sql import Answer, done, exists, first, for_postgres
from aforesaid.store.vector_matrix import unpacked
from aforesaid.text.languages import terms

_LAST_NUMBERS: Final = """
SELECT space, last_seq, last_session, last_summary, last_memory, last_tombstone, last_audit, purges FROM space
"""
_HOLD: Final = f"{_LAST_NUMBERS} WHERE space = ANY($1::text[]) ORDER BY space FOR UPDATE"
_NEW_SPACES: Final = "INSERT INTO space (space) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING"
# Rows of several shards cannot be locked by one statement.
_HOLD_ONE: Final = f"{_LAST_NUMBERS} WHERE space = $1 FOR UPDATE"
_NEW_SPACE: Final = "INSERT INTO space (space) VALUES ($1) ON CONFLICT DO NOTHING"
_COUNT: Final = over_rows(
    """
    UPDATE space SET last_seq = new.seq, last_session = new.session, last_summary = new.summary,
           last_memory = new.memory, last_tombstone = new.tombstone, last_audit = new.audit, purges = new.purges
      FROM {rows} WHERE space.space = {space}
    """,
    "seq bigint, session bigint, summary bigint, memory bigint, tombstone bigint, audit bigint, purges bigint",
)
_OWNS: Final = CHECKSUMS.insert(
    "person",
    ("space", "name", "owner", "created_at", "revision"),
    f"""
    ON CONFLICT (space, name) DO UPDATE SET {CHECKSUMS.setting("person", owner="true")} WHERE NOT person.owner
    """,
)
_AUTHOR: Final = CHECKSUMS.insert("person", ("space", "name", "created_at", "revision"), "ON CONFLICT DO NOTHING")
_THREAD: Final = CHECKSUMS.insert("thread", ("space", "name", "revision"), "ON CONFLICT DO NOTHING")
_AUDIT: Final = insert_rows("audit", "id bigint, at bigint, owner text, actor text, action text, subject text")
MARKS: Final[Mapping[NoteKind, str]] = {"summary": "summaries_up_to", "memory": "memories_up_to"}
_SEEN: Final = {
    mark: insert_rows(
        "embedder",
        f"name text, {mark} bigint",
        f"ON CONFLICT (space, name) DO UPDATE SET {mark} = greatest(embedder.{mark}, excluded.{mark})",
    )
    for mark in ("up_to", "summaries_up_to", "memories_up_to")
}
_ADD: Final = over_rows(
    """
    INSERT INTO embedding (space, seq, embedder, owner, content, value, tokens)
    SELECT log.space, log.seq, {0}::text, log.owner, new.content, new.value, new.tokens
      FROM {rows} JOIN log ON log.space = {space} AND log.seq = new.seq
    ON CONFLICT (space, seq, embedder) DO UPDATE SET value = NULL, tokens = excluded.tokens
       WHERE embedding.tokens IS NULL AND excluded.tokens IS NOT NULL
    """,
    "seq bigint, content bigint, value halfvec, tokens bytea",
)
_ADD_VECTOR: Final = """
INSERT INTO note_embedding (space, owner, note, embedder, value)
SELECT space, owner, $3, $4, $5 FROM {table} WHERE space = $1 AND id = $2
ON CONFLICT DO NOTHING
"""
_DROP_VECTORS: Final = "DELETE FROM note_embedding WHERE space = $1 AND owner = $2 AND note = $3"
_GO_BACK: Final = "UPDATE embedder SET memories_up_to = least(memories_up_to, $2 - 1) WHERE space = $1"
_VECTOR: Final = """
INSERT INTO embedding (space, seq, embedder, owner, content, value, tokens)
SELECT space, seq, $3, owner, $4, $5, $6 FROM log WHERE space = $1 AND seq = $2
ON CONFLICT DO NOTHING RETURNING 1
"""


def _columns_for(value: bytes) -> tuple[HalfVector | None, bytes | None]:
    """Return what the columns `value` and `tokens` hold of a vector. Only numbers of half precision can be compared."""
    return (None, value) if value.startswith(TOKENS) else (HalfVector(unpacked([value])[0]), None)


@dataclass(slots=True)
class Numbers:
    """The last numbers that were given in a space, in the order of the columns."""

    seq: int = 0
    session: int = 0
    summary: int = 0
    memory: int = 0
    tombstone: int = 0
    audit: int = 0
    purges: int = 0

    @property
    def first_revision(self) -> int:
        """The revision that whoever is new starts with."""
        return self.purges << 32


class WriteTransaction(Transaction):
    """The inside of one write transaction. Nobody else writes to its spaces until it ends."""

    checksums = CHECKSUMS

    def __init__(self, queries: Queries, spaces: Sequence[str]) -> None:
        self.queries = queries
        self._spaces = list(spaces)
        self._before: dict[str, Row] = {}
        self._audit: list[Row] = []
        self.numbers: dict[str, Numbers] = {}

    async def begin(self, *asked: Statement) -> list[list[Row]]:
        """Lock the spaces, and ask some things once they are locked."""
        new: list[Statement] = [(_NEW_SPACES, (self._spaces,))]
        hold: list[Statement] = [(_HOLD, (self._spaces,))]
        if self.queries.distributed:
            new = [(_NEW_SPACE, (space,)) for space in self._spaces]
            hold = [(_HOLD_ONE, (space,)) for space in self._spaces]
        answers = await self.queries.together(*hold, *asked)
        while sum(map(len, answers[: len(hold)])) < len(self._spaces):
            # What was asked together with it may be of a moment before the new spaces were locked.
            answers = (await self.queries.together(*new, *hold, *asked))[len(new) :]
        self._before = {row[0]: row[1:] for found in answers[: len(hold)] for row in found}
        self.numbers = {space: Numbers(*last) for space, last in self._before.items()}
        return answers[len(hold) :]

    def settle(self) -> None:
        """Write down the numbers that were given, and the audit rows."""
        if self._audit:
            self.queries.later_rows(_AUDIT, self._audit)
        given = {space: astuple(last) for space, last in self.numbers.items()}
        counted = [(space, *last) for space, last in given.items() if last != self._before[space]]
        if counted:
            self.queries.later_rows(_COUNT, counted)

    def later(self, text: str, *values: Any) -> None:  # noqa: ANN401
        if chosen := for_postgres(text):
            self.queries.later(chosen, *values)

    def number(self, table: str, space: str, least: int = 0) -> int:
        numbers = self.numbers[space]
        number: int = max(getattr(numbers, table) + 1, least)
        setattr(numbers, table, number)
        return number

    def space(self, space: str) -> dict[str, str]:
        return {"space": space}

    def whose(self, space: str, user: str) -> dict[str, str]:
        return {"space": space, "owner": user}

    def person(self, space: str, name: str, at: int | None = None) -> str:
        self.queries.later(_AUTHOR, space, name, now() if at is None else at, self.numbers[space].first_revision)
        return name

    def thread(self, space: str, name: str) -> str:
        self.queries.later(_THREAD, space, name, self.numbers[space].first_revision)
        return name

    def terms(self, text: str) -> dict[str, Any]:
        return {"terms": hashed(terms(text))}

    def audit(self, scope: Scope, actor: str, action: str, subject: str, at: int | None = None) -> None:
        numbers = self.numbers[scope.space]
        numbers.audit += 1
        when = now() if at is None else at
        self._audit.append((scope.space, numbers.audit, when, scope.user, actor, action, subject))

    def own(self, scope: Scope, at: int) -> None:
        self.later(_OWNS, scope.space, scope.user, True, at, self.numbers[scope.space].first_revision)

    def index_note(self, scope: Scope, key: NoteKey, _: str, before: str | None = None) -> None:
        """Embed a memory again whose text changed. Its words are found by the column `terms`."""
        if before is not None:
            self.queries.later(_DROP_VECTORS, scope.space, scope.user, note_number_of(key))
            self.queries.later(_GO_BACK, scope.space, key.id)

    def add_vectors(self, embedder: str, rows: Sequence[VectorRow], _: int) -> None:
        if not rows:
            return
        marks: dict[str, int] = {}
        new = []
        for row in rows:
            if row.value:
                new.append((row.space, row.seq, content_hash(row.text), *_columns_for(row.value)))
            marks[row.space] = max(marks.get(row.space, 0), row.seq)
        if new:
            self.queries.later_rows(_ADD, new, embedder)
        self.queries.later_rows(_SEEN["up_to"], [(space, embedder, up_to) for space, up_to in marks.items()])

    def add_note_vectors(self, embedder: str, rows: Sequence[NoteVector]) -> None:
        marks: dict[tuple[str, NoteKind], int] = {}
        for key, value, space in rows:
            vector = HalfVector(unpacked([value])[0])
            self.queries.later(_ADD_VECTOR.format(table=key.kind), space, key.id, note_number_of(key), embedder, vector)
            marks[space, key.kind] = max(marks.get((space, key.kind), 0), key.id)
        for (space, kind), up_to in marks.items():
            self.queries.later_rows(_SEEN[MARKS[kind]], [(space, embedder, up_to)])

    def put_vector(self, row: VectorOf) -> Answer[bool]:
        text = yield from first("SELECT text FROM log WHERE space = $1 AND seq = $2", row.space, row.seq)
        content = content_hash("" if text is None else text[0])
        return (yield from exists(_VECTOR, row.space, row.seq, row.embedder, content, *_columns_for(row.value)))

    def overwriting(self) -> AbstractContextManager[None]:
        """Do nothing: what lies in freed pages is up to the database's own services."""
        return nullcontext()

    def dropped(self, space: str) -> None:
        """Give who comes anew another revision: a thread that is dropped and comes back is not the old one."""
        self.numbers[space].purges += 1


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
    def __init__(self, transaction: WriteTransaction, steps: Sequence[Prepared]) -> None:
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


_SEE_AND_HOLD: Final = """
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
        _, found = await queries.together((_SEE_AND_HOLD, place[:1]), (text, (*held, *values)))
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
