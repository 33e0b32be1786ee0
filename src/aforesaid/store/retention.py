"""Deleting by age: what is old enough, and the change that deletes it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias, get_args

from aforesaid.domain import checks
from aforesaid.domain.checks import moment
from aforesaid.domain.receipt import Discarded
from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput
from aforesaid.store.erasing import erase_memories, erase_messages, erase_summaries, taken_back_before
from aforesaid.store.messages import of_archive
from aforesaid.store.operations import Change, Question, Transaction
from aforesaid.store.sql import OWNED, Answer, Statement, first, rows

Discardable: TypeAlias = Literal[
    "messages", "summaries", "memories", "versions", "derived", "audit", "spending", "receipts"
]
"""What can be deleted by age.

`messages`: whole archives, by their last message; their summaries stay. `summaries`: replaced or rolled back ones that
no other summary covers. `memories`: inactive ones, by their last change, except those that wait for approval.
`versions`: earlier versions of facts and memories. `derived`: computed values, which can be computed again. `audit`:
entries of the audit log. `spending`: token counts per day. `receipts`: receipts of contexts.
"""
DISCARDABLE: Final[tuple[Discardable, ...]] = get_args(Discardable)


OldTable: TypeAlias = Literal["archives", "summaries", "memories", "facts", "memory_versions"]


class OldRow(NamedTuple):
    """A row that is old enough."""

    space: str
    user: str
    number: int
    """Of the archive, message, summary or memory, or of the version of facts."""
    revision: int = 0
    """Of a memory, for one of its earlier versions."""


_OWNER: Final = "[[ ~  JOIN person o ON o.id = y.owner]]"
_FIRST_CHUNK: Final = "[[y.chunks[1] ~ json_extract(y.chunks, '$[0]')]]"
_ARCHIVES: Final = f"""
FROM summary y{_OWNER} WHERE y.level = 1 AND y.reach = 'chunks' AND y.ended_at < $1
 AND [[NOT y.rolled_back AND NOT y.replaced ~ y.rolled_back = 0 AND y.replaced = 0]]
 AND EXISTS (SELECT 1 FROM log l WHERE [[l.space = y.space AND ]]l.owner = y.owner AND l.chunk = {_FIRST_CHUNK})
"""
_SUMMARIES: Final = f"""
FROM summary y{_OWNER} WHERE (y.replaced OR y.rolled_back) AND NOT y.active AND y.created_at < $1
 AND NOT EXISTS (SELECT 1 FROM summary_source x WHERE [[x.space = y.space AND ]]x.source = y.id)
"""
_MEMORIES: Final = f"""
FROM memory y{_OWNER} WHERE NOT y.active AND y.state != 'quarantined' AND coalesce((
    SELECT max(v.at) FROM memory_version v WHERE [[v.space = y.space AND ]]v.memory = y.id), y.created_at) < $1
"""
# All versions up to one that had been replaced by then, so that what is left has no gaps.
_FACTS: Final = f"""
FROM facts y{_OWNER} WHERE y.version < (
    SELECT max(g.version) FROM facts g WHERE [[g.space = y.space AND ]]g.owner = y.owner AND g.created_at < $1)
"""
_VERSIONS: Final = """
FROM memory_version y[[ ~  JOIN memory m ON m.id = y.memory JOIN person o ON o.id = m.owner]] WHERE y.revision <= (
    SELECT max(w.revision) FROM memory_version w WHERE [[w.space = y.space AND ]]w.memory = y.memory AND w.at < $1)
"""
_OLD: Final[dict[Discardable, tuple[str, ...]]] = {
    "messages": (_ARCHIVES,),
    "summaries": (_SUMMARIES,),
    "memories": (_MEMORIES,),
    "versions": (_FACTS, _VERSIONS),
    "derived": ("FROM derived y WHERE y.at < $1",),
    "audit": ("FROM audit y WHERE y.at < $1",),
    "spending": ("FROM spending y WHERE y.day < $1",),
    "receipts": ("FROM receipt y WHERE y.at < $1",),
}
_KEYS: Final[dict[Discardable, str]] = {
    "derived": "[[space, ]]owner, kind",
    "audit": "[[space, ]]id",
    "spending": "space, day, [[owner ~ user]]",
    "receipts": "[[space, ]]owner, id",
}
"""The keys of tables whose rows are deleted without an audit entry."""
_TABLES: Final[dict[Discardable, str]] = {"receipts": "receipt"}
"""The tables that are not named as what is in them."""


def _of_space(old: str) -> str:
    """Return the condition for the space $2 alone. Subqueries name it too, so that Citus asks one shard."""
    return f"{old.replace('= y.space', '= $2')}[[ AND y.space = $2]]"


_WHOSE: Final = "SELECT [[y.space, y.owner ~ o.space, o.name]]"
_OLD_ROWS: Final[dict[OldTable, str]] = {
    "archives": f"{_WHOSE}, {_FIRST_CHUNK}, 0 {_of_space(_ARCHIVES)} ORDER BY y.ended_at, y.id",
    "summaries": f"{_WHOSE}, y.id, 0 {_of_space(_SUMMARIES)} ORDER BY y.id",
    "memories": f"{_WHOSE}, y.id, 0 {_of_space(_MEMORIES)} ORDER BY y.id",
    "facts": f"{_WHOSE}, y.version, 0 {_of_space(_FACTS)} ORDER BY y.owner, y.version",
    "memory_versions": f"""
        SELECT [[y.space, (SELECT m.owner FROM memory m WHERE m.space = $2 AND m.id = y.memory) ~ o.space, o.name]],
               y.memory, y.revision {_of_space(_VERSIONS)} ORDER BY y.memory, y.revision
    """,
}
"""What `OldRow` is made of, of the space $2."""


@dataclass(frozen=True, slots=True)
class DiscardableCount(Question[int]):
    """How much the change `Discard` would remove in all, if it were made again and again."""

    needs_store = True
    what: Discardable
    before: int

    def answer(self) -> Answer[int]:
        counted = "coalesce(sum(y.messages), 0)[[::bigint]]" if self.what == "messages" else "count(*)"
        at = _moment_of(self.what, self.before)
        found = yield tuple(Statement(f"SELECT {counted} {old}", (at,)) for old in _OLD[self.what])
        return sum(int(number) for ((number,),) in found)


def _moment_of(what: Discardable, before: int) -> int | str:
    """Return a moment as the table of a kind of rows has it."""
    return moment(before).date().isoformat() if what == "spending" else before


_OLD_TABLES: Final[Mapping[Discardable, Sequence[OldTable]]] = {
    "messages": ("archives",),
    "summaries": ("summaries",),
    "memories": ("memories",),
    "versions": ("facts", "memory_versions"),
}
"""The tables that a kind of rows is in. The other kinds are deleted without an audit entry."""


@dataclass(frozen=True, slots=True)
class Discard(Change):
    """Delete about `limit` rows that are older than `before` (in microseconds), oldest first.

    Active rows are never deleted and ids are never reused. The audit log records the number of deleted rows per user.
    """

    of_many: ClassVar[bool] = True
    what: Discardable
    before: int
    limit: int = 500
    actor: str = "aforesaid"
    space: str | None = None
    """The only space that is looked at, for databases that write to one space at a time."""

    def __post_init__(self) -> None:
        """Raise InvalidInput for kinds that cannot be deleted by age."""
        if self.what not in DISCARDABLE:
            raise InvalidInput(f"{self.what!r} cannot be removed by age; use one of {', '.join(DISCARDABLE)}")
        checks.at_least(self.limit, 1, "the limit")

    def space_to_start_in(self) -> Answer[str | None]:
        """Return a space in which something is old enough, for a database that writes to one space at a time."""
        for old in _OLD[self.what]:
            found = yield from first(f"SELECT y.space {old} LIMIT 1", _moment_of(self.what, self.before))
            if found is not None:
                return str(found[0])
        return None

    @property
    def spaces(self) -> Collection[str]:
        """The space, if it is known."""
        return (self.space or "",)

    def carry_out(self, within: Transaction) -> Answer[Discarded]:
        if self.what not in _OLD_TABLES:
            return Discarded((yield from self._erase_plain_rows(within)))
        gone: Counter[tuple[str, str]] = Counter()
        for table in _OLD_TABLES[self.what]:
            found = yield from rows(f"{_OLD_ROWS[table]} LIMIT $3", self.before, self.space, self.limit)
            old = [OldRow(*row) for row in found]
            if table == "archives":
                old = yield from _messages_of(old, self.limit)
            by_space: dict[str, list[OldRow]] = defaultdict(list)
            for row in old:
                by_space[row.space].append(row)
            for where, some in by_space.items():
                yield from _erase(within, table, where, some)
            gone.update((row.space, row.user) for row in old)
        until = moment(self.before).date().isoformat()
        for (where, user), count in gone.items():
            subject = f"{count} {self.what}, older than {until}"
            within.audit(Scope.of(user, where), self.actor, "retention.purge", subject)
        return Discarded(gone.total())

    def _erase_plain_rows(self, within: Transaction) -> Answer[int]:
        """Delete rows that nothing refers to, up to the limit, and return how many."""
        keys, table = _KEYS[self.what], _TABLES.get(self.what, self.what)
        old = f"SELECT {keys} {_of_space(_OLD[self.what][0])} ORDER BY {keys} LIMIT $3"
        text = f"DELETE FROM {table} WHERE [[space = $2 AND ]]({keys}) IN ({old}) RETURNING 1"
        with within.overwriting():
            return len((yield from rows(text, _moment_of(self.what, self.before), self.space, self.limit)))


def _messages_of(archives: Sequence[OldRow], limit: int) -> Answer[list[OldRow]]:
    """Return the messages of whole archives, until there are `limit` of them or more, and what they took back."""
    found: list[OldRow] = []
    for archive in archives:
        if len(found) < limit:
            messages = yield from of_archive(Scope.of(archive.user, archive.space), archive.number)
            found += [archive._replace(number=seq) for seq, _ in messages]
    for space in {row.space for row in found}:
        seqs = [row.number for row in found if row.space == space]
        earlier = yield from taken_back_before(space, seqs)
        found += [OldRow(space, message.user, message.seq) for message in earlier]
    return found


def _erase(within: Transaction, table: OldTable, space: str, old: Sequence[OldRow]) -> Answer[None]:
    numbers = [row.number for row in old]
    if table == "archives":
        yield from erase_messages(within, space, numbers)
    elif table == "summaries":
        yield from erase_summaries(within, space, numbers)
    elif table == "memories":
        erase_memories(within, space, numbers)
    else:
        with within.overwriting():
            for row in old:
                if table == "facts":
                    within.later(f"DELETE FROM facts WHERE {OWNED} AND version = $3", space, row.user, row.number)
                else:
                    text = "DELETE FROM memory_version WHERE [[space = $1 AND ]]memory = $2 AND revision = $3"
                    within.later(text, space, row.number, row.revision)
