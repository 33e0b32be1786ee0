"""Appending messages: recognising what was delivered before, finding the session, indexing, counting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aforesaid.domain.message import Draft, Message, repeats
from aforesaid.domain.receipt import Repeated, Stored
from aforesaid.domain.scope import automatic_name, is_direct, opening_message
from aforesaid.domain.transfer import Restored
from aforesaid.errors import NotFound
from aforesaid.store import records
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.postgres.queries import Row, Statement, insert_rows, over_rows, statements
from aforesaid.store.postgres.sessions import LATEST, Sessions
from aforesaid.store.postgres.verify import answered
from aforesaid.store.postgres.write_transaction import WriteTransaction
from aforesaid.store.sql.appending import MESSAGE, Prepared, Returning, Version, replace_version, version_of
from aforesaid.store.sql.statements import for_postgres

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


Place = tuple[str, str]
"""A space, and a person or a thread in it."""


class Appender:
    """Appends messages within one write transaction.

    Rows are collected and written together; whatever looks at them in the same transaction calls `write` first.
    """

    def __init__(self, transaction: WriteTransaction, steps: Sequence[Prepared]) -> None:
        """Append the messages of these steps, and no others."""
        self._transaction = transaction
        self._steps = steps
        self._sessions = Sessions(transaction, before_change=self._write_messages)
        self._by_id: dict[tuple[str, str, str], Message | Stored] = {}
        self._by_time: dict[tuple[str, str, int], list[Row | Stored]] = {}
        self._messages: list[Row] = []
        self._authors: dict[Place, int] = {}
        self._owners: dict[Place, list[int]] = {}
        self._threads: set[Place] = set()
        self._shared: dict[Place, list[int]] = {}

    async def begin(self) -> None:
        """Hold the spaces, and read all that is needed to place the messages, in one journey."""
        ids = [step.draft for step in self._steps if step.draft.id is not None]
        timed = [step.draft for step in self._steps if step.draft.at_given]
        threads = {(step.draft.scope.space, step.draft.scope.thread) for step in self._steps}
        distributed = self._transaction.queries.distributed
        asked: list[list[Statement]] = [[], [], []]
        if ids:
            asked[0] = statements(_BY_GIVEN_ID, [(*_place(each), each.id) for each in ids], distributed=distributed)
        if timed:
            wanted = {(*_place(each), each.at) for each in timed}
            asked[1] = statements(_BY_TIME, sorted(wanted), distributed=distributed)
        if threads:
            asked[2] = statements(LATEST, sorted(threads), distributed=distributed)
        answers = iter(await self._transaction.begin(*(statement for some in asked for statement in some)))
        by_id, by_time, sessions = ([row for _ in some for row in next(answers)] for some in asked)
        for row in by_id:
            self._by_id[row[2], row[4], row[1]] = records.message(row)
        for row in by_time:
            self._by_time.setdefault((row[2], row[4], row[10]), []).append(row)
        self._sessions.remember(threads, sessions)

    async def append(self, step: Prepared) -> Stored | Repeated:
        """Store a message, or return the one it repeats."""
        draft = step.draft
        version = None
        if draft.replaces is not None:
            version = await self._version(draft)
            draft = version.named if isinstance(version, Version) else draft
        earlier = self._delivered_before(draft)
        if earlier is not None:
            return Repeated(earlier)
        if version is not None:
            if isinstance(version, NotFound):
                raise version
            draft = version.checked()
            step = step._replace(draft=draft, hash=draft.hash)
        numbers = self._transaction.numbers[draft.scope.space]
        numbers.seq += 1
        seq = numbers.seq
        try:
            session, session_name = await self._sessions.place(draft, step.silence, seq)
        except BaseException:
            numbers.seq -= 1
            raise
        stored = self._collect(step, seq, session, session_name)
        if version is not None:
            self._replace(draft)
        return stored

    async def restore(self, step: Returning) -> Restored:
        """Store a message of a dump, unless it is here."""
        draft = step.message.draft
        version = None
        if draft.replaces is not None:
            version = await self._version(draft)
            draft = version.named if isinstance(version, Version) else draft._replace(replaces=None)
        earlier = self._delivered_before(draft)
        if earlier is not None:
            return Restored(earlier.seq, False)
        if isinstance(version, Version):
            draft = version.checked()
        numbers = self._transaction.numbers[draft.scope.space]
        seq = numbers.seq = max(numbers.seq + 1, step.seq)
        name = automatic_name(seq) if opening_message(step.session) == step.seq else step.session
        session = await self._sessions.enter(draft, step.message.silence, seq, name)
        self._collect(step.message._replace(draft=draft), seq, session, name, hidden=step.hidden)
        if isinstance(version, Version):
            self._replace(draft)
        return Restored(seq, True)

    async def _version(self, draft: Draft) -> Version | NotFound:
        self.write()
        return await answered(self._transaction.queries, version_of(draft))

    def _replace(self, draft: Draft) -> None:
        self.write()
        replace_version(self._transaction.later, draft)

    def _collect(self, step: Prepared, seq: int, session: int, session_name: str, *, hidden: bool = False) -> Stored:
        """Have a message written with the next ones."""
        draft, scope = step.draft, step.draft.scope
        shared = not is_direct(scope.thread)
        self._messages.append(
            (scope.space, seq, scope.user, scope.thread, shared, session, draft.author, draft.role, draft.name)
            + (draft.text, draft.at, draft.stored_at, draft.id, step.words, step.terms, step.hash, draft.replaces)
            + (hidden or draft.is_tombstone, draft.details)
        )
        self._count(draft, seq, step.words, shared=shared)
        stored = Stored(draft, seq, session_name, step.hash)
        self._note(stored)
        return stored

    def write(self) -> None:
        """Write all that was collected: messages, sessions, people and counts."""
        self._write_messages()
        self._sessions.write()
        later = self._transaction.later_rows
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

    def _table(self, counted: dict[Place, tuple[int, ...]]) -> list[Row]:
        """Return people or threads with their counts, and the revision that they start with where they are new."""
        numbers = self._transaction.numbers
        return [(*place, *counts, numbers[place[0]].first_revision) for place, counts in sorted(counted.items())]

    def _write_messages(self) -> None:
        if self._messages:
            self._transaction.later_rows(_NEW_MESSAGES, self._messages)
            self._messages = []

    def _delivered_before(self, draft: Draft) -> Message | None:
        if draft.id is not None:
            found = self._by_id.get((*_place(draft), draft.id))
            if found is not None:
                return found.message if isinstance(found, Stored) else found
        if draft.at_given:
            for each in self._by_time.get((*_place(draft), draft.at), ()):
                message, given = (
                    (each.message, each.draft.id) if isinstance(each, Stored) else (records.message(each), each[1])
                )
                if repeats(draft, message, given):
                    return message
        return None

    def _note(self, stored: Stored) -> None:
        draft = stored.draft
        if draft.id is not None:
            self._by_id[(*_place(draft), draft.id)] = stored
        self._by_time.setdefault((*_place(draft), draft.at), []).append(stored)

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
