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


class OldRow(NamedTuple):
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


class _Old(NamedTuple):
    """What is old enough of a table, at the moment $1."""

    table: str
    source: str
    columns: str
    """What `OldRow` has of a row; of rows that are deleted without an audit entry, their key."""
    order: str
    audited: bool = True

    @property
    def of_space(self) -> str:
        """What is in the space $2. Subqueries name it too, so that Citus asks one shard."""
        return f"{self.source.replace('= y.space', '= $2')}[[ AND y.space = $2]] ORDER BY {self.order} LIMIT $3"


def _plain(table: str, key: str, at: str = "at") -> tuple[_Old]:
    return (_Old(table, f"FROM {table} y WHERE y.{at} < $1", key, key, audited=False),)


_WHOSE: Final = "[[y.space, y.owner ~ o.space, o.name]]"
_OF_MEMORY: Final = "(SELECT m.owner FROM memory m WHERE m.space = $2 AND m.id = y.memory)"
_OLD: Final[Mapping[Discardable, tuple[_Old, ...]]] = {
    "messages": (_Old("archive", _ARCHIVES, f"{_WHOSE}, {_FIRST_CHUNK}", "y.ended_at, y.id"),),
    "summaries": (_Old("summary", _SUMMARIES, f"{_WHOSE}, y.id", "y.id"),),
    "memories": (_Old("memory", _MEMORIES, f"{_WHOSE}, y.id", "y.id"),),
    "versions": (
        _Old("facts", _FACTS, f"{_WHOSE}, y.version", "y.owner, y.version"),
        _Old(
            "memory_version",
            _VERSIONS,
            f"[[y.space, {_OF_MEMORY} ~ o.space, o.name]], y.memory, y.revision",
            "y.memory, y.revision",
        ),
    ),
    "derived": _plain("derived", "[[space, ]]owner, kind"),
    "audit": _plain("audit", "[[space, ]]id"),
    "spending": _plain("spending", "space, day, [[owner ~ user]]", "day"),
    "receipts": _plain("receipt", "[[space, ]]owner, id"),
}


@dataclass(frozen=True, slots=True)
class DiscardableCount(Question[int]):
    """How much the change `Discard` would remove in all, if it were made again and again."""

    needs_store = True
    what: Discardable
    before: int

    def answer(self) -> Answer[int]:
        counted = "coalesce(sum(y.messages), 0)[[::bigint]]" if self.what == "messages" else "count(*)"
        at = _moment_of(self.what, self.before)
        found = yield tuple(Statement(f"SELECT {counted} {old.source}", (at,)) for old in _OLD[self.what])
        return sum(int(number) for ((number,),) in found)


def _moment_of(what: Discardable, before: int) -> int | str:
    return moment(before).date().isoformat() if what == "spending" else before


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
        if self.what not in DISCARDABLE:
            raise InvalidInput(f"{self.what!r} cannot be removed by age; use one of {', '.join(DISCARDABLE)}")
        checks.at_least(self.limit, 1, "the limit")

    def space_to_start_in(self) -> Answer[str | None]:
        """Return a space in which something is old enough, for a database that writes to one space at a time."""
        for old in _OLD[self.what]:
            found = yield from first(f"SELECT y.space {old.source} LIMIT 1", _moment_of(self.what, self.before))
            if found is not None:
                return str(found[0])
        return None

    @property
    def spaces(self) -> Collection[str]:
        return (self.space or "",)

    def carry_out(self, within: Transaction) -> Answer[Discarded]:
        gone: Counter[tuple[str, str]] = Counter()
        deleted, values = 0, (_moment_of(self.what, self.before), self.space, self.limit)
        for kind in _OLD[self.what]:
            if not kind.audited:
                old = f"SELECT {kind.columns} {kind.of_space}"
                text = f"DELETE FROM {kind.table} WHERE [[space = $2 AND ]]({kind.columns}) IN ({old}) RETURNING 1"
                with within.overwriting():
                    deleted = len((yield from rows(text, *values)))
                continue
            found = [OldRow(*row) for row in (yield from rows(f"SELECT {kind.columns} {kind.of_space}", *values))]
            if kind.table == "archive":
                found = yield from _messages_of(found, self.limit)
            by_space: dict[str, list[OldRow]] = defaultdict(list)
            for row in found:
                by_space[row.space].append(row)
            for where, some in by_space.items():
                numbers = [row.number for row in some]
                if kind.table == "archive":
                    yield from erase_messages(within, where, numbers)
                elif kind.table == "summary":
                    yield from erase_summaries(within, where, numbers)
                elif kind.table == "memory":
                    erase_memories(within, where, numbers)
                else:
                    _erase_versions(within, kind.table, where, some)
            gone.update((row.space, row.user) for row in found)
        until = moment(self.before).date().isoformat()
        for (where, user), count in gone.items():
            subject = f"{count} {self.what}, older than {until}"
            within.audit(Scope.of(user, where), self.actor, "retention.purge", subject)
        return Discarded(deleted + gone.total())


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


_UNUSED_LINES: Final = f"""
DELETE FROM fact WHERE {OWNED} AND until <= (SELECT min(version) FROM facts WHERE {OWNED})
"""


def _erase_versions(within: Transaction, table: str, space: str, old: Sequence[OldRow]) -> None:
    with within.overwriting():
        for row in old:
            if table == "facts":
                within.later(f"DELETE FROM facts WHERE {OWNED} AND version = $3", space, row.user, row.number)
                within.later(_UNUSED_LINES, space, row.user)
            else:
                text = "DELETE FROM memory_version WHERE [[space = $1 AND ]]memory = $2 AND revision = $3"
                within.later(text, space, row.number, row.revision)
