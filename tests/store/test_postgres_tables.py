"""What others see in the database: documented views, walls between spaces, keys that can be distributed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import numpy as np
import psycopg
import pytest
from typer.testing import CliRunner

from aforesaid.cli import app
from aforesaid.domain.hit import VectorRow
from aforesaid.domain.memory import MemoryDraft
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import SummaryDraft
from aforesaid.store.memories import AddMemory, PutFacts
from aforesaid.store.messages import Messages
from aforesaid.store.people import PutSetting
from aforesaid.store.postgres import PostgresStore, database
from aforesaid.store.searches import AddVectors
from aforesaid.store.summaries import Archive
from making import NOON, add, adding, archive
from pg import clean_database, shared_server
from store.message_types import TYPES, messages_of_all_types

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
    first = await archive(store, ANN, await store.read(Messages(ANN)), "You asked about weather.")
    below = await archive(store, ANN, await add(store, ANN, "Funeral at church on Monday at 9am"), "A funeral.")
    await store.apply([Archive(SummaryDraft(ANN, "Weather and a funeral.", summaries=(first.id, below.id)))])
    await store.apply([PutSetting(ANN, "summary_every_n", 15), PutSetting(ANN, "memory_enabled", True)])
    await store.apply([PutFacts(GUILD, "Old.", "x"), PutFacts(GUILD, "gruzilkin is Sergey.", "remember that")])
    await store.apply([adding(GUILD, "I like pizza", id="5001", at=NOON)])
    await store.apply([adding(GUILD, "Noted!", "assistant", at=NOON, author="bot")])
    await store.apply([AddMemory(MemoryDraft(ANN, "schedule", "Funeral on Monday", importance=9, sources=(3,)))])
    value = np.array([1, 0], dtype=np.float16).tobytes()
    rows = tuple(VectorRow(each.seq, each.text, value, each.space) for each in await store.read(Messages(ANN)))
    await store.apply([AddVectors("m", rows, rows[-1].seq)])
    return store


def ask(dsn: str, query: str, space: str | None = "default") -> list[dict[str, Any]]:
    """Ask like anybody with a tool for PostgreSQL."""
    with psycopg.connect(dsn, row_factory=psycopg.rows.dict_row) as connection:
        if space is not None:
            connection.execute("SELECT set_config('aforesaid.space', %s, false)", (space,))
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


@pytest.mark.defect("B12")
@pytest.mark.req("D5")
async def test_messages_have_the_type_that_they_were_sent_as(filled: PostgresStore) -> None:
    await filled.apply(messages_of_all_types(Scope.of("zoe")))
    query = "SELECT message, message_type FROM conversation_history WHERE user_name = 'zoe' ORDER BY id"
    assert [(row["message"], row["message_type"]) for row in ask(filled.dsn, query)] == [
        (text, type_) for _, text, _, type_ in TYPES
    ]


@pytest.mark.req("B3")
async def test_facts_and_chat_history_are_read_by_space_user_and_time_through_an_index(filled: PostgresStore) -> None:
    (facts,) = ask(filled.dsn, "SELECT * FROM user_facts", "900")
    assert (facts["guild_id"], facts["user_id"], facts["memory_blob"]) == ("900", "42", "gruzilkin is Sergey.")
    said = ask(filled.dsn, "SELECT * FROM chat_history ORDER BY message_id", "900")
    assert [(row["message_id"], row["user_id"], row["channel_id"]) for row in said] == [
        ("#2", "bot", "777"),
        ("5001", "42", "777"),
    ]
    # Among a few rows every index is as good as another.
    await filled.apply([adding(Scope.of("43", space="900"), f"message {number}") for number in range(300)])
    with psycopg.connect(filled.dsn) as connection:
        connection.execute("ANALYZE log")
        # So few rows are read faster than looked up: what is asked is whether an index could answer.
        connection.execute("SET enable_seqscan = off")
        connection.execute("SET aforesaid.space = '900'")
        plan = connection.execute(
            "EXPLAIN SELECT * FROM chat_history WHERE guild_id = '900' AND user_id = '42' "
            'AND "timestamp" >= \'2026-01-01\' ORDER BY "timestamp"'
        ).fetchall()
    shown = "\n".join(row[0] for row in plan)
    assert "log_by_author" in shown
    assert "author = '42'" in next(line for line in shown.splitlines() if "Index Cond" in line and "author" in line)
    assert "said_at" in shown.replace("'1970-01-01", "said_at"), "the time is part of what the index answers"


@pytest.mark.defect("Q10")
@pytest.mark.req("B3", "D5")
async def test_guilds_and_people_have_the_names_of_the_documents(store: PostgresStore) -> None:
    guild = Scope.of("42", space="discord:900", thread="777")
    await store.apply([PutFacts(guild, "Likes pizza.", "x"), adding(guild, "I like pizza", at=NOON)])
    for user in ("name-Ann@127.0.0.1:46393", "name-a@b@localhost:1", "name-less"):
        await store.apply([adding(Scope.of(user, space="mumble"), "hello", at=NOON)])
        await store.apply([AddMemory(MemoryDraft(Scope.of(user, space="mumble"), "fact", "Says hello"))])
    assert ask(store.dsn, "SELECT guild_id FROM user_facts", "discord:900") == [{"guild_id": "900"}]
    assert ask(store.dsn, "SELECT 1 FROM chat_history WHERE guild_id = '900'", "discord:900") != []
    for view in ("conversation_sessions", "conversation_history", "persistent_memories", "active_memories"):
        found = ask(store.dsn, f"SELECT user_name FROM {view} WHERE space = 'mumble' ORDER BY id", "mumble")
        assert [row["user_name"] for row in found] == ["Ann", "a@b", "name-less"], view


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
        connection.execute("SET aforesaid.space = '900'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
            connection.execute("INSERT INTO facts VALUES ('default', 'x', 1, 'x', 'x', 1)")


@pytest.mark.req("D12")
async def test_every_key_begins_with_the_space_and_nothing_is_numbered_across_spaces(store: PostgresStore) -> None:
    keys = ask(
        store.dsn,
        """
        SELECT i.indrelid::regclass::text AS "table", a.attname AS first FROM pg_index i
          JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
         WHERE (i.indisunique OR i.indisprimary) AND i.indrelid::regclass::text != 'aforesaid_schema'
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
    ours = {row["relname"] for row in tables if not row["relname"].startswith(("procrastinate", "aforesaid_schema"))}
    assert ours == set(database.TABLES)
    ran = CliRunner().invoke(app, ["migrate", "--citus", "--dry-run", store.dsn])
    assert ran.exit_code == 0
    assert ran.output.splitlines() == database.citus_statements()


CITUS_STAND_IN = """
CREATE TABLE recorded (number serial, relation regclass, columns text, beside text);
CREATE FUNCTION create_distributed_table(
    relation regclass, distribution_column text, colocate_with text DEFAULT 'default')
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = relation AND attname = distribution_column) THEN
        RAISE EXCEPTION 'column % of % does not exist', distribution_column, relation;
    END IF;
    IF relation = 'metadata'::regclass AND EXISTS (SELECT 1 FROM pg_class WHERE relname = 'breaks_at_the_end') THEN
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
    assert f"distributed {len(database.TABLES)} tables by space" in output
    assert recorded() == [(table, "space", "default" if table == "space" else "space") for table in database.TABLES]
    await opened.apply([adding(ANN, "hello")])
    await opened.close()
    await ran_and_said("holds messages already")
