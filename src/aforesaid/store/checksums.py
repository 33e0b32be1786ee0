"""Checksums of rows, by which `verify` finds any column that something else than Aforesaid has changed.

Every table that holds what people said, what is known about them, or when something is due is declared here with the
columns that its checksum covers. Statements that write to these tables are built here, so that none can leave the
checksum out. Messages have a hash of their own (`message_hash`), and counts are compared with what they count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from hashlib import blake2b
from typing import Final, NamedTuple

from aforesaid.store.dialects import for_postgres, for_sqlite

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
    """A column that a checksum covers."""

    type: str
    """In PostgreSQL."""
    default: str | None
    """What it holds when an INSERT does not name it, as SQL; None if every INSERT must name it."""


class _Declared(NamedTuple):
    columns: str
    """Names, types and defaults, for both databases (see `dialects`)."""
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
        confidence integer
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
    "forgotten": _Declared(
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
    "walk": _Declared("[[space text, ]]policy text, up_to bigint", "[[space || '/' || ]]policy"),
    "agenda": _Declared(
        """
        space text, policy text, [[owner ~ user]] text, thread text, day text, messages bigint, characters bigint,
        waiting bigint, last_seq bigint, due_at bigint, done_at bigint, done_seq bigint, failures bigint, error text
        """,
        "policy || ' of ' || space || '/' || [[owner ~ user]] || '/' || thread || '/' || day",
    ),
    "mark": _Declared("[[space text, ]]name text, value text", "name"),
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
        return self._function(
            (self._typed(table, name, values[name]) if name in values else _default(table, name, column), column.type)
            for name, column in self.columns[table].items()
        )

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
        """Return an UPDATE of the rows without a checksum."""
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


def _default(table: str, name: str, column: Column) -> str:
    if column.default is None:
        raise KeyError(f"{table}.{name} has no default: name it")
    return column.default


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


def setting(table: str, **values: str) -> str:
    """Return the assignments of an UPDATE and the checksum that follows, for both databases (see `dialects`)."""
    return f"[[{POSTGRES.setting(table, **values)} ~ {SQLITE.setting(table, **values)}]]"
