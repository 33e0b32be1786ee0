"""The tables of the documents, read with Python's own sqlite3: any SQLite tool can do the same."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from aforesaid.domain.checks import moment, now
from aforesaid.domain.memory import MemoryDraft
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import SummaryDraft
from aforesaid.store import open_store
from aforesaid.store.memories import AddMemory, PutFacts
from aforesaid.store.messages import Messages
from aforesaid.store.people import PutSetting
from aforesaid.store.summaries import Archive
from making import NOON, add, adding, archive
from store.message_types import TYPES, messages_of_all_types

ANN = Scope.of(123456789)
GUILD = Scope.of("42", space="900", thread="777")


async def fill(path: Path) -> None:
    """Make a file with a little of everything."""
    store = await open_store(path)
    await store.apply([adding(ANN, "Hello, what's the weather like?", at=NOON)])
    await store.apply(
        [adding(ANN, "I don't have real-time weather data...", "assistant", at=NOON + timedelta(seconds=5))]
    )
    await archive(store, ANN, await store.read(Messages(ANN)), "You asked about weather...")
    below = await archive(store, ANN, await add(store, ANN, "Funeral at church on Monday at 9am"), "A funeral.")
    await store.apply([Archive(SummaryDraft(ANN, "Weather and a funeral.", summaries=(1, below.id)))])
    await add(store, ANN, "Good morning!")
    await store.apply([PutSetting(ANN, "summary_every_n", 15), PutSetting(ANN, "memory_enabled", True)])
    await store.apply([PutFacts(GUILD, "Old.", "x"), PutFacts(GUILD, "gruzilkin is Sergey.", "remember that")])
    await store.apply([adding(GUILD, "I like pizza", id="5001", at=NOON)])
    await store.apply([adding(GUILD, "Noted!", "assistant", at=NOON, author="bot")])
    memory = MemoryDraft(ANN, "schedule", "Funeral on Monday at 9am", importance=9, tags=("church",), sources=(3,))
    await store.apply([AddMemory(memory)])
    await store.close()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    path = tmp_path / "memory.db"
    asyncio.run(fill(path))
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        yield connection


def columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {row["name"] for row in database.execute(f"PRAGMA table_info({table})")}


@pytest.mark.req("A4", "D5")
@pytest.mark.parametrize(
    ("table", "documented"),
    [
        ("users", "user_id storage_type summary_every_n memory_enabled created_at updated_at"),
        ("messages", "id user_id role content created_at is_active chunk_id"),
        ("summaries", "id user_id summary_text created_at level source_chunk_ids is_active"),
        ("user_facts", "guild_id user_id memory_blob updated_at"),
        ("chat_history", "guild_id channel_id message_id user_id message_text timestamp"),
        ("conversation_sessions", "id user_name session_id started_at last_activity state message_count"),
        (
            "conversation_history",
            "id user_name user_session session_id message_type role message embedding importance_score timestamp",
        ),
        ("persistent_memories", "id user_name category content extracted_at session_id importance tags active"),
    ],
)
def test_a_documented_table_has_its_documented_columns(
    database: sqlite3.Connection, table: str, documented: str
) -> None:
    assert set(documented.split()) <= columns(database, table)
    assert database.execute(f"SELECT * FROM {table}").fetchall()


@pytest.mark.req("A4")
def test_messages_and_summaries_mean_what_the_document_says(database: sqlite3.Connection) -> None:
    rows = database.execute("SELECT * FROM messages WHERE user_id = 123456789 ORDER BY id").fetchall()
    assert [(row["id"], row["role"], row["is_active"], row["chunk_id"]) for row in rows] == [
        (1, "user", 0, 1),
        (2, "assistant", 0, 1),
        (3, "user", 0, 2),
        (4, "user", 1, None),
    ]
    assert rows[0]["content"] == "Hello, what's the weather like?"
    assert rows[0]["created_at"] == "2026-03-01 12:00:00.000"
    summaries = database.execute("SELECT * FROM summaries WHERE user_id = '123456789' ORDER BY id").fetchall()
    assert [(row["level"], row["source_chunk_ids"], row["is_active"]) for row in summaries] == [
        (1, "[1]", 0),
        (1, "[2]", 0),
        (2, "[1,2]", 1),
    ]
    user = database.execute("SELECT * FROM users WHERE user_id = '123456789'").fetchone()
    assert (user["storage_type"], user["summary_every_n"], user["memory_enabled"]) == ("sqlite", 15, 1)


@pytest.mark.defect("B12")
@pytest.mark.req("D5")
async def test_messages_have_the_type_that_they_were_sent_as(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(path)
    await store.apply(messages_of_all_types(Scope.of("ann")))
    await store.close()
    with closing(sqlite3.connect(path)) as database:
        found = database.execute("SELECT message, message_type FROM conversation_history ORDER BY id").fetchall()
    assert found == [(text, type_) for _, text, _, type_ in TYPES]


@pytest.mark.req("A4")
def test_write_ahead_logging_is_on(database: sqlite3.Connection) -> None:
    assert database.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


@pytest.mark.req("A4", "D12")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM messages WHERE user_id = '1'",
        "SELECT * FROM messages WHERE user_id = '1' AND is_active = 1",
        "SELECT * FROM messages WHERE chunk_id = 3",
        "SELECT * FROM summaries WHERE user_id = '1'",
        "SELECT * FROM summaries WHERE user_id = '1' AND is_active = 1",
        "SELECT * FROM chat_history WHERE guild_id = '9' AND user_id = '1' AND timestamp > '2026-01-01'",
        "SELECT * FROM conversation_history WHERE user_name = '1'",
        "SELECT * FROM conversation_history WHERE session_id = 's-1'",
        "SELECT * FROM conversation_sessions WHERE user_name = '1'",
        "SELECT * FROM conversation_sessions WHERE session_id = 's-1'",
        "SELECT * FROM active_memories WHERE user_name = '1' ORDER BY importance DESC LIMIT 10",
    ],
)
def test_the_documented_lookups_use_an_index(database: sqlite3.Connection, query: str) -> None:
    plan = [row["detail"] for row in database.execute(f"EXPLAIN QUERY PLAN {query}")]
    assert any(detail.startswith("SEARCH") for detail in plan)
    assert not [detail for detail in plan if detail.startswith("SCAN") and "CONSTANT" not in detail], plan


@pytest.mark.req("B3")
def test_facts_and_chat_history_are_read_by_guild_and_user(database: sqlite3.Connection) -> None:
    facts = database.execute("SELECT * FROM user_facts").fetchall()
    assert [(row["guild_id"], row["user_id"], row["memory_blob"]) for row in facts] == [
        ("900", "42", "gruzilkin is Sergey.")
    ]
    history = database.execute("SELECT * FROM chat_history WHERE guild_id = '900' ORDER BY user_id").fetchall()
    assert [(row["channel_id"], row["message_id"], row["user_id"], row["message_text"]) for row in history] == [
        ("777", "5001", "42", "I like pizza"),
        ("777", "#6", "bot", "Noted!"),
    ]
    everything = database.execute("SELECT count(*) AS n FROM chat_history").fetchone()["n"]
    assert everything == database.execute("SELECT count(*) AS n FROM messages").fetchone()["n"]


@pytest.mark.req("D4", "D5")
async def test_sessions_and_memories_are_read_like_in_the_document(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(path)
    long_ago = moment(now()) - timedelta(minutes=31)
    quiet = moment(now()) - timedelta(minutes=15)
    await store.apply([adding(Scope.of("old"), "hello", at=long_ago)])
    await store.apply([adding(Scope.of("quiet"), "hello", at=quiet)])
    (said,) = await add(store, Scope.of("here"), "I prefer tea")
    await store.apply([AddMemory(MemoryDraft(Scope.of("here"), "preference", "Prefers tea", sources=(said.seq,)))])
    await store.close()
    with closing(sqlite3.connect(path)) as database:
        states = database.execute("SELECT user_name, state, message_count FROM conversation_sessions ORDER BY id")
        assert states.fetchall() == [("old", "closed", 1), ("quiet", "idle", 1), ("here", "active", 1)]
        memories = database.execute(
            "SELECT user_name, category, session_id, importance, tags, active FROM active_memories"
        )
        assert memories.fetchall() == [("here", "preference", "s-3", 5, "[]", 1)]


@pytest.mark.defect("Q10")
@pytest.mark.req("B3", "D5")
async def test_guilds_and_people_have_the_names_of_the_documents(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await open_store(path)
    guild = Scope.of("42", space="discord:900", thread="777")
    await store.apply([PutFacts(guild, "Likes pizza.", "x"), adding(guild, "I like pizza", at=NOON)])
    for user in ("name-Ann@127.0.0.1:46393", "name-a@b@localhost:1", "name-less"):
        await store.apply([adding(Scope.of(user, space="mumble"), "hello", at=NOON)])
        await store.apply([AddMemory(MemoryDraft(Scope.of(user, space="mumble"), "fact", "Says hello"))])
    await store.close()
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT guild_id FROM user_facts").fetchall() == [("900",)]
        assert database.execute("SELECT message_text FROM chat_history WHERE guild_id = '900'").fetchone() is not None
        for view in ("conversation_sessions", "conversation_history", "persistent_memories", "active_memories"):
            found = database.execute(f"SELECT user_name FROM {view} WHERE space = 'mumble' ORDER BY id").fetchall()
            assert found == [("Ann",), ("a@b",), ("name-less",)], view
