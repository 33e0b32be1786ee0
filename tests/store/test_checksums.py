"""Any single column that something else than Aforesaid changes is found by `verify`, on every store."""

from __future__ import annotations

import json
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import apsw
import psycopg
import pytest

from aforesaid.domain.memory import MemoryDraft
from aforesaid.portability.migrating import repair
from aforesaid.store import Store, open_store
from aforesaid.store.checksums import POSTGRES, SQLITE
from aforesaid.store.memories import AddMemory, ChangeMemory
from aforesaid.store.people import PutSetting
from filling import ANN, BOB, fill_with_everything
from pg import clean_database

DERIVED = {"embedder", "vector", "note_vector", "embedding", "note_embedding", "space", "writer"}
"""Tables that hold nothing that people said: vectors, cursors of embedders, counters, marks of writers."""
COUNTERS = {("person", "revision"), ("thread", "revision")}
"""Columns that only tell caches to read again."""

Undo: TypeAlias = Callable[[], None]
Place: TypeAlias = tuple[Any, ...]
Value: TypeAlias = Any


class Damage(ABC):
    """Changes single values of a store behind its back."""

    @abstractmethod
    def places(self) -> list[Place]:
        """Return where values can be changed."""

    @abstractmethod
    def change(self, place: Place, source: random.Random) -> Undo | None:
        """Change a value, and return what changes it back; None if the database does not allow the change."""

    @abstractmethod
    def execute(self, query: str) -> None:
        """Run a statement, where there is a database."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection, if there is one."""


def another(value: Value, source: random.Random) -> Value:
    """Return a value of the same type that differs a little, or a lot."""
    match value:
        case bool():
            return not value
        case int() | float():
            return source.choice([value + 1, value - 1, value + source.randint(2, 10**9), int(value) ^ (1 << 20)])
        case str():
            at = source.randrange(len(value) + 1)
            return source.choice([value + " ", value[:at] + "x" + value[at:], value.upper() + "é", value[:-1] + "?"])
        case bytes():
            at = source.randrange(len(value))
            return value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
        case None:
            return 1
        case _:
            return [*value, *(value[:1] or [1])]


class SqliteDamage(Damage):
    def __init__(self, path: Path) -> None:
        self._file = apsw.Connection(str(path))

    def execute(self, query: str) -> None:
        self._file.execute(query)
        assert self._file.changes()

    def close(self) -> None:
        self._file.close()

    def places(self) -> list[Place]:
        tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        return [
            (table, column)
            for table in [str(name) for (name,) in self._file.execute(tables)]
            if table not in DERIVED and "_index" not in table and not table.startswith("sqlite_")
            for (column,) in self._file.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
            if (table, column) not in COUNTERS and self._file.execute(f"SELECT count(*) FROM {table}").get
        ]

    def change(self, place: Place, source: random.Random) -> Undo | None:
        table, column = place
        key = [name for (name,) in self._file.execute("SELECT name FROM pragma_table_info(?) WHERE pk", (table,))]
        rows = self._file.execute(f"SELECT {', '.join(key)}, {column} FROM {table}").fetchall()
        *values, old = source.choice(rows)
        names = dict(zip(key, values, strict=True))
        new = another(old, source)
        try:
            self._set(table, column, names, new)
        except apsw.ConstraintError:
            return None
        return lambda: self._set(table, column, {**names, **({column: new} if column in names else {})}, old)

    def _set(self, table: str, column: str, names: dict[str, Any], value: Value) -> None:
        where = " AND ".join(f"{name} = ?" for name in names)
        self._file.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (value, *names.values()))
        assert self._file.changes() == 1


class PostgresDamage(Damage):
    def __init__(self, dsn: str) -> None:
        self._database = psycopg.connect(dsn, autocommit=True)
        self._database.execute("SET aforesaid.reach = 'all'")

    def execute(self, query: str) -> None:
        assert self._database.execute(query.encode()).rowcount

    def close(self) -> None:
        self._database.close()

    def places(self) -> list[Place]:
        columns = """
            SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod)
              FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
             WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
               AND c.relname != 'aforesaid_schema' ORDER BY c.oid, a.attnum
        """
        return [
            (table, column, kind)
            for table, column, kind in self._database.execute(columns).fetchall()
            if table not in DERIVED
            and (table, column) not in COUNTERS
            and self._database.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
        ]

    def change(self, place: Place, source: random.Random) -> Undo | None:
        table, column, kind = place
        shown = f"{column}::text" if kind == "json" else column
        position, old = source.choice(self._database.execute(f"SELECT ctid::text, {shown} FROM {table}").fetchall())
        new = source.choice(["7", '"7"', f"{old} "]) if kind == "json" else another(old, source)
        if kind == "text" and old is None:
            new = "x"
        try:
            moved = self._set(place, position, new)
        except (psycopg.IntegrityError, psycopg.DataError):
            return None

        def undo() -> None:
            self._set(place, moved, old)

        return undo

    def _set(self, place: Place, position: str, value: Value) -> str:
        table, column, kind = place
        query = f"UPDATE {table} SET {column} = %s::{kind} WHERE ctid = %s::tid RETURNING ctid::text"
        row = self._database.execute(query, (value, position)).fetchone()
        assert row is not None
        return str(row[0])


class FileDamage(Damage):
    """Changes values of records in files of JSON."""

    def __init__(self, path: Path) -> None:
        hidden = {".memory.db", ".aforesaid.db"}
        files = [file for file in sorted(path.parent.rglob("*")) if file.is_file() and file.stat().st_size]
        self._files = [file for file in files if not any(file.name.startswith(name) for name in hidden)]
        assert self._files

    def execute(self, query: str) -> None:
        raise NotImplementedError

    def close(self) -> None:
        pass

    def places(self) -> list[Place]:
        return [
            (file, number, *found)
            for file in self._files
            for number, document in enumerate(documents(file))
            for found in values_of(document, ())
        ]

    def change(self, place: Place, source: random.Random) -> Undo:
        file, number, path = place[0], place[1], place[2:]
        before = file.read_bytes()
        found = documents(file)
        holder: Value = found[number]
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = another(holder[path[-1]], source)
        file.write_text("".join(json.dumps(document, ensure_ascii=False) + "\n" for document in found))

        def undo() -> None:
            file.write_bytes(before)

        return undo


def documents(file: Path) -> list[Place]:
    return [json.loads(file.read_text())]


def values_of(value: Value, path: tuple[Any, ...], *, recorded: bool = False) -> Iterator[tuple[Any, ...]]:
    """Return the paths to all single values inside of records; a record is what has a checksum."""
    pairs: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    recorded = recorded or (isinstance(value, dict) and "check" in value)
    for step, inside in pairs:
        if isinstance(inside, dict | list):
            yield from values_of(inside, (*path, step), recorded=recorded)
        elif recorded:
            yield (*path, step)


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    return 500 if request.config.getoption("--torture") else 60


def where(kind: str, tmp_path: Path) -> str:
    return clean_database() if kind == "postgres" else f"{kind}:{tmp_path / 'folder' / 'memory'}"


async def damaged(place: str) -> tuple[Store, Damage]:
    """Return a store with everything in it, and what changes it."""
    store = await open_store(place)
    await fill_with_everything(store)
    kind, _, path = place.partition(":")
    if kind == "postgresql":
        return store, PostgresDamage(place)
    if kind == "sqlite":
        return store, SqliteDamage(Path(path))
    await store.close()
    store = await open_store(place)
    return store, FileDamage(Path(path))


@pytest.mark.defect("D4")
@pytest.mark.parametrize("kind", ["sqlite", "postgres", "json", "files"])
async def test_every_single_changed_column_is_found(kind: str, tmp_path: Path, rounds: int) -> None:
    store, damage = await damaged(where(kind, tmp_path))
    source = random.Random(4)
    assert (await store.verify()).ok
    # A message may be set aside without a newer version: only a checksum of this flag would tell that from damage.
    places = [place for place in damage.places() if place[:2] != ("log", "replaced")]
    missed, done = [], 0
    while done < rounds:
        place = source.choice(places)
        undo = damage.change(place, source)
        if undo is None:
            continue
        if (await store.verify()).ok:
            missed.append(place)
        undo()
        done += 1
    assert not missed, f"{len(missed)} of {rounds} changes were not found: {missed}"
    assert (await store.verify()).ok
    damage.close()
    await store.close()


@pytest.mark.defect("D4")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_changed_row_is_still_found_after_it_was_written_again(kind: str, tmp_path: Path) -> None:
    store, damage = await damaged(where(kind, tmp_path))
    memory = (await store.apply([AddMemory(MemoryDraft(ANN, "fact", "plays the violin"))])).memory
    damage.execute("UPDATE memory SET text = 'plays the trumpet' WHERE text = 'plays the violin'")
    changed = replace(memory, text="plays the trumpet", importance=7)
    await store.apply([ChangeMemory(changed, "edit", "ann")])
    found = next(check for check in (await store.verify()).checks if check.name == "checksums")
    assert f"{memory.id} is not what was stored" in found.detail
    damage.close()
    await store.close()


@pytest.mark.defect("D4")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_a_changed_setting_is_right_again_when_it_is_set_again(kind: str, tmp_path: Path) -> None:
    store, damage = await damaged(where(kind, tmp_path))
    damage.execute("UPDATE setting SET updated_at = updated_at + 1")
    assert not (await store.verify()).ok
    await store.apply([PutSetting(ANN, "summary_every_n", 13), PutSetting(BOB, "x", "z")])
    assert (await store.verify()).ok
    damage.close()
    await store.close()


@pytest.mark.defect("D4")
async def test_a_repair_names_the_rows_that_were_changed(tmp_path: Path) -> None:
    place = where("sqlite", tmp_path)
    store, damage = await damaged(place)
    await store.close()
    damage.execute("UPDATE memory SET remind_at = remind_at + 1 WHERE remind_at IS NOT NULL")
    damage.close()
    done = await repair(place)
    assert done.needed
    assert done.verification.ok
    assert any(line.startswith("memory 1 is not what was stored") for line in done.lost), done.lost


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_checksums_cover_every_column_that_nothing_else_checks(kind: str, tmp_path: Path) -> None:
    store, damage = await damaged(where(kind, tmp_path))
    await store.close()
    covered = (SQLITE if kind == "sqlite" else POSTGRES).columns
    given_by_sqlite = {(table, "id") for table in ("person", "thread", "session", "summary", "memory")}
    counted = {
        *(("person", name) for name in ("messages", "archived", "turns", "open_turns", "words", "last_seq", "last_at")),
        *(("thread", name) for name in ("messages", "words")),
        *(("session", name) for name in ("started_at", "last_at", "first_seq", "last_seq", "messages")),
    }
    compared_with_the_text = {("summary", "terms"), ("memory", "terms")}
    others = {(table, column) for table, column, *_ in damage.places() if table != "log" and column != "checksum"}
    damage.close()
    others -= {(table, column) for table in covered for column in covered[table]}
    assert others <= counted | (given_by_sqlite if kind == "sqlite" else compared_with_the_text)


@pytest.mark.defect("D4")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.parametrize("row", ["person WHERE name = 'carol'", "thread WHERE name = 'general'"])
async def test_a_deleted_row_is_found_where_others_refer_to_it(kind: str, row: str, tmp_path: Path) -> None:
    store, damage = await damaged(where(kind, tmp_path))
    damage.execute(f"DELETE FROM {row}")
    assert not (await store.verify()).ok
    damage.close()
    await store.close()
