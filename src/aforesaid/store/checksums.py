"""Checksums of rows, and the queries by which `verify` compares a database with itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

from aforesaid.domain.details import TAKEN_BACK
from aforesaid.extras import re
from aforesaid.store.sql import for_postgres, for_sqlite

CHECKSUM: Final = "checksum"
"""The column with the checksum of its row."""
_PLACE: Final = re.compile(r"\$\d+")
_ARRAY_HASHES: Final = {
    "text[]": 'hash_array_extended({} COLLATE "C", 0)::text',
    "bigint[]": "hash_array_extended({}, 0)::text",
}
_OWNER: Final = """
[[space || '/' || owner ~ (SELECT p.space || '/' || p.name FROM person p WHERE p.id = {table}.owner)]]
"""


class Column(NamedTuple):
    type: str
    """In PostgreSQL."""
    default: str | None
    """What it holds when an INSERT does not name it, as SQL; None if every INSERT must name it."""


class _Declared(NamedTuple):
    columns: str
    """Names, types and defaults, for both databases (see `store.sql`)."""
    name: str
    """SQL that names a row for people."""


# Numbers that SQLite itself gives are left out where they are checked otherwise: by the rows that refer to a person,
# a thread or a session, and by the keyword index of summaries and memories.
_TABLES: Final = {
    "person": _Declared(
        "space text, name text, owner boolean = false, created_at bigint, last_chunk bigint = 0, extracted bigint = 0",
        "space || '/' || name",
    ),
    "thread": _Declared("space text, name text", "space || '/' || name"),
    "session": _Declared(
        "[[space text, id bigint, ]]thread text, name text, automatic boolean, opened_by text, timeout bigint",
        "[[space || '/' || ]]name",
    ),
    "summary": _Declared(
        """
        [[space text, id bigint, ]]owner text, thread text, kind text, level integer, text text, chunks bigint[],
        reach text, first_seq bigint, last_seq bigint, fresh_seq bigint, messages bigint, began_at bigint,
        ended_at bigint, day text, version integer, replaces bigint, replaced boolean, model text, prompt text,
        edited_by text, details json, quality json, created_at bigint, active boolean, rolled_back boolean,
        shown bigint
        """,
        "[[space || '/' || ]]id",
    ),
    "summary_source": _Declared(
        "[[space text, ]]summary bigint, source bigint", "[[space || '/' || ]]summary || ' from ' || source"
    ),
    "memory": _Declared(
        """
        [[space text, id bigint, ]]owner text, created_at bigint, revision bigint, category text, text text,
        importance integer, tags text[], active boolean, state text, priority integer, speaker text, subject text,
        event_start bigint, event_end bigint, event_timed boolean, remind_at bigint, delivered_at bigint,
        expires_at bigint, valid_from bigint, valid_to bigint, superseded_by bigint, extractor text, trust text,
        reason text, times bigint, seen_at bigint, kind text, about text, said_at bigint, language text,
        confidence integer, matter text, value text
        """,
        "[[space || '/' || ]]id",
    ),
    "memory_source": _Declared(
        "[[space text, ]]memory bigint, seq bigint", "[[space || '/' || ]]memory || ' from #' || seq"
    ),
    "memory_version": _Declared(
        "[[space text, ]]memory bigint, revision bigint, at bigint, actor text, action text, was json",
        "[[space || '/' || ]]memory || ', revision ' || revision",
    ),
    "facts": _Declared(
        "[[space text, ]]owner text, version bigint, text text, cause text, created_at bigint",
        f"{_OWNER} || ', version ' || version",
    ),
    "fact": _Declared(
        "[[space text, ]]owner text, number bigint, text text, since bigint, until bigint",
        f"{_OWNER} || ', line ' || number",
    ),
    "tombstone": _Declared(
        "[[space text, ]]id bigint, owner text, words text, up_to bigint, at bigint", f"{_OWNER} || ', entry ' || id"
    ),
    "derived": _Declared(
        "[[space text, ]]owner text, kind text, key text, value text, at bigint", f"{_OWNER} || ', ' || kind"
    ),
    "setting": _Declared(
        "[[space text, ]]owner text, key text, value json, updated_at bigint", f"{_OWNER} || ', ' || key"
    ),
    "audit": _Declared(
        "space text, id bigint, at bigint, [[owner ~ user]] text, actor text, action text, subject text",
        "[[space || '/' || ]]id",
    ),
    "spending": _Declared(
        "space text, day text, [[owner ~ user]] text, tokens bigint",
        "space || '/' || [[owner ~ user]] || ', ' || day",
    ),
    "receipt": _Declared(
        "[[space text, ]]owner text, id text, at bigint, reply bigint, details json", f"{_OWNER} || ', receipt ' || id"
    ),
    "cursor": _Declared("[[space text, ]]policy text, up_to bigint", "[[space || '/' || ]]policy"),
    "agenda": _Declared(
        """
        space text, policy text, [[owner ~ user]] text, thread text, day text, messages bigint, characters bigint,
        waiting bigint, last_seq bigint, due_at bigint, done_at bigint, done_seq bigint, failures bigint, error text
        """,
        "policy || ' of ' || space || '/' || [[owner ~ user]] || '/' || thread || '/' || day",
    ),
    "metadata": _Declared("[[space text, ]]name text, value text", "name"),
}


class Checksums:
    """SQL that writes and compares checksums, for one kind of database. Bound values are `$1`, `$2` and so on."""

    def __init__(
        self, chosen: Callable[[str], str], function: Callable[[Iterable[tuple[str, str]]], str], *, typed: bool
    ) -> None:
        """Take what chooses the parts of a SQL text, and what returns the SQL of a checksum of values with types.

        `typed` says that bound values are given the types of their columns: they are used twice in a statement, and
        PostgreSQL could infer two types for one.
        """
        self._chosen = chosen
        self._function = function
        self._types_values = typed
        self.columns: Mapping[str, Mapping[str, Column]] = {
            table: dict(_column(each) for each in chosen(declared.columns).split(","))
            for table, declared in _TABLES.items()
        }
        """The columns that are covered, by table."""

    def of(self, table: str, values: Mapping[str, str]) -> str:
        """Return the checksum of a row with these values (as SQL). What is not given has its default."""
        typed: list[tuple[str, str]] = []
        for name, column in self.columns[table].items():
            value = self._typed(table, name, values[name]) if name in values else column.default
            if value is None:
                raise KeyError(f"{table}.{name} has no default: name it")
            typed.append((value, column.type))
        return self._function(typed)

    def insert(self, table: str, names: Iterable[str], then: str = "") -> str:
        """Return an INSERT of one row, whose values are bound in the order of the names."""
        values = {name: f"${place}" for place, name in enumerate(names, 1)}
        return self._insert(table, values, "VALUES ({})", then)

    @cache  # noqa: B019 - there are two of these objects
    def insert_or_replace(self, table: str, names: tuple[str, ...], key: tuple[str, ...]) -> str:
        """Return an INSERT of one row, which takes the place of a row with the same key where one is named."""
        return self.insert(table, names, self.replacing(table, *key) if key else "")

    @cache  # noqa: B019
    def update_bound(self, table: str, where: str, bound: int, names: tuple[str, ...]) -> str:
        """Return an UPDATE whose new values are bound after those of its condition."""
        return self.update(table, where, **{name: f"${place}" for place, name in enumerate(names, bound + 1)})

    def insert_selected(self, table: str, values: Mapping[str, str], rest: str) -> str:
        """Return an INSERT of the rows that `SELECT values … rest` finds."""
        return self._insert(table, values, "SELECT {}", rest)

    def _insert(self, table: str, values: Mapping[str, str], template: str, rest: str) -> str:
        names = ", ".join((*values, CHECKSUM))
        typed = (self._typed(table, name, value) for name, value in values.items())
        source = template.format(", ".join((*typed, self.of(table, values))))
        return self._chosen(f"INSERT INTO {table} ({names}) {source} {rest}")

    def update(self, table: str, where: str, **values: str) -> str:
        """Return an UPDATE of the rows that a condition finds (see `setting`)."""
        return self._chosen(f"UPDATE {table} SET {self.setting(table, **values)} WHERE {where}")

    def setting(self, table: str, **values: str) -> str:
        """Return the assignments of an UPDATE, and the checksum that follows from them.

        A row that was not what had been stored is left without a checksum, so that it is still found afterwards.
        """
        pairs = ", ".join(f"{name} = {self._typed(table, name, value)}" for name, value in values.items())
        return self._chosen(f"{pairs}, {CHECKSUM} = {self.changed(table, **values)}")

    def changed(self, table: str, **values: str) -> str:
        """Return the checksum that a row gets when some of its columns are set to values."""
        before = {name: f"{table}.{name}" for name in self.columns[table]}
        old, new = self.of(table, before), self.of(table, {**before, **values})
        return f"CASE WHEN {table}.{CHECKSUM} = {old} THEN {new} END"

    def replacing(self, table: str, *key: str, derived: bool = False) -> str:
        """Return what an INSERT does with a row of the same key: all other columns are set to the new ones.

        `derived` says that the new values were computed from the old ones: a row that was not what had been stored
        is left without a checksum then, as in `setting`.
        """
        others = {name: f"excluded.{name}" for name in self.columns[table] if name not in key}
        whole = ", ".join(f"{name} = {value}" for name, value in {**others, CHECKSUM: f"excluded.{CHECKSUM}"}.items())
        pairs = self.setting(table, **others) if derived else whole
        return f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {pairs}"

    def fill(self, table: str) -> str:
        return f"UPDATE {table} SET {CHECKSUM} = {self._of_row(table)} WHERE {CHECKSUM} IS NULL"

    def _of_row(self, table: str) -> str:
        return self.of(table, {name: f"{table}.{name}" for name in self.columns[table]})

    def wrong(self, table: str) -> str:
        """Return a query for the names of the rows that are not what was stored."""
        stored = self._of_row(table)
        name = self._chosen(_TABLES[table].name.format(table=table))
        return f"SELECT coalesce({name}, 'of a missing user') FROM {table} WHERE {CHECKSUM} IS DISTINCT FROM {stored}"

    def _typed(self, table: str, name: str, value: str) -> str:
        column = self.columns[table].get(name)
        if column is None or not self._types_values or not _PLACE.fullmatch(value):
            return value
        return f"{value}::{column.type}"


def _column(declared: str) -> tuple[str, Column]:
    (name, kind), (_, default) = declared.partition("=")[0].split(), declared.partition("=")[1:]
    return name, Column(kind, default.strip() or None)


def row_checksum(*values: object) -> int:
    """Return the checksum of a row in SQLite, where this is the function `row_checksum`."""
    # Unlike repr, ascii does not depend on the version of Unicode.
    return int.from_bytes(blake2b(ascii(values).encode(), digest_size=8).digest(), "big", signed=True)


def _in_sqlite(values: Iterable[tuple[str, str]]) -> str:
    return f"row_checksum({', '.join(value for value, _ in values)})"


def _in_postgres(values: Iterable[tuple[str, str]]) -> str:
    # Of immutable functions alone, because Citus computes it on the workers: an array's text is not immutable.
    texts = [_ARRAY_HASHES.get(kind, "({})::text").format(value) for value, kind in values]
    return _ARRAY_HASHES["text[]"].removesuffix("::text").format(f"ARRAY[{', '.join(texts)}]")


SQLITE: Final = Checksums(for_sqlite, _in_sqlite, typed=False)
POSTGRES: Final = Checksums(for_postgres, _in_postgres, typed=True)


def both(made: Callable[[Checksums], str]) -> str:
    """Return a text that is made for each of the databases."""
    return f"[[{made(POSTGRES)} ~ {made(SQLITE)}]]"


def setting(table: str, **values: str) -> str:
    """Return the assignments of an UPDATE and the checksum that follows, for both databases."""
    return both(lambda checksums: checksums.setting(table, **values))


def inserting(table: str, values: Mapping[str, str], in_postgres: str, in_sqlite: str) -> str:
    """Return an INSERT of what `SELECT values …` finds. In PostgreSQL, a row has its space too."""
    postgres = POSTGRES.insert_selected(table, {"space": "space", **values}, in_postgres)
    return f"[[{postgres} ~ {SQLITE.insert_selected(table, values, in_sqlite)}]]"


Queries: TypeAlias = tuple[tuple[str, str], ...]
PLAIN: Final = "{what} {name}"
"""How a finding is said, from the words of a query and the name that it found."""

# Where old archives have been removed, more was counted and covered than is there: their summaries stay.
_EMPTIED: Final = """
[[EXISTS (SELECT 1 ~ {number} IN (SELECT e.owner]] FROM summary e
 WHERE [[e.space = {of}.space AND e.owner = {of}.owner AND ]]e.level = 1 AND NOT e.rolled_back AND e.reach = 'chunks'
   AND NOT EXISTS (
       SELECT 1 FROM log l WHERE [[l.space = e.space AND ]]l.owner = e.owner
          AND l.chunk = [[e.chunks[1] ~ json_extract(e.chunks, '$[0]')]]))
"""
_PROCESSED: Final = """
(SELECT count(*) FROM log l WHERE [[l.space = a.space AND l.owner = a.owner ~ l.owner = p.id]] AND l.seq <= w.up_to
    AND (a.thread = '' OR l.thread = [[a.thread ~ t.id]]))
"""
_COVERED: Final = """
(SELECT count(*) FROM log l
  WHERE [[l.space = y.space AND ]]l.owner = y.owner AND l.seq BETWEEN y.first_seq AND y.last_seq
    AND l.at BETWEEN y.began_at AND y.ended_at AND (y.reach = 'user' OR l.thread = y.thread))
"""

_COUNTS: Final[Queries] = (
    (
        "the counts of user",
        """
        SELECT p.space || '/' || p.name FROM person p LEFT JOIN (
            SELECT [[space, ]]owner, count(*) AS messages, count(*) FILTER (WHERE NOT active) AS archived,
                   count(*) FILTER (WHERE role = 'user') AS turns,
                   count(*) FILTER (WHERE role = 'user' AND chunk IS NULL) AS open_turns, sum(words) AS words,
                   max(seq) AS last_seq, max(at) AS last_at, max(chunk) AS last_chunk
              FROM log GROUP BY [[space, ]]owner
        ) l ON [[l.space = p.space AND l.owner = p.name ~ l.owner = p.id]]
        WHERE (p.messages, p.archived, p.turns, p.open_turns, p.words, p.last_seq)
              != (coalesce(l.messages, 0), coalesce(l.archived, 0), coalesce(l.turns, 0), coalesce(l.open_turns, 0),
                  coalesce(l.words, 0), coalesce(l.last_seq, 0))
           OR p.last_at IS DISTINCT FROM l.last_at OR p.last_chunk < coalesce(l.last_chunk, 0)
           OR (NOT p.owner AND coalesce(l.messages, 0) > 0)
        """,
    ),
    (
        "the counts of thread",
        """
        SELECT t.space || '/' || t.name FROM thread t LEFT JOIN (
            SELECT [[space, ]]thread, count(*) AS messages, sum(words) AS words FROM log
             WHERE [[shared ~ shared = 1]] GROUP BY [[space, ]]thread
        ) l ON [[l.space = t.space AND l.thread = t.name ~ l.thread = t.id]]
         WHERE (t.messages, t.words) != (coalesce(l.messages, 0), coalesce(l.words, 0))
        """,
    ),
    (
        "the counts of session",
        """
        SELECT [[s.space || '/' || ]]s.name FROM session s LEFT JOIN (
            SELECT [[space, ]]session, count(*) AS messages, min(at) AS started_at, max(at) AS last_at,
                   min(seq) AS first_seq, max(seq) AS last_seq, min(thread) AS low, max(thread) AS high
              FROM log GROUP BY [[space, ]]session
        ) l ON [[l.space = s.space AND ]]l.session = s.id
         WHERE (s.messages, s.started_at, s.last_at, s.first_seq, s.last_seq, s.thread, s.thread)
               IS DISTINCT FROM (l.messages, l.started_at, l.last_at, l.first_seq, l.last_seq, l.low, l.high)
        """,
    ),
    (
        "the messages counted for the summaries of",
        f"""
        SELECT a.space || '/' || a.[[owner ~ user]] || '/' || a.thread FROM agenda a
          JOIN cursor w ON [[w.space = a.space AND ]]w.policy = a.policy
          JOIN person p ON p.space = a.space AND p.name = a.[[owner ~ user]]
          LEFT JOIN thread t ON t.space = a.space AND t.name = a.thread
         WHERE a.policy IN ('tree', 'rolling', 'tiers')
           AND CASE WHEN {_EMPTIED.format(of="a", number="p.id")} THEN a.messages < {_PROCESSED}
                    ELSE a.messages != {_PROCESSED} END
        """,
    ),
)

_REFERENCES: Final[Queries] = (
    (
        "a message is in a session that does not exist: message",
        """
        SELECT [[l.space || '/' || ]]'#' || l.seq FROM log l
         WHERE NOT EXISTS (SELECT 1 FROM session s WHERE [[s.space = l.space AND ]]s.id = l.session)
        """,
    ),
    (
        "a message is the newer version of none, or of another kind of message: message",
        """
        SELECT [[n.space || '/' || ]]'#' || n.seq FROM log n
          LEFT JOIN log o ON [[o.space = n.space AND ]]o.seq = n.replaces
         WHERE n.replaces IS NOT NULL
           AND (o.seq IS NULL OR NOT o.replaced OR o.seq >= n.seq
                OR (o.owner, o.thread, o.role) != (n.owner, n.thread, n.role))
        """,
    ),
    (
        "a message was taken back, but its tombstone is shown: message",
        f"""
        SELECT [[space || '/' || ]]'#' || seq FROM log
         WHERE details IS NOT NULL AND details = '{TAKEN_BACK}' AND NOT replaced
        """,
    ),
)

_ARCHIVES: Final[Queries] = (
    (
        "a message is archived without a chunk, or active within one:",
        "SELECT [[space || '/' || ]]'#' || seq FROM log WHERE active != (chunk IS NULL)",
    ),
    (
        "a chunk and its summary do not agree: chunk",
        """
        SELECT l.chunk || ' of ' || [[l.space || '/' || l.owner ~ (SELECT p.name FROM person p WHERE p.id = l.owner)]]
          FROM (
            SELECT [[space, ]]owner, chunk, count(*) AS messages, min(seq) AS first, max(seq) AS last
              FROM log WHERE chunk IS NOT NULL GROUP BY chunk, [[space, ]]owner) l
          LEFT JOIN (SELECT [[space, ]]owner, chunks, messages, first_seq, last_seq, count(*) AS summaries FROM summary
                      WHERE level = 1 AND NOT rolled_back AND NOT replaced
                      GROUP BY [[space, ]]owner, chunks, messages, first_seq, last_seq) y
            ON [[y.space = l.space AND ]]y.owner = l.owner AND y.chunks = [[ARRAY[l.chunk] ~ json_array(l.chunk)]]
           AND (y.messages, y.first_seq, y.last_seq) = (l.messages, l.first, l.last)
         WHERE coalesce(y.summaries, 0) != 1
        """,
    ),
    (
        "a summary stands for messages that are not archived: summary",
        """
        SELECT [[y.space || '/' || ]]y.id FROM summary y WHERE y.level = 1 AND NOT y.rolled_back AND y.reach = 'chunks'
           AND (SELECT count(*) FROM [[log l WHERE l.space = y.space AND l.owner = y.owner AND l.chunk = ANY(y.chunks)
                ~ json_each(y.chunks) c CROSS JOIN log l WHERE l.chunk = c.value AND +l.owner = y.owner]])
               NOT IN (0, y.messages)
        """,
    ),
    (
        "a summary is active although another stands for it: summary",
        """
        SELECT [[x.space || '/' || ]]x.source FROM summary_source x
          JOIN summary y ON [[y.space = x.space AND ]]y.id = x.summary
          JOIN summary z ON [[z.space = x.space AND ]]z.id = x.source
         WHERE NOT y.rolled_back AND z.active AND y.kind != 'week'
        """,
    ),
    (
        "a rolled back or replaced summary is active: summary",
        "SELECT [[space || '/' || ]]id FROM summary WHERE (rolled_back OR replaced) AND active",
    ),
    (
        "a summary does not cover as many messages as it says: summary",
        f"""
        SELECT [[y.space || '/' || ]]y.id FROM summary y WHERE y.active AND y.reach IN ('thread', 'user')
           AND CASE WHEN {_EMPTIED.format(of="y", number="y.owner")} THEN y.messages < {_COVERED}
                    ELSE y.messages != {_COVERED} END
        """,
    ),
    (
        "two summaries are the newest of their kind: summary",
        """
        SELECT [[space || '/' || ]]max(id) FROM summary WHERE active AND reach != 'chunks'
         GROUP BY [[space, ]]owner, kind, day, CASE WHEN reach = 'thread' THEN thread END HAVING count(*) > 1
        """,
    ),
    (
        "a summary is the newer version of none, or of another's: summary",
        """
        SELECT [[y.space || '/' || ]]y.id FROM summary y
          LEFT JOIN summary z ON [[z.space = y.space AND ]]z.id = y.replaces
         WHERE (y.replaces IS NOT NULL AND y.version = 1) OR z.owner != y.owner OR z.version != y.version - 1
        """,
    ),
)

_MEMORIES: Final[Queries] = (
    (
        "a memory's state and its mark disagree: memory",
        "SELECT [[space || '/' || ]]id FROM memory WHERE active != (state = 'active')",
    ),
    (
        "a memory was superseded by another user's, or by itself: memory",
        """
        SELECT [[m.space || '/' || ]]m.id FROM memory m
          JOIN memory n ON [[n.space = m.space AND ]]n.id = m.superseded_by
         WHERE n.owner != m.owner OR n.id = m.id
        """,
    ),
    (
        "a memory rests on another user's message: memory",
        """
        SELECT DISTINCT [[m.space || '/' || ]]m.id FROM memory m
          JOIN memory_source s ON [[s.space = m.space AND ]]s.memory = m.id
          JOIN log l ON [[l.space = s.space AND ]]l.seq = s.seq WHERE l.owner != m.owner
        """,
    ),
    (
        "a memory's versions are not all there: memory",
        # Only the oldest ones can have been removed.
        """
        SELECT [[m.space || '/' || ]]m.id FROM memory m
          JOIN memory_version v ON [[v.space = m.space AND ]]v.memory = m.id
         GROUP BY [[m.space, ]]m.id
        HAVING m.revision != 1 + max(v.revision) OR count(*) != 1 + max(v.revision) - min(v.revision)
        """,
    ),
    (
        "the versions of the facts are not all there: user",
        """
        SELECT [[f.space || '/' || f.owner ~ p.space || '/' || p.name]]
          FROM facts f[[ ~  JOIN person p ON p.id = f.owner]]
         GROUP BY [[f.space, ]]f.owner HAVING 1 + max(f.version) - min(f.version) != count(*)
        """,
    ),
)

CHECKS: Final[Mapping[str, tuple[Queries, str]]] = {
    "references": (_REFERENCES, PLAIN),
    "counts": (_COUNTS, f"{PLAIN} are wrong"),
    "archives": (_ARCHIVES, PLAIN),
    "memories": (_MEMORIES, PLAIN),
}
"""The queries of each check, and how its findings are said."""
