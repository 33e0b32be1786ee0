"""What only the PostgreSQL store has: a database that others look into too, that restarts, and that many share."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import numpy as np
import psycopg
import pytest
from typer.testing import CliRunner

import recollect
from making import NOON, add, adding, archive, minutes
from pg import Server, clean_database, shared_server
from recollect.cli import app
from recollect.domain.change import AddVectors, Archive, PutFacts, PutSetting
from recollect.domain.memory import MemoryDraft
from recollect.domain.memory_change import AddMemory
from recollect.domain.scope import Scope
from recollect.domain.summary import SummaryDraft
from recollect.domain.vector import VectorRow
from recollect.errors import InvalidInput, StoreClosed, StoreTooNew, StoreUnavailable, TooLarge
from recollect.store import open_store
from recollect.store.postgres import Options, PostgresStore, citus
from recollect.store.postgres.breaker import Breaker
from recollect.store.postgres.migrate import migrations, statements

ANN = Scope.of("123456789")
GUILD = Scope.of("42", space="900", thread="777")


@pytest.fixture
async def store() -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(clean_database())
    yield opened
    await opened.close()


@pytest.fixture
async def filled(store: PostgresStore) -> PostgresStore:
    """A store with a little of everything."""
    await store.apply([adding(ANN, "Hello, what's the weather like?", at=NOON)])
    await store.apply([adding(ANN, "I have no weather data.", "assistant", at=NOON + timedelta(seconds=5))])
    first = await archive(store, ANN, await store.messages(ANN), "You asked about weather.")
    below = await archive(store, ANN, await add(store, ANN, "Funeral at church on Monday at 9am"), "A funeral.")
    await store.apply([Archive(SummaryDraft(ANN, "Weather and a funeral.", summaries=(first.id, below.id)))])
    await store.apply([PutSetting(ANN, "summary_every_n", 15), PutSetting(ANN, "memory_enabled", True)])
    await store.apply([PutFacts(GUILD, "Old.", "x"), PutFacts(GUILD, "gruzilkin is Sergey.", "remember that")])
    await store.apply([adding(GUILD, "I like pizza", id="5001", at=NOON)])
    await store.apply([adding(GUILD, "Noted!", "assistant", at=NOON, author="bot")])
    await store.apply([AddMemory(MemoryDraft(ANN, "schedule", "Funeral on Monday", importance=9, sources=(3,)))])
    value = np.array([1, 0], dtype=np.float16).tobytes()
    rows = tuple(VectorRow(each.seq, each.text, value, each.space) for each in await store.messages(ANN))
    await store.apply([AddVectors("m", rows, rows[-1].seq)])
    return store


def ask(dsn: str, query: str, space: str | None = "default") -> list[dict[str, Any]]:
    """Ask like anybody with a tool for PostgreSQL."""
    with psycopg.connect(dsn, row_factory=psycopg.rows.dict_row) as connection:
        if space is not None:
            connection.execute("SELECT set_config('recollect.space', %s, false)", (space,))
        return connection.execute(query).fetchall()


@pytest.mark.req("D5", "A4")
async def test_the_documents_tables_can_be_read(filled: PostgresStore) -> None:
    dsn = filled.dsn
    (user,) = ask(dsn, "SELECT * FROM users")
    assert (user["user_id"], user["summary_every_n"], user["memory_enabled"]) == ("123456789", 15, True)
    messages = ask(dsn, "SELECT * FROM messages ORDER BY id")
    assert [(row["content"], row["is_active"], row["chunk_id"]) for row in messages][:1] == [
        ("Hello, what's the weather like?", False, 1)
    ]
    assert messages[0]["created_at"].isoformat() == "2026-03-01T12:00:00"
    summaries = ask(dsn, "SELECT * FROM summaries ORDER BY id")
    assert [(row["level"], row["source_chunk_ids"], row["is_active"]) for row in summaries] == [
        (1, "[1]", False),
        (1, "[2]", False),
        (2, "[1,2]", True),
    ]
    sessions = ask(dsn, "SELECT * FROM conversation_sessions ORDER BY id")
    assert [(row["user_name"], row["session_id"], row["message_count"]) for row in sessions] == [
        ("123456789", "s-1", 2),
        ("123456789", "s-3", 1),
    ]
    assert sessions[0]["state"] == "closed"
    history = ask(dsn, "SELECT * FROM conversation_history ORDER BY id")
    assert [(row["role"], row["session_id"], row["message_type"]) for row in history][1] == ("assistant", "s-1", "text")
    (memory,) = ask(dsn, "SELECT * FROM persistent_memories")
    assert (memory["category"], memory["importance"], memory["session_id"]) == ("schedule", 9, "s-3")
    assert len(ask(dsn, "SELECT * FROM active_memories")) == 1


@pytest.mark.req("B3")
async def test_facts_and_chat_history_are_read_by_space_user_and_time_through_an_index(filled: PostgresStore) -> None:
    (facts,) = ask(filled.dsn, "SELECT * FROM user_facts", "900")
    assert (facts["guild_id"], facts["user_id"], facts["memory_blob"]) == ("900", "42", "gruzilkin is Sergey.")
    said = ask(filled.dsn, "SELECT * FROM chat_history ORDER BY message_id", "900")
    assert [(row["message_id"], row["user_id"], row["channel_id"]) for row in said] == [
        ("#2", "bot", "777"),
        ("5001", "42", "777"),
    ]
    with psycopg.connect(filled.dsn) as connection:
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET recollect.space = '900'")
        plan = connection.execute(
            "EXPLAIN SELECT * FROM chat_history WHERE guild_id = '900' AND user_id = '42' "
            'AND "timestamp" >= \'2026-01-01\' ORDER BY "timestamp"'
        ).fetchall()
    shown = "\n".join(row[0] for row in plan)
    assert "log_by_author" in shown
    assert "said_at" in shown.replace("'1970-01-01", "said_at"), "the time is part of what the index answers"
    assert "Sort" not in shown


@pytest.mark.req("D7")
async def test_similarity_can_be_asked_in_sql(filled: PostgresStore) -> None:
    found = ask(filled.dsn, "SELECT message, 1 - (embedding <=> '[1, 1]') AS alike FROM conversation_history LIMIT 1")
    assert found[0]["alike"] == pytest.approx(0.7071, abs=1e-3)


@pytest.mark.req("A17")
async def test_a_second_wall_keeps_spaces_apart_whatever_a_query_says(filled: PostgresStore) -> None:
    assert {row["space"] for row in ask(filled.dsn, "SELECT space FROM log", "900")} == {"900"}
    assert ask(filled.dsn, "SELECT 1 FROM log", None) == [], "who names no space sees nothing"
    assert ask(filled.dsn, "SELECT 1 FROM log", "nowhere") == []
    with psycopg.connect(filled.dsn) as connection:
        connection.execute("SET recollect.space = '900'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            connection.execute("INSERT INTO facts VALUES ('default', 'x', 1, 'x', 'x', 1)")


@pytest.mark.req("D12")
async def test_every_key_begins_with_the_space_and_nothing_is_numbered_across_spaces(store: PostgresStore) -> None:
    keys = ask(
        store.dsn,
        """
        SELECT i.indrelid::regclass::text AS "table", a.attname AS first FROM pg_index i
          JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
         WHERE (i.indisunique OR i.indisprimary) AND i.indrelid::regclass::text != 'recollect_schema'
           AND i.indrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)
        """,
    )
    assert len(keys) > 20
    assert {row["first"] for row in keys} == {"space"}
    foreign = ask(store.dsn, "SELECT pg_get_constraintdef(oid) AS it FROM pg_constraint WHERE contype = 'f'")
    assert foreign
    assert all(row["it"].startswith("FOREIGN KEY (space, ") for row in foreign)
    assert ask(store.dsn, "SELECT 1 FROM pg_class WHERE relkind = 'S'") == []


async def test_all_tables_can_be_spread_by_space(store: PostgresStore) -> None:
    tables = ask(
        store.dsn, "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    ours = {row["relname"] for row in tables if not row["relname"].startswith(("procrastinate", "recollect_schema"))}
    assert ours == set(citus.TABLES)
    ran = CliRunner().invoke(app, ["migrate", "--citus", "--dry-run", store.dsn])
    assert ran.exit_code == 0
    assert ran.output.splitlines() == citus.statements()


CITUS_STAND_IN = """
CREATE TABLE recorded (number serial, relation regclass, columns text, beside text);
CREATE FUNCTION create_distributed_table(
    relation regclass, distribution_column text, colocate_with text DEFAULT 'default')
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = relation AND attname = distribution_column) THEN
        RAISE EXCEPTION 'column % of % does not exist', distribution_column, relation;
    END IF;
    IF relation = 'mark'::regclass AND EXISTS (SELECT 1 FROM pg_class WHERE relname = 'breaks_at_the_end') THEN
        RAISE EXCEPTION 'a machine cannot be reached';
    END IF;
    INSERT INTO recorded (relation, columns, beside) VALUES (relation, distribution_column, colocate_with);
END
$$
"""
"""What Citus brings, as far as this project calls it: it writes down what it was asked for."""


async def test_the_tables_are_distributed_by_citus_or_none_of_them_is() -> None:
    dsn = shared_server().create("distributed")

    def distribute() -> tuple[int, str]:
        ran = CliRunner().invoke(app, ["migrate", "--citus", dsn])
        return ran.exit_code, " ".join(ran.output.split())

    def recorded() -> list[tuple[str, str, str]]:
        with psycopg.connect(dsn) as connection:
            return connection.execute("SELECT relation::text, columns, beside FROM recorded ORDER BY number").fetchall()

    async def ran_and_said(what: str) -> None:
        code, output = await asyncio.to_thread(distribute)
        assert code != 0
        assert what in output, output

    await ran_and_said("has no Citus")
    with psycopg.connect(dsn) as connection:
        connection.execute(CITUS_STAND_IN)
        connection.execute("CREATE TABLE breaks_at_the_end ()")
    await ran_and_said("has no tables yet")
    opened = await PostgresStore.open(dsn)
    await ran_and_said("a machine cannot be reached")
    assert recorded() == [], "those before the one that failed were taken back"
    with psycopg.connect(dsn) as connection:
        connection.execute("DROP TABLE breaks_at_the_end")
    code, output = await asyncio.to_thread(distribute)
    assert code == 0, output
    assert "distributed 23 tables by space" in output
    assert recorded() == [(table, "space", "default" if table == "space" else "space") for table in citus.TABLES]
    await opened.apply([adding(ANN, "hello")])
    await opened.close()
    await ran_and_said("holds messages already")


async def test_a_change_set_over_several_spaces_is_stored_as_a_whole_or_not_at_all(store: PostgresStore) -> None:
    away = Scope.of("ann", space="away")
    with pytest.raises(InvalidInput):
        await store.apply([adding(ANN, "here"), adding(Scope.of("ann", space="away", session="s-99"), "there")])
    assert (await store.stats()).messages == 0
    receipt = await store.apply([adding(ANN, "here"), adding(away, "there"), PutSetting(away, "x", 1)])
    assert [result.message.seq for result in receipt.results[:2]] == [1, 1]  # type: ignore[union-attr]
    assert (await store.verify()).ok


async def test_two_servers_see_what_the_other_does_at_once(store: PostgresStore) -> None:
    other = await PostgresStore.open(store.dsn)
    try:
        await store.apply([adding(ANN, "tea", at=minutes(0))])
        assert [hit.text for hit in await other.search_text(ANN, "tea")] == ["tea"]
        await store.apply([adding(ANN, "tea again", at=minutes(50))])
        assert len(await other.search_text(ANN, "tea")) == 2
        # A late message joins two sessions: what the other keeps in memory is read again.
        await store.apply([adding(ANN, "between", at=minutes(25))])
        columns = (await other.match_text(ANN, "tea")).columns
        assert len(set(columns.session.tolist())) == 1
        await other.apply([PutSetting(ANN, "memory_enabled", False)])
        assert [setting.value for setting in await store.settings(ANN)] == [False]
        await other.purge(ANN)
        await add(store, ANN, "here again")
        assert [hit.text for hit in await other.search_text(ANN, "again tea")] == ["here again"]
    finally:
        await other.close()


@pytest.mark.req("C9", "D12")
async def test_many_writers_of_several_servers_keep_everything_in_order(store: PostgresStore) -> None:
    others = [await PostgresStore.open(store.dsn) for _ in range(2)]
    scopes = [Scope.of(f"user{number % 5}", space=f"space{number % 3}") for number in range(15)]
    try:
        servers = [store, *others]
        for round_ in range(4):
            await asyncio.gather(
                *[
                    servers[number % 3].apply([adding(scope, f"message {round_} {number}")])
                    for number, scope in enumerate(scopes)
                ]
            )
    finally:
        for other in others:
            await other.close()
    for space in ("space0", "space1", "space2"):
        said = await store.said_between(space, 0, 2**62)
        assert [message.seq for message in said] == list(range(1, 21)), "no gap, no number twice"
    assert (await store.verify()).ok


@pytest.mark.req("D12")
async def test_what_callers_hand_in_together_is_stored_in_one_transaction(store: PostgresStore) -> None:
    async def transactions() -> int:
        with psycopg.connect(store.dsn, autocommit=True) as connection:
            connection.execute("SELECT set_config('recollect.reach', 'all', false)")
            row = connection.execute("SELECT sum(batch) FROM writer").fetchone()
            return int(row[0] or 0) if row else 0

    await store.apply([adding(ANN, "first")])
    before = await transactions()
    await asyncio.gather(*[store.apply([adding(ANN, f"message {number}")]) for number in range(200)])
    assert await transactions() - before <= 3
    assert (await store.ledger(ANN)).messages == 201


async def test_names_of_any_length_are_stored_or_refused_clearly(store: PostgresStore) -> None:
    long = "😀" * 255
    scope = Scope.of(long, space=long, thread="#" + long[1:], session="@" + long[1:])
    await store.apply([adding(scope, "hello", id="=" + long[1:], author="+" + long[1:])])
    assert [message.text for message in await store.messages(scope, within="session")] == ["hello"]
    import random  # noqa: PLC0415

    def noise(seed: int) -> str:
        source = random.Random(seed)
        return "".join(chr(source.randrange(0x10000, 0x2FFFF)) for _ in range(255))

    with pytest.raises(TooLarge):
        await store.apply([PutSetting(Scope.of(noise(1), space=noise(2)), noise(3), 1)])
    assert (await store.verify()).ok


async def test_an_address_that_leads_nowhere_is_told_without_its_password() -> None:
    with pytest.raises(StoreUnavailable) as told:
        await open_store("postgresql://me:secret@127.0.0.1:1/none")
    assert "127.0.0.1" in str(told.value)
    assert "secret" not in str(told.value)
    server = shared_server()
    with pytest.raises(StoreUnavailable):
        await open_store(server.dsn("there_is_no_such_database"))


@pytest.mark.req("C7")
async def test_the_front_door_opens_it_and_files_take_over_while_it_is_away(tmp_path: Any) -> None:  # noqa: ANN401
    shared_server()
    server = Server()
    settings = {"fallback": f"files:{tmp_path / 'waiting'}", "background": False}
    try:
        async with recollect.connect(server.create("first_choice"), settings=settings) as memory:
            ann = memory.user("ann")
            assert (await ann.add("user", "before")).durable
            memory._store._store._database._patience = 0.2  # type: ignore[attr-defined]
            server.kill()
            assert (await ann.add("user", "meanwhile")).message.text == "meanwhile"
            assert (await memory.health()).component("store").status == "failing"
            await asyncio.to_thread(server.start)
            while [message.text for message in await ann.history()] != ["before", "meanwhile", "after"]:
                await ann.add("user", "after", id="after")
                await asyncio.sleep(0.2)
            health = await memory.health()
            assert health.component("store").status == "active"
    finally:
        server.remove()


async def test_a_backup_is_left_to_the_databases_own_tools(store: PostgresStore, tmp_path: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidInput, match="pg_dump"):
        await store.backup(tmp_path / "copy")


def test_without_its_packages_it_says_what_to_install() -> None:
    program = (
        "import asyncio, sys\n"
        "sys.modules['psycopg'] = None\n"
        "from recollect.store import open_store\n"
        "asyncio.run(open_store('postgresql://localhost/x'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "pip install 'recollect[postgres]'" in done.stderr


async def test_steps_of_the_schema_run_once_and_a_later_one_does_not_lock_older_processes_out() -> None:
    dsn = clean_database()
    first, second = await asyncio.gather(PostgresStore.open(dsn), PostgresStore.open(dsn))
    newest = migrations()[-1].number
    with psycopg.connect(dsn, autocommit=True) as connection:
        (count,) = connection.execute("SELECT count(*) FROM recollect_schema").fetchone() or (0,)
        assert count == newest
        connection.execute("INSERT INTO recollect_schema VALUES (%s, 'later', 0)", (newest + 1,))
        try:
            third = await PostgresStore.open(dsn)
            await third.apply([adding(ANN, "hello")])
            await third.close()
            connection.execute("UPDATE recollect_schema SET needs = %s WHERE step = %s", (newest + 1, newest + 1))
            with pytest.raises(StoreTooNew):
                await PostgresStore.open(dsn)
        finally:
            connection.execute("DELETE FROM recollect_schema WHERE step > %s", (newest,))
    await first.close()
    await second.close()


def test_steps_are_split_at_the_ends_of_statements() -> None:
    assert len(statements("SELECT 1;\nDO $$\nx;\n$$;\n-- a note\nSELECT 2; -- two\n")) == 3


async def test_a_closed_store_says_so(store: PostgresStore) -> None:
    await store.close()
    await store.close()
    with pytest.raises(StoreClosed):
        await store.users()
    assert (await store.health()).status == "failing"


@pytest.mark.req("D11")
def test_a_breaker_lets_one_call_through_in_a_while_until_the_database_answers() -> None:
    clock = [0.0]
    breaker = Breaker("it", 2.0, lambda: clock[0])
    assert not breaker.admit()
    breaker.failed(StoreUnavailable("gone"))
    states = [breaker.state]
    with pytest.raises(StoreUnavailable, match="gone"):
        breaker.admit()
    clock[0] = 2.5
    states.append(breaker.state)
    assert states == ["open", "half-open"]
    assert breaker.admit(), "the first call after a while is a probe"
    with pytest.raises(StoreUnavailable):
        breaker.admit()
    breaker.answered()
    assert [breaker.state, breaker.error] == ["closed", None]


@pytest.mark.req("D11")
async def test_a_database_that_restarts_is_waited_for_and_one_that_stays_away_is_left_alone() -> None:
    shared_server()  # leaves the test out where no server can be had
    server = Server()
    store = await PostgresStore.open(server.create("restarting"), Options(patience=60))
    hasty = await PostgresStore.open(server.dsn("restarting"), Options(patience=0.2))
    try:
        await store.apply([adding(ANN, "before")])
        server.kill()
        with pytest.raises(StoreUnavailable):
            await hasty.messages(ANN)
        failing = await hasty.health()
        assert (failing.status, dict(failing.facts)["breaker"]) == ("failing", "open")
        with pytest.raises(StoreUnavailable, match="left alone"):
            await hasty.messages(ANN)
        # Nobody hears of it who can wait: neither who writes nor who reads.
        waiting = asyncio.gather(store.apply([adding(ANN, "meanwhile")]), store.messages(ANN))
        await asyncio.to_thread(server.start)
        receipt, _ = await waiting
        assert receipt.durable
        assert [message.text for message in await store.messages(ANN)] == ["before", "meanwhile"]
        while (await hasty.health()).status == "failing":
            await asyncio.gather(hasty.messages(ANN), return_exceptions=True)
            await asyncio.sleep(0.05)
        assert (await store.verify()).ok
    finally:
        await store.close()
        await hasty.close()
        server.remove()


async def test_a_commit_whose_answer_was_lost_is_not_made_twice(store: PostgresStore) -> None:
    from recollect.store.postgres import queries  # noqa: PLC0415

    finish = queries.Queries.finish
    lost: list[bool] = []

    async def losing(self: queries.Queries, *, keep: bool) -> None:
        await finish(self, keep=keep)
        if keep and not lost and not self._connection.closed and writing:
            lost.append(True)
            await self._connection.close()
            raise psycopg.OperationalError("the connection was lost")

    writing = True
    queries.Queries.finish = losing  # type: ignore[method-assign]
    try:
        receipt = await store.apply([adding(ANN, "once")])
    finally:
        queries.Queries.finish = finish  # type: ignore[method-assign]
    assert lost
    assert receipt.message.text == "once"
    assert [message.seq for message in await store.messages(ANN)] == [1]
    assert (await store.verify()).ok
