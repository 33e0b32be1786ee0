"""Kinds of memories in stores, and in what was stored before memories had kinds."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

import aforesaid
from aforesaid.domain.memory import Event, MemoryDraft, MemoryRecord
from aforesaid.domain.scope import Scope
from aforesaid.domain.transfer import MemoryRow
from aforesaid.errors import InvalidInput
from aforesaid.portability.row_codec import decode as decode_row
from aforesaid.portability.row_codec import encode as encode_row
from aforesaid.store import open_store
from aforesaid.store.memories import AddMemory, Memories, MemoryVersions
from aforesaid.store.readable import records
from aforesaid.store.sql import steps_of
from aforesaid.store.sqlite import Options, connection
from citus import clean_distributed_database, reason_to_leave_out
from making import NOON, minutes
from pg import shared_server

ANN = Scope.of("ann")
SQLITE_STEP, POSTGRES_STEP = 15, 11
"""The steps of the schema that gave memories their kinds."""
LATER_STEPS = {"sqlite": 24, "postgres": 19}
"""Later steps that compute the checksums of memories anew, from columns of their own."""
LATER_FIELDS = ("matter", "value")
LATER_INDEXES = ("memory_of_request", "memory_to_deliver", "memory_by_event", "memory_of_matter")
"""Indexes of later steps over what these steps added."""
FIELDS = ("kind", "about", "said_at", "language", "confidence")
OLD = (
    MemoryDraft(ANN, "preference", 'ann asks: "always answer in metric"', tags=("instruction",)),
    MemoryDraft(ANN, "fact", "ann moved to Berlin (2020-05).", event=Event(NOON, minutes(60), timed=False)),
    MemoryDraft(ANN, "fact", "ann and Levin are siblings.", tags=("relationship",)),
    MemoryDraft(ANN, "fact", "ann's sister is called Carol.", subject="sister: name"),
    MemoryDraft(ANN, "fact", "Tom is a pilot.", tags=("trusted", "about tom")),
    MemoryDraft(ANN, "other", "ann collects stamps."),
    MemoryDraft(ANN, "schedule", "Dentist", event=Event(NOON, minutes(60), timed=True)),
)
"""Memories as older versions stored them: kinds and people were tags."""
KINDS = ["instruction", "event", "relationship", "relationship", "fact", "fact", "schedule"]


async def old_store(place: str) -> None:
    """Make a store with the memories of OLD, one of them edited."""
    store = await open_store(place)
    for draft in OLD:
        await store.apply([AddMemory(draft)])
    await store.close()
    async with aforesaid.connect(place, embedder="none") as memory:
        await memory.user("ann").edit_memory(6, text="ann collects coins.")


def statement(folder: str, name: str) -> str:
    """Return how the step before computed the checksums of memories."""
    steps = Path(aforesaid.__file__).parent / "store" / folder / "migrations" / name
    found = re.search(r"^UPDATE memory SET.*?;", steps.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[0]


def step_back_in_sqlite(path: Path) -> None:
    keys = ", ".join(f"'$.{name}'" for name in (*FIELDS, *LATER_FIELDS))
    with closing(connection.connect(path, Options(), create=False)) as database:
        for name in LATER_INDEXES:
            database.execute(f"DROP INDEX {name}")
        for name in (*FIELDS, *LATER_FIELDS):
            database.execute(f"ALTER TABLE memory DROP COLUMN {name}")
        database.execute(f"UPDATE memory_version SET was = json_remove(was, {keys})")
        database.execute("UPDATE memory_version SET checksum = row_checksum(memory, revision, at, actor, action, was)")
        database.execute(statement("sqlite", "0014_checksums.sql"))
        database.pragma("user_version", SQLITE_STEP - 1)


def step_back_in_postgres(dsn: str) -> None:
    with psycopg.connect(dsn) as database:
        database.execute("SET citus.propagate_set_commands = 'local'")
        database.execute("SET LOCAL aforesaid.reach = 'all'")
        for name in LATER_INDEXES:
            database.execute(f"DROP INDEX {name}")
        for name in (*FIELDS, *LATER_FIELDS):
            database.execute(f"ALTER TABLE memory DROP COLUMN {name}")
        without = " - ".join(("was::jsonb", *(f"'{name}'" for name in (*FIELDS, *LATER_FIELDS))))
        database.execute(f"UPDATE memory_version SET was = ({without})::json")
        database.execute(
            "UPDATE memory_version SET checksum = hash_array_extended(ARRAY[space, memory::text, revision::text, "
            'at::text, actor, action, was::text] COLLATE "C", 0)'
        )
        database.execute(statement("postgres", "0010_checksums.sql"))
        database.execute("DELETE FROM aforesaid_schema WHERE step >= %s", (POSTGRES_STEP,))


def spoil(place: str) -> None:
    """Change a memory in the way that no program of ours would."""
    if place.startswith("postgresql:"):
        with psycopg.connect(place) as database:
            database.execute("SET LOCAL aforesaid.reach = 'all'")
            database.execute("UPDATE memory SET importance = 10 WHERE id = 1")
    else:
        with closing(apsw.Connection(place)) as database:
            database.execute("UPDATE memory SET importance = 10 WHERE id = 1")


def run_no_later_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let stores that are opened run the step that this is about; of those after it, only what has to run again."""
    for kind, module, last in (("sqlite", "connection", SQLITE_STEP), ("postgres", "database", POSTGRES_STEP)):
        known = steps_of(f"aforesaid.store.{kind}")
        steps = tuple(step for step in known if step.number <= last or step.number == LATER_STEPS[kind])
        monkeypatch.setattr(sys.modules[f"aforesaid.store.{kind}.{module}"], "migrations", lambda steps=steps: steps)


@pytest.fixture(params=["sqlite", "postgres"])
async def old(request: pytest.FixtureRequest, path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a store is that was written before memories had kinds."""
    place = str(path) if request.param == "sqlite" else shared_server().create("before_kinds")
    await old_store(place)
    step_back_in_sqlite(path) if request.param == "sqlite" else step_back_in_postgres(place)
    run_no_later_steps(monkeypatch)
    return place


async def check(place: str) -> None:
    """Open an old store, and check what became of its memories."""
    store = await open_store(place)
    found = sorted(await store.read(Memories(ANN)), key=lambda memory: memory.id)
    assert [memory.kind for memory in found] == KINDS
    assert [memory.about for memory in found] == [None, None, None, None, "tom", None, None]
    assert all(memory.said_at == memory.valid_from for memory in found)
    assert (await store.verify()).ok
    (version,) = await store.read(MemoryVersions(ANN, 6))
    assert (version.before.kind, version.before.text) == ("fact", "ann collects stamps.")
    await store.close()


async def test_old_memories_get_a_kind_a_person_and_the_time_at_which_they_were_said(old: str) -> None:
    await check(old)


@pytest.mark.skipif(reason_to_leave_out() is not None, reason="no Citus cluster can be had here")
async def test_old_memories_on_all_workers_of_a_cluster_get_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    place = clean_distributed_database()
    await old_store(place)
    with psycopg.connect(place) as database:
        steps = database.execute("SELECT step, name, needs FROM aforesaid_schema ORDER BY step").fetchall()
    step_back_in_postgres(place)
    run_no_later_steps(monkeypatch)
    await check(place)
    with psycopg.connect(place) as database:  # other tests use it too
        for step in steps[POSTGRES_STEP:]:
            if step[0] == LATER_STEPS["postgres"]:
                continue
            database.execute("INSERT INTO aforesaid_schema (step, name, needs) VALUES (%s, %s, %s)", step)


async def test_a_memory_that_was_changed_behind_our_back_is_still_found_afterwards(old: str) -> None:
    spoil(old)
    store = await open_store(old)
    report = await store.verify()
    assert not report.ok
    assert "memory" in str(report)
    await store.close()


@pytest.mark.parametrize(("draft", "kind"), list(zip(OLD, KINDS, strict=True)))
async def test_old_records_and_exports_get_their_kind_when_they_are_read(draft: MemoryDraft, kind: str) -> None:
    store = await open_store(":memory:")
    memory = (await store.apply([AddMemory(draft)])).memory
    await store.close()
    plain = records.encode(memory)
    assert records.decode(MemoryRecord, {name: plain[name] for name in plain if name not in FIELDS}).kind == kind
    row = encode_row(MemoryRow(memory, ()))
    assert decode_row(row) == MemoryRow(memory, ())
    lacking = {name: value for name, value in row.items() if name not in {*FIELDS[1:], "memory_kind"}}
    assert decode_row(lacking) == MemoryRow(memory, ())


async def test_all_fields_come_back(location: str) -> None:
    more: dict[str, Any] = {"about": "Sinéad", "said_at": minutes(-5), "language": "german", "confidence": 0.873}
    store = await open_store(location)
    made = (await store.apply([AddMemory(MemoryDraft(ANN, "fact", "x is y", kind="relationship", **more))])).memory
    (found,) = await store.read(Memories(ANN))
    assert found == made
    assert (found.kind, found.about, found.language) == ("relationship", "Sinéad", "german")
    assert (found.said_at, found.confidence) == (minutes(-5), 0.87)
    await store.close()


@pytest.mark.parametrize(
    "wrong", [{"kind": "rumour"}, {"about": ""}, {"confidence": 1.5}, {"confidence": "high"}, {"language": ""}]
)
def test_what_no_memory_can_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        MemoryDraft(ANN, "fact", "x is y", **wrong)
