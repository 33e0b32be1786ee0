"""On a real Citus cluster: distributing by the guide, isolation of spaces on the workers, one shard for each call."""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

import aforesaid
from aforesaid.cli import app
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.scope import Scope
from aforesaid.errors import StoreRefused, StoreUnavailable
from aforesaid.memory import Memory
from aforesaid.settings import Settings
from aforesaid.store.messages import AddMessage, MessagesBetween
from aforesaid.store.people import PutSetting, Users
from aforesaid.store.postgres import Options, PostgresStore
from aforesaid.store.postgres import database as schema
from aforesaid.store.postgres.database import migrations
from aforesaid.store.searches import ChangeToken
from aforesaid.store.sql import Migration
from citus import (
    Cluster,
    clean_distributed_database,
    reason_to_leave_out,
    refuse_several_shards,
    shared_cluster,
)
from making import add, adding
from pg import PROJECT

pytestmark = pytest.mark.skipif(
    reason_to_leave_out() is not None, reason=f"no Citus cluster, because {reason_to_leave_out()}"
)

SPACES = [f"guild {number}" for number in range(8)]


@pytest.fixture
def cluster() -> Cluster:
    return shared_cluster()


@pytest.fixture
async def store() -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(clean_distributed_database())
    yield opened
    await opened.close()


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    settings = Settings(background=False)
    async with aforesaid.connect(clean_distributed_database(), profile="archive", settings=settings) as opened:
        yield opened


@pytest.mark.req("D12")
async def test_all_tables_are_distributed_by_space_over_both_workers(cluster: Cluster) -> None:
    clean_distributed_database()
    with cluster.admin() as admin:
        columns = admin.execute("SELECT table_name::text, distribution_column FROM citus_tables").fetchall()
        nodes = admin.execute("SELECT DISTINCT nodeport FROM citus_shards").fetchall()
    assert len(columns) == len(schema.TABLES)
    assert {column for _, column in columns} == {"space"}
    assert {port for (port,) in nodes} == {cluster.port + 1, cluster.port + 2}


async def test_a_later_step_of_the_schema_changes_and_adds_tables_on_all_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dsn = clean_distributed_database()
    steps = (*migrations(), Migration(9000, "later", LATER))
    monkeypatch.setattr(sys.modules["aforesaid.store.postgres.database"], "migrations", lambda: steps)
    monkeypatch.setattr(schema, "TABLES", (*schema.TABLES, "later_table"))
    try:
        store = await PostgresStore.open(dsn)
        await add(store, Scope.of("ann", space=SPACES[0]), "hello")
        await store.close()
        with psycopg.connect(dsn) as connection:
            tables = connection.execute("SELECT table_name::text, distribution_column FROM citus_tables").fetchall()
            assert ("later_table", "space") in tables
            connection.execute("SET citus.propagate_set_commands = 'local'")
            connection.execute("SET LOCAL aforesaid.reach = 'all'")
            assert connection.execute("SELECT space, later FROM log").fetchall() == [(SPACES[0], 7)]
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS later_table")
            connection.execute("ALTER TABLE log DROP COLUMN IF EXISTS later")
            connection.execute("DELETE FROM aforesaid_schema WHERE step = 9000")


LATER = """
ALTER TABLE log ADD COLUMN later bigint NOT NULL DEFAULT 7;
CREATE INDEX log_by_later ON log (space, later);
CREATE TABLE later_table (space text COLLATE "C" NOT NULL, id bigint NOT NULL, PRIMARY KEY (space, id));
"""


@pytest.mark.req("A17")
async def test_the_workers_keep_spaces_apart_whatever_a_query_says(store: PostgresStore, cluster: Cluster) -> None:
    for space in SPACES:
        await add(store, Scope.of("ann", space=space), f"a secret of {space}")

    def ask(query: str, space: str | None) -> list[tuple[Any, ...]]:
        with psycopg.connect(cluster.dsn) as connection:
            connection.execute("SET citus.propagate_set_commands = 'local'")
            if space is not None:
                connection.execute(f"SET LOCAL aforesaid.space = '{space}'")
            return connection.execute(query).fetchall()

    assert ask("SELECT space FROM log", SPACES[0]) == [(SPACES[0],)]
    assert ask("SELECT 1 FROM log", None) == [], "who names no space sees nothing"
    assert ask("SELECT 1 FROM log", "nowhere") == []
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        ask(f"INSERT INTO facts VALUES ('{SPACES[1]}', 'x', 1, 'x', 'x', 1) RETURNING 1", SPACES[0])
    with cluster.admin() as admin:
        shards = admin.execute("SELECT shard_name, nodeport FROM citus_shards WHERE table_name = 'log'::regclass")
        placed = shards.fetchall()
    for shard, port in placed:
        with psycopg.connect(cluster.dsn.replace(str(cluster.port), str(port))) as connection:
            assert connection.execute(f"SELECT 1 FROM {shard}").fetchall() == [], "nor does who asks a worker directly"


@pytest.mark.req("A17")
async def test_a_transaction_of_one_space_does_not_see_another_on_the_same_shard(store: PostgresStore) -> None:
    for space in SPACES:
        await add(store, Scope.of("ann", space=space), f"a secret of {space}")
    seen = await store._database.read(SPACES[0], lambda queries: queries.rows("SELECT DISTINCT space FROM log"))
    assert seen == [(SPACES[0],)]
    seen = await store._database.read(None, lambda queries: queries.rows("SELECT DISTINCT space FROM log ORDER BY 1"))
    assert seen == [(space,) for space in SPACES]


async def test_the_conformance_tests_refuse_several_shards_in_a_transaction_of_one_space(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_several_shards(monkeypatch)
    with pytest.raises(StoreRefused, match="multi-task query"):
        await store._database.read(SPACES[0], lambda queries: queries.rows("SELECT space FROM log"))


@pytest.mark.req("D12")
@pytest.mark.parametrize("name", ["add", "search", "context", "remember", "history"])
async def test_a_call_reaches_the_shard_of_its_space_alone(memory: Memory, cluster: Cluster, name: str) -> None:
    ann = memory.user("ann", space=SPACES[0])
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "add": lambda: ann.add("user", "My sister lives in Oslo."),
        "search": lambda: ann.search("where does my sister live"),
        "context": lambda: ann.context("Where does my sister live?"),
        "remember": lambda: ann.remember("likes tea"),
        "history": ann.history,
    }
    for space in SPACES:
        for turn in range(3):
            await memory.user("ann", space=space).add("user", f"I saw {turn} birds near {space} today.")
    await ann.note("schedule", "Dentist on Monday at 9am", importance=8)
    await ann.summarize()
    await memory.upkeep()
    cluster.forget_statements()
    await calls[name]()
    reached = cluster.shard_statements()
    assert len(reached) == 1, reached
    (statements,) = reached.values()
    assert 0 < statements.total() <= documented_statements()[name], statements


def documented_statements() -> dict[str, int]:
    """Return the statements on one shard for each call, from the table of the guide."""
    guide = (PROJECT / "docs" / "how-to" / "run-on-postgresql.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)`([^|]*) \| [^|]+ \| [^|]+ \| (\d+) \|$", guide, re.MULTILINE)
    return {f"{call}{when}": int(most) for call, when, most in rows}


@pytest.mark.req("D12")
async def test_upkeep_asks_each_shard_a_bounded_number_of_times(memory: Memory, cluster: Cluster) -> None:
    for space in SPACES:
        await memory.user("ann", space=space).add("user", f"I saw birds near {space} today.")
    await memory.upkeep()
    cluster.forget_statements()
    await memory.upkeep()
    asked = [statements.total() for statements in cluster.shard_statements().values()]
    assert max(asked) <= documented_statements()["upkeep with nothing to do"]


async def test_spaces_on_both_workers_can_be_written_in_one_change_set(store: PostgresStore) -> None:
    await store.apply([adding(Scope.of("ann", space=space), "hello") for space in SPACES])
    counted = Counter(user.space for user in await store.read(Users(None)))
    assert counted == Counter(SPACES)


async def test_a_change_on_any_worker_changes_the_token(store: PostgresStore) -> None:
    for space in SPACES:
        before = await store.read(ChangeToken())
        await add(store, Scope.of("ann", space=space), "hello")
        assert await store.read(ChangeToken()) != before


@pytest.mark.req("D12")
async def test_missing_checksums_are_filled_by_the_command_that_distributes(
    store: PostgresStore, cluster: Cluster
) -> None:
    for space in SPACES:
        await add(store, Scope.of("ann", space=space), "hello")
        await store.apply([PutSetting(Scope.of("ann", space=space), "every", 7)])
    with cluster.admin() as admin:
        for table in ("person", "thread", "session", "setting"):
            admin.execute(f"UPDATE {table} SET checksum = NULL")
        admin.execute("UPDATE setting SET value = '8', checksum = 1 WHERE space = %s", (SPACES[0],))
    assert not (await store.verify()).ok
    ran = await asyncio.to_thread(CliRunner().invoke, app, ["migrate", "--citus", store.dsn])
    assert ran.exit_code == 0, ran.output
    assert f"{len(SPACES) * 4 - 1} rows without a checksum" in " ".join(ran.output.split())
    (wrong,) = [check for check in (await store.verify()).checks if not check.ok]
    assert wrong.detail == f"setting {SPACES[0]}/ann, every is not what was stored", "what was changed is still found"


@pytest.mark.timeout(600)
@pytest.mark.req("D12", "D11")
async def test_nothing_is_lost_or_doubled_when_workers_die_under_load(cluster: Cluster) -> None:
    store = await PostgresStore.open(clean_distributed_database(), Options(patience=120))
    acknowledged: list[tuple[str, int, str]] = []
    going_on = True

    async def write(space: str) -> None:
        number = 0
        while going_on:
            text = f"message {number} of {space}"
            (message,) = await add(store, Scope.of("ann", space=space), text)
            acknowledged.append((space, message.seq, text))
            number += 1

    writers = [asyncio.create_task(write(space)) for space in SPACES]
    try:
        for worker in (1, 2, 1, 2):
            enough = len(acknowledged) + 60
            while len(acknowledged) < enough:
                assert not [task for task in writers if task.done()], "a writer heard of it"
                await asyncio.sleep(0.01)
            await asyncio.to_thread(cluster.kill_worker, worker)
            await asyncio.to_thread(cluster.start_again)
        going_on = False
        await asyncio.gather(*writers)
        for space in SPACES:
            stored = await store.read(MessagesBetween(space, 0, 2**62))
            mine = [(seq, text) for where, seq, text in acknowledged if where == space]
            assert [(each.seq, each.text) for each in stored] == mine
            assert [each.seq for each in stored] == list(range(1, len(stored) + 1)), "in order, without a gap"
        assert (await store.verify()).ok
    finally:
        going_on = False
        await asyncio.to_thread(cluster.start_again)
        for task in writers:
            task.cancel()
        await store.close()


@pytest.mark.timeout(300)
async def test_whoever_waits_for_a_worker_that_stays_away_is_told_and_can_try_again(cluster: Cluster) -> None:
    store = await PostgresStore.open(clean_distributed_database(), Options(patience=1))
    drafts = [adding(Scope.of("ann", space=space), "hello", id="greeting") for space in SPACES]

    async def until_stored(draft: AddMessage) -> None:
        while True:
            with suppress(StoreUnavailable):
                await store.apply([draft])
                return
            await asyncio.sleep(0.05)

    try:
        await asyncio.to_thread(cluster.kill_worker, 1)
        heard = await asyncio.gather(*(store.apply([draft]) for draft in drafts), return_exceptions=True)
        assert StoreUnavailable in {type(each) for each in heard} <= {Receipt, StoreUnavailable}
        await asyncio.to_thread(cluster.start_again)
        await asyncio.gather(*map(until_stored, drafts))
        assert [each.messages for each in await store.read(Users())] == [1] * len(SPACES)
    finally:
        await asyncio.to_thread(cluster.start_again)
        await store.close()
