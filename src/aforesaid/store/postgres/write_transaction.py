"""What every change needs: the rows of its spaces, the next numbers in them, and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import astuple, dataclass
from typing import Any, Final

from aforesaid.domain.checks import now
from aforesaid.domain.hit import VectorRow
from aforesaid.domain.memory import NoteKey, NoteVector
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import VectorOf
from aforesaid.store.checksums import POSTGRES as CHECKSUMS
from aforesaid.store.operations import Transaction
from aforesaid.store.postgres import search
from aforesaid.store.postgres.queries import Queries, Row, Statement, insert_rows, over_rows
from aforesaid.store.ranking import content_hash, hashed
from aforesaid.store.sql import Answer, exists, first, for_postgres
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
_VECTOR: Final = """
INSERT INTO embedding (space, seq, embedder, owner, content, value, tokens)
SELECT space, seq, $3, owner, $4, $5, $6 FROM log WHERE space = $1 AND seq = $2
ON CONFLICT DO NOTHING RETURNING 1
"""


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
            search.embed_again(self.queries, scope, key.id)

    def add_vectors(self, embedder: str, rows: Sequence[VectorRow], _: int) -> None:
        search.add(self.queries, embedder, rows)

    def add_note_vectors(self, embedder: str, rows: Sequence[NoteVector]) -> None:
        search.add_vectors(self.queries, embedder, rows)

    def put_vector(self, row: VectorOf) -> Answer[bool]:
        text = yield from first("SELECT text FROM log WHERE space = $1 AND seq = $2", row.space, row.seq)
        content = content_hash("" if text is None else text[0])
        return (yield from exists(_VECTOR, row.space, row.seq, row.embedder, content, *search.columns_for(row.value)))

    def overwriting(self) -> AbstractContextManager[None]:
        """Do nothing: what lies in freed pages is up to the database's own services."""
        return nullcontext()

    def dropped(self, space: str) -> None:
        """Give who comes anew another revision: a thread that is dropped and comes back is not the old one."""
        self.numbers[space].purges += 1
