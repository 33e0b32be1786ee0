"""Dumps: everything that a database holds, in the order of `Store.dump`, and the change that takes a row of it back."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from aforesaid.domain.checks import moment
from aforesaid.domain.context_receipt import ContextReceipt, read_receipt
from aforesaid.domain.memory import Facts
from aforesaid.domain.report import AuditEntry, Setting
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import (
    DayRow,
    ForgottenRow,
    MemoryRow,
    Restored,
    SessionRow,
    SettingRow,
    SpendingRow,
    SuccessorRow,
    SummaryRow,
    UserRow,
    VectorOf,
)
from aforesaid.domain.transfer import Row as MovingRow
from aforesaid.errors import SourcesChanged
from aforesaid.store import agenda, memories, messages, people, summaries
from aforesaid.store.memories import MEMORY_OF_ANY_SPACE, MemoryVersions, read_memory
from aforesaid.store.messages import MESSAGE, SESSION
from aforesaid.store.operations import Change, Transaction
from aforesaid.store.sql import OWNED, Answer, Row, loaded, rows
from aforesaid.store.summaries import SUMMARY_OF_ANY_SPACE, read_summary

PAGE: Final = 1_000
"""Rows of a page."""
Key: TypeAlias = tuple[str | int, ...]


class Section(NamedTuple):
    """A kind of rows, read page by page: its text binds the key of the row before the page, and the number of rows."""

    name: str
    text: str
    read: Callable[[Row], MovingRow]
    key: tuple[int, ...]
    """The places of the key in a row."""
    start: Key = ("", 0)
    """The key before the first page. Without one, the text binds nothing, and all rows are one page."""
    complete: Callable[[Any], Answer[MovingRow]] | None = None
    """Adds what other tables have of a row."""


def page(section: Section, after: Key, limit: int = PAGE) -> Answer[tuple[list[MovingRow], Key | None]]:
    """Return the rows after a key, and the key of the last one: None when there are no more."""
    found = yield from rows(section.text, *((*after, limit) if after else ()))
    made = [section.read(row) for row in found]
    if section.complete is not None:
        for place, row in enumerate(made):
            made[place] = yield from section.complete(row)
    more = bool(after) and len(found) == limit
    return made, tuple(found[-1][place] for place in section.key) if more else None


def _by_number(text: str, table: str, number: str = "id") -> str:
    """Return a text that pages by space and number; SQLite has one numbering for all spaces."""
    key = f"{table}.{number}"
    return f"""
    {text} WHERE [[({table}.space, {key}) > ($1, $2) ~ {key} > $2]] ORDER BY [[{table}.space, ]]{key} LIMIT $3
    """


def _by_owner(text: str, name: str) -> str:
    """Return a text that pages by owner and a column that is unique for the owner."""
    key = f"[[x.space, ]]x.owner, x.{name}"
    return f"{text} WHERE ({key}) > ([[$1, $2 ~ CAST($2 AS INTEGER)]], $3) ORDER BY {key} LIMIT $4"


_OWNER: Final = "[[x.space, x.owner ~ p.space, p.name]]"
_JOIN: Final = "[[ ~  JOIN person p ON p.id = x.owner]]"
_FACTS: Final = f"SELECT {_OWNER}, x.text, x.version, x.created_at, x.cause, x.owner FROM facts x{_JOIN}"
_FORGOTTEN: Final = f"SELECT {_OWNER}, x.words, x.up_to, x.id FROM tombstone x{_JOIN}"
_SETTINGS: Final = f"SELECT {_OWNER}, x.key, [[x.value::text ~ x.value]], x.updated_at, x.owner FROM setting x{_JOIN}"
_USERS: Final = """
SELECT p.space, p.name, p.created_at, p.last_chunk, p.extracted, (
    SELECT count(*) FROM log l
     WHERE [[l.space = p.space AND l.owner = p.name ~ l.owner = p.id]] AND l.seq <= p.extracted), [[p.name ~ p.id]]
  FROM person p WHERE [[p.owner AND (p.space, p.name) > ($1, $2) ~ p.owner = 1 AND p.id > CAST($2 AS INTEGER)]]
 ORDER BY [[p.space, p.name ~ p.id]] LIMIT $3
"""
_DAYS: Final = """
SELECT policy, space, day, done_at, done_seq FROM agenda WHERE day != '' AND done_at IS NOT NULL
 ORDER BY space, policy, day
"""
# What all spent together is counted per space.
_SPENDING: Final = """
SELECT day, '', '', sum(tokens)[[::bigint]] FROM spending WHERE [[owner ~ user]] = '' GROUP BY day
UNION ALL SELECT day, space, [[owner ~ user]], tokens FROM spending WHERE [[owner ~ user]] != '' ORDER BY 1, 2, 3
"""
_RECEIPTS: Final = f"SELECT {_OWNER}, x.id, x.at, x.reply, x.details, x.owner FROM receipt x{_JOIN}"
_AUDIT: Final = "SELECT x.id, x.at, x.space, x.[[owner ~ user]], x.actor, x.action, x.subject FROM audit x"
_VECTORS: Final = """
[[SELECT embedder, space, seq, coalesce(tokens, halfvec_send(value)), embedder FROM embedding
   WHERE (space, seq, embedder) > ($1, $2, $3) ORDER BY space, seq, embedder LIMIT $4
~ SELECT e.name, p.space, v.seq, v.value, v.n FROM vector v JOIN embedder e ON e.id = v.embedder
    JOIN person p ON p.id = v.owner WHERE v.n > CAST($3 AS INTEGER) ORDER BY v.n LIMIT $4]]
"""
_ARCHIVED: Final = f"SELECT seq FROM log WHERE {OWNED} AND chunk = $3 ORDER BY seq"


def _with_archive(row: SummaryRow) -> Answer[MovingRow]:
    summary = row.summary
    if summary.reach != "chunks" or summary.level != 1 or summary.rolled_back:
        return row
    found = yield from rows(_ARCHIVED, summary.space, summary.user, summary.chunks[0])
    return row._replace(messages=tuple(seq for (seq,) in found))


def _with_versions(row: MemoryRow) -> Answer[MovingRow]:
    wanted = MemoryVersions(Scope.of(row.memory.user, row.memory.space), row.memory.id)
    return row._replace(versions=tuple((yield from wanted.answer())))


_OF_OWNER: Final[Key] = ("", "", "")
MESSAGES: Final = Section("messages", _by_number(MESSAGE, "log", "seq"), messages.read_message, (2, 0))
OTHERS: Final = (
    Section(
        "sessions", _by_number(SESSION, "s"), lambda row: SessionRow(messages.read_session(row), bool(row[8])), (1, 9)
    ),
    Section(
        "summaries",
        _by_number(SUMMARY_OF_ANY_SPACE, "y"),
        lambda row: SummaryRow(read_summary(row)),
        (1, 0),
        complete=_with_archive,
    ),
    Section(
        "memories",
        _by_number(MEMORY_OF_ANY_SPACE, "m"),
        lambda row: MemoryRow(read_memory(row)),
        (1, 0),
        complete=_with_versions,
    ),
    Section(
        "facts",
        _by_owner(_FACTS, "version"),
        lambda row: Facts(row[0], row[1], row[2], row[3], moment(row[4]), row[5]),
        (0, 6, 3),
        ("", "", 0),
    ),
    Section("requests to forget", _by_number(_FORGOTTEN, "x"), lambda row: ForgottenRow(*row[:4]), (0, 4)),
    Section(
        "settings",
        _by_owner(_SETTINGS, "key"),
        lambda row: SettingRow(row[0], row[1], Setting(row[2], json.loads(row[3]), moment(row[4]))),
        (0, 5, 2),
        _OF_OWNER,
    ),
    Section("users", _USERS, lambda row: UserRow(row[0], row[1], moment(row[2]), *row[3:6]), (0, 6), ("", "")),
    Section("days", _DAYS, lambda row: DayRow(*row), (), ()),
    Section("counts of tokens", _SPENDING, lambda row: SpendingRow(date.fromisoformat(row[0]), *row[1:]), (), ()),
    Section(
        "receipts",
        _by_owner(_RECEIPTS, "id"),
        lambda row: read_receipt(row[2], row[0], row[1], moment(row[3]), row[4], loaded(row[5])),
        (0, 6, 2),
        _OF_OWNER,
    ),
    Section("audit rows", _by_number(_AUDIT, "x"), lambda row: AuditEntry(row[0], moment(row[1]), *row[2:]), (2, 0)),
)


def sections(vector: Callable[[bytes], bytes] | None) -> Iterator[Section]:
    """Return all sections in their order; that of vectors only with a function that reads one."""
    yield from (MESSAGES, *OTHERS)
    if vector is not None:
        yield Section(
            "vectors", _VECTORS, lambda row: VectorOf(row[0], row[1], row[2], vector(row[3])), (1, 2, 4), ("", 0, "")
        )


# --- Restoring --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Restore(Change):
    """Store a row of a dump as it is. What is there already stays, so that twice is as good as once.

    A message, a summary, a memory keeps its number if that is beyond all that were given out here, and gets the next
    one otherwise; the result says which. All that the row refers to must be named by its number in this store.

    - A message is stored as active, in the session that it names; a session named after the message itself is named
      after the number that it gets. Its archive comes with the summary of it. A new version replaces the version that
      it names; where that one is not here, it is a message like any other.
    - A summary of messages or of summaries that are not free any more (archived here by another) is kept as rolled
      back. Of two that would be the newest of their kind, the one that was here stays it.
    - A memory that is here in an earlier revision is brought to the later one.
    - Facts are merged by their times; of two values of a setting the later one counts, of two counts of tokens the
      larger one.

    With `number`, the row must have or get that number; otherwise SourcesChanged is raised.
    """

    of_many: ClassVar[bool] = True
    row: MovingRow
    number: int | None = None

    @property
    def spaces(self) -> Collection[str]:
        match self.row:
            case SessionRow():
                return (self.row.session.space,)
            case SummaryRow():
                return (self.row.summary.space,)
            case MemoryRow():
                return (self.row.memory.space,)
            case _:
                return (self.row.space,)

    def carry_out(self, within: Transaction) -> Answer[Restored]:
        """Store a row of any kind but messages, which are appended (`store.placing`)."""
        return self.as_expected((yield from _RESTORED[type(self.row)](within, self.row)))

    def as_expected(self, result: Restored) -> Restored:
        """Return the result. Raises SourcesChanged if it has a different number than this change expects."""
        if self.number is not None and self.number != result.number:
            raise SourcesChanged(f"a row was expected to get the number {self.number}, and has {result.number} here")
        return result


def _restore_vector(within: Transaction, row: VectorOf) -> Answer[Restored]:
    return Restored(0, (yield from within.put_vector(row)))


_RESTORED: Final[Mapping[type, Callable[[Transaction, Any], Answer[Restored]]]] = {
    SessionRow: messages.restore_session,
    SummaryRow: summaries.restore_summary,
    MemoryRow: memories.restore_memory,
    SuccessorRow: memories.restore_successor,
    Facts: memories.restore_facts,
    ForgottenRow: memories.restore_forgotten,
    SettingRow: people.restore_setting,
    UserRow: people.restore_user,
    DayRow: agenda.restore_day,
    SpendingRow: people.restore_spending,
    ContextReceipt: people.restore_receipt,
    AuditEntry: people.restore_audit,
    VectorOf: _restore_vector,
}
