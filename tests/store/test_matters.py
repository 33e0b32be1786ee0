"""Matters of memories and their values in stores, in exports, and in what was stored before there were any."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

import aforesaid
from aforesaid.domain.memory import MATTERS, VALUE_CHARACTERS, MemoryDraft, MemoryRecord
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import MemoryRow
from aforesaid.errors import InvalidInput
from aforesaid.portability.row_codec import decode as decode_row
from aforesaid.portability.row_codec import encode as encode_row
from aforesaid.store import Store, open_store
from aforesaid.store.memories import AddMemory, ChangeMemory, Memories, MemoryVersions
from aforesaid.store.readable import records
from aforesaid.store.sqlite import Options, connection
from citus import clean_distributed_database, reason_to_leave_out
from pg import shared_server

ANN = Scope.of("ann")
SQLITE_STEP, POSTGRES_STEP = 24, 19
"""The steps of the schema that gave memories their matters."""
FIELDS = ("matter", "value")
ALLERGY = MemoryDraft(ANN, "fact", "ann is allergic to hazelnuts.", matter="allergy", value="hazelnuts")
NOTE = MemoryDraft(ANN, "fact", "ann collects stamps.")


def matters(memories: list[MemoryRecord]) -> list[tuple[str | None, str | None]]:
    return [(memory.matter, memory.value) for memory in sorted(memories, key=lambda memory: memory.id)]


async def fill(place: str) -> None:
    """Make a store with two memories, one of them edited."""
    store = await open_store(place)
    for draft in (ALLERGY, NOTE):
        made = (await store.apply([AddMemory(draft)])).memory
    await store.apply([ChangeMemory(replace(made, text="ann collects coins."), "edit")])
    await store.close()


def checksum_before(folder: str, name: str) -> str:
    """Return the statement that computes the checksums of memories as before the step."""
    step = Path(aforesaid.__file__).parent / "store" / folder / "migrations" / name
    found = re.search(r"WHEN checksum = (.*?)\s+THEN", step.read_text(), re.DOTALL)
    assert found is not None
    return f"UPDATE memory SET checksum = {found[1]}"


def step_back_in_sqlite(path: Path) -> None:
    with closing(connection.connect(path, Options(), create=False)) as database:
        # The view stands for the one of then, which the step that made the lines of facts replaced.
        database.execute("DROP VIEW user_facts; DROP TABLE fact; CREATE VIEW user_facts AS SELECT * FROM facts")
        database.execute("DROP INDEX memory_of_matter")
        for name in FIELDS:
            database.execute(f"ALTER TABLE memory DROP COLUMN {name}")
        database.execute("UPDATE memory_version SET was = json_remove(was, '$.matter', '$.value')")
        database.execute("UPDATE memory_version SET checksum = row_checksum(memory, revision, at, actor, action, was)")
        database.execute(checksum_before("sqlite", "0024_matters.sql"))
        database.pragma("user_version", SQLITE_STEP - 1)


def step_back_in_postgres(dsn: str) -> None:
    with psycopg.connect(dsn) as database:
        database.execute("SET citus.propagate_set_commands = 'local'")
        database.execute("SET LOCAL aforesaid.reach = 'all'")
        database.execute("DROP VIEW user_facts")
        database.execute("DROP TABLE fact")
        for name in FIELDS:
            database.execute(f"ALTER TABLE memory DROP COLUMN {name}")
        database.execute("UPDATE memory_version SET was = (was::jsonb - 'matter' - 'value')::json")
        database.execute(
            "UPDATE memory_version SET checksum = hash_array_extended(ARRAY[space, memory::text, revision::text, "
            'at::text, actor, action, was::text] COLLATE "C", 0)'
        )
        database.execute(checksum_before("postgres", "0019_matters.sql").encode())
        database.execute("DELETE FROM aforesaid_schema WHERE step >= %s", (POSTGRES_STEP,))


def spoil(place: str) -> None:
    """Change a memory in the way that no program of ours would."""
    if place.startswith("postgresql:"):
        with psycopg.connect(place) as database:
            database.execute("SET LOCAL aforesaid.reach = 'all'")
            database.execute("UPDATE memory SET importance = 10 WHERE id = 1")
    else:
        with closing(connection.connect(Path(place), Options(), create=False)) as database:
            database.execute("UPDATE memory SET importance = 10 WHERE id = 1")


@pytest.fixture(params=["sqlite", "postgres"])
async def old(request: pytest.FixtureRequest, path: Path) -> str:
    """Where a store is that was written before memories had matters."""
    place = str(path) if request.param == "sqlite" else shared_server().create("before_matters")
    await fill(place)
    step_back_in_sqlite(path) if request.param == "sqlite" else step_back_in_postgres(place)
    return place


async def check(place: str) -> None:
    """Open an old store, and check that its memories are notes and that new ones can have a matter."""
    store = await open_store(place)
    assert matters(await store.read(Memories(ANN))) == [(None, None)] * 2
    (version,) = await store.read(MemoryVersions(ANN, 2))
    assert (version.before.text, version.before.matter, version.before.value) == (NOTE.text, None, None)
    assert (await store.verify()).ok
    await store.apply([AddMemory(ALLERGY)])
    assert matters(await store.read(Memories(ANN)))[2] == ("allergy", "hazelnuts")
    assert (await store.verify()).ok
    await store.close()


async def test_memories_of_older_stores_are_notes(old: str) -> None:
    await check(old)


@pytest.mark.skipif(reason_to_leave_out() is not None, reason="no Citus cluster can be had here")
async def test_memories_of_older_clusters_are_notes_on_all_workers() -> None:
    place = clean_distributed_database()
    await fill(place)
    step_back_in_postgres(place)
    await check(place)


async def test_a_memory_that_was_changed_behind_our_back_is_still_found_afterwards(old: str) -> None:
    spoil(old)
    store = await open_store(old)
    report = await store.verify()
    assert not report.ok
    assert "memory" in str(report)
    await store.close()


async def test_matters_and_values_come_back_from_every_store_and_its_versions(store: Store) -> None:
    made = (await store.apply([AddMemory(ALLERGY)])).memory
    await store.apply([AddMemory(NOTE)])
    longest = "x" * VALUE_CHARACTERS
    changed = (await store.apply([ChangeMemory(replace(made, matter="diet", value=longest), "edit")])).memory
    assert matters(await store.read(Memories(ANN))) == [("diet", longest), (None, None)]
    (version,) = await store.read(MemoryVersions(ANN, made.id))
    assert version.before == made
    assert (version.before.matter, version.before.value) == ("allergy", "hazelnuts")
    await store.apply([ChangeMemory(replace(changed, matter="diet", value=None), "edit")])
    assert matters(await store.read(Memories(ANN))) == [("diet", None), (None, None)]
    assert (await store.verify()).ok


async def test_a_store_that_is_opened_again_still_has_them(location: str) -> None:
    store = await open_store(location)
    made = (await store.apply([AddMemory(ALLERGY)])).memory
    if location != ":memory:":
        await store.close()
        store = await open_store(location)
    assert await store.read(Memories(ANN)) == [made]
    await store.close()


async def test_exports_and_records_keep_them_and_older_ones_are_of_notes() -> None:
    store = await open_store(":memory:")
    made = (await store.apply([AddMemory(ALLERGY)])).memory
    await store.apply([ChangeMemory(replace(made, value="all nuts"), "edit")])
    (memory,) = await store.read(Memories(ANN))
    row = MemoryRow(memory, tuple(await store.read(MemoryVersions(ANN, made.id))))
    await store.close()
    plain = encode_row(row)
    assert (plain["matter"], plain["value"]) == ("allergy", "all nuts")
    assert decode_row(plain) == row
    assert records.decode(MemoryRecord, records.encode(memory)) == memory
    note = replace(memory, matter=None, value=None)
    older = {name: value for name, value in plain.items() if name not in FIELDS} | {"versions": []}
    assert decode_row(older) == MemoryRow(note, ())
    record = {name: value for name, value in records.encode(memory).items() if name not in FIELDS}
    assert records.decode(MemoryRecord, record) == note
    for wrong in ({"matter": "rumour"}, {"matter": None}, {"value": "x" * (VALUE_CHARACTERS + 1)}, {"value": 7}):
        with pytest.raises(InvalidInput):
            decode_row({**plain, **wrong})


@pytest.mark.parametrize("matter", MATTERS)
def test_every_matter_can_be_that_of_a_memory(matter: str) -> None:
    assert MemoryDraft(ANN, "fact", "x is y", matter=matter).value is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"matter": ""},
        {"matter": 7},
        {"matter": "rumour"},
        {"value": "hazelnuts"},
        {"matter": "allergy", "value": ""},
        {"matter": "allergy", "value": 7},
        {"matter": "allergy", "value": "\0"},
        {"matter": "allergy", "value": "x" * (VALUE_CHARACTERS + 1)},
    ],
)
async def test_what_no_matter_or_value_can_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        MemoryDraft(ANN, "fact", "x is y", **wrong)
    store = await open_store(":memory:")
    made = (await store.apply([AddMemory(NOTE)])).memory
    with pytest.raises(InvalidInput):
        ChangeMemory(replace(made, **wrong), "edit")
    await store.close()


def test_an_unknown_matter_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match=r"unknown matter 'rumour'; use one of name, age, .*, goal"):
        MemoryDraft(ANN, "fact", "x is y", matter="rumour")
