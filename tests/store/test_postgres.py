"""What only the PostgreSQL store has: a database that restarts, and that many servers share."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

import aforesaid
from aforesaid.domain.scope import Scope
from aforesaid.errors import (
    InvalidInput,
    StoreClosed,
    StoreError,
    StoreRefused,
    StoreTooNew,
    StoreUnavailable,
    TooLarge,
)
from aforesaid.store import open_store
from aforesaid.store.messages import Messages, MessagesBetween, UserLedger
from aforesaid.store.people import PutSetting, Settings, Totals, Users
from aforesaid.store.postgres import Options, PostgresStore
from aforesaid.store.postgres.connection import Breaker
from aforesaid.store.postgres.database import migrations, statements
from aforesaid.store.searches import MatchText, SearchText
from intercepting import innermost
from making import add, adding, minutes
from pg import Server, clean_database, pgbouncer, shared_server

ANN = Scope.of("123456789")


@pytest.fixture
async def store() -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(clean_database())
    yield opened
    await opened.close()


async def test_a_change_set_over_several_spaces_is_stored_as_a_whole_or_not_at_all(store: PostgresStore) -> None:
    away = Scope.of("ann", space="away")
    with pytest.raises(InvalidInput):
        await store.apply([adding(ANN, "here"), adding(Scope.of("ann", space="away", session="s-99"), "there")])
    assert (await store.read(Totals())).messages == 0
    receipt = await store.apply([adding(ANN, "here"), adding(away, "there"), PutSetting(away, "x", 1)])
    assert [result.message.seq for result in receipt.results[:2]] == [1, 1]  # type: ignore[union-attr]
    assert (await store.verify()).ok


async def test_two_servers_see_what_the_other_does_at_once(store: PostgresStore) -> None:
    other = await PostgresStore.open(store.dsn)
    try:
        await store.apply([adding(ANN, "tea", at=minutes(0))])
        assert [hit.text for hit in await other.read(SearchText(ANN, "tea"))] == ["tea"]
        await store.apply([adding(ANN, "tea again", at=minutes(50))])
        assert len(await other.read(SearchText(ANN, "tea"))) == 2
        # A late message joins two sessions: what the other keeps in memory is read again.
        await store.apply([adding(ANN, "between", at=minutes(25))])
        columns = (await other.read(MatchText(ANN, "tea"))).columns
        assert len(set(columns.session.tolist())) == 1
        await other.apply([PutSetting(ANN, "memory_enabled", False)])
        assert [setting.value for setting in await store.read(Settings(ANN))] == [False]
        await other.purge(ANN)
        await add(store, ANN, "here again")
        assert [hit.text for hit in await other.read(SearchText(ANN, "again tea"))] == ["here again"]
    finally:
        await other.close()


async def test_a_server_that_stops_drops_its_marks_and_those_of_servers_that_died_long_ago() -> None:
    store = await PostgresStore.open(clean_database())
    await store.apply([adding(ANN, "tea")])
    with psycopg.connect(store.dsn, autocommit=True) as connection:
        connection.execute("SET aforesaid.reach = 'all'")
        died = "INSERT INTO writer (space, writer, batch, at) VALUES ('default', %s, 1, now() - %s::interval)"
        connection.execute(died, ("died long ago", "8 days"))
        connection.execute(died, ("may still be there", "6 days"))
        await store.close()
        assert connection.execute("SELECT writer FROM writer").fetchall() == [("may still be there",)]


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
        said = await store.read(MessagesBetween(space, 0, 2**62))
        assert [message.seq for message in said] == list(range(1, 21)), "no gap, no number twice"
    assert (await store.verify()).ok


@pytest.mark.req("D12")
async def test_what_callers_hand_in_together_is_stored_in_one_transaction(store: PostgresStore) -> None:
    async def transactions() -> int:
        with psycopg.connect(store.dsn, autocommit=True) as connection:
            connection.execute("SELECT set_config('aforesaid.reach', 'all', false)")
            row = connection.execute("SELECT count(DISTINCT xmin::text) FROM log").fetchone()
            return int(row[0]) if row else 0

    await store.apply([adding(ANN, "first")])
    before = await transactions()
    await asyncio.gather(*[store.apply([adding(ANN, f"message {number}")]) for number in range(200)])
    assert await transactions() - before <= 3
    assert (await store.read(UserLedger(ANN))).messages == 201


@pytest.mark.defect("W9")
async def test_everything_works_behind_a_pooler_that_gives_each_transaction_another_session() -> None:
    server = shared_server()
    direct = server.create("pooled")
    with pgbouncer(server) as folder:
        dsn = f"postgresql://aforesaid@/pooled?host={folder}&port=6432"
        stores = await asyncio.gather(*[PostgresStore.open(dsn) for _ in range(3)])

        async def chat(number: int) -> None:
            store, scope = stores[number % 3], Scope.of(f"user{number}", space=f"space{number % 2}")
            for turn in range(8):  # psycopg prepares a statement at the sixth time
                await store.apply([adding(scope, f"tea number{turn}")])
                assert len(await store.read(SearchText(scope, "tea"))) == turn + 1

        await asyncio.gather(*[chat(number) for number in range(6)])
        assert (await stores[0].read(Totals())).messages == 48
        assert (await stores[0].verify()).ok
        assert ("prepared statements", "none, behind a pooler") in (await stores[0].health()).facts
        with psycopg.connect(dsn, autocommit=True) as other:
            other.prepare_threshold = None
            shown = [other.execute(f"SHOW {name}").fetchone() for name in ("statement_timeout", "lock_timeout")]
            assert shown == [("0",), ("0",)], "the settings of a transaction stay in it"
            assert other.execute("SELECT FROM pg_locks WHERE locktype = 'advisory'").fetchall() == []
        for store in stores:
            await store.close()
    store = await PostgresStore.open(direct)
    assert "prepared statements" not in dict((await store.health()).facts)
    await store.close()


@pytest.mark.defect("W2")
async def test_a_connection_whose_statements_failed_is_not_used_again(store: PostgresStore) -> None:
    async def try_to_add(times: int) -> set[str]:
        outcomes = set()
        for number in range(times):
            try:
                await add(store, ANN, f"message {number}")
                outcomes.add("stored")
            except StoreError as error:
                outcomes.add(type(error).__name__)
        return outcomes

    await try_to_add(2)  # psycopg counts how often it has seen each statement, and prepares it at the sixth time
    with psycopg.connect(store.dsn, autocommit=True) as owner:
        owner.execute(
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END $$"
        )
        try:
            owner.execute("CREATE TRIGGER no_room BEFORE INSERT ON log EXECUTE FUNCTION no_room()")
            assert await try_to_add(10) == {"StoreFull"}
            health = await store.health()
            assert health.status == "failing"
            assert "No space left on device" in health.issues[0]
        finally:
            owner.execute("DROP FUNCTION no_room CASCADE")
    assert await try_to_add(10) == {"stored"}
    assert (await store.health()).status == "active"


async def test_names_of_any_length_are_stored_or_refused_clearly(store: PostgresStore) -> None:
    long = "😀" * 255
    scope = Scope.of(long, space=long, thread="#" + long[1:], session="@" + long[1:])
    await store.apply([adding(scope, "hello", id="=" + long[1:], author="+" + long[1:])])
    assert [message.text for message in await store.read(Messages(scope, within="session"))] == ["hello"]
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
    with pytest.raises(StoreRefused):
        await open_store(server.dsn("there_is_no_such_database"))


@pytest.mark.req("C7")
async def test_the_front_door_opens_it_and_files_take_over_while_it_is_away(tmp_path: Any) -> None:  # noqa: ANN401
    shared_server()
    server = Server()
    settings = {"fallback": f"files:{tmp_path / 'waiting'}", "background": False}
    try:
        async with aforesaid.connect(server.create("first_choice"), settings=settings) as memory:
            ann = memory.user("ann")
            assert (await ann.add("user", "before")).durable
            innermost(memory.store, PostgresStore)._database._patience = 0.2
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


@pytest.mark.parametrize("missing", [["psycopg"], ["pgvector"], ["pgvector", "psycopg", "procrastinate"]])
def test_without_its_packages_it_says_what_to_install(missing: list[str]) -> None:
    program = (
        "import asyncio, sys\n"
        f"sys.modules.update(dict.fromkeys({missing}))\n"
        "from aforesaid.store import open_store\n"
        "asyncio.run(open_store('postgresql://localhost/x'))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("aforesaid.errors.StoreRefused:")
    assert last.endswith("pip install '.[postgres]'")


async def test_steps_of_the_schema_run_once_and_a_later_one_does_not_lock_older_processes_out() -> None:
    dsn = clean_database()
    first, second = await asyncio.gather(PostgresStore.open(dsn), PostgresStore.open(dsn))
    newest = migrations()[-1].number
    with psycopg.connect(dsn, autocommit=True) as connection:
        (count,) = connection.execute("SELECT count(*) FROM aforesaid_schema").fetchone() or (0,)
        assert count == newest
        connection.execute("INSERT INTO aforesaid_schema VALUES (%s, 'later', 0)", (newest + 1,))
        try:
            third = await PostgresStore.open(dsn)
            await third.apply([adding(ANN, "hello")])
            await third.close()
            connection.execute("UPDATE aforesaid_schema SET needs = %s WHERE step = %s", (newest + 1, newest + 1))
            with pytest.raises(StoreTooNew):
                await PostgresStore.open(dsn)
        finally:
            connection.execute("DELETE FROM aforesaid_schema WHERE step > %s", (newest,))
    await first.close()
    await second.close()


def test_steps_are_split_at_the_ends_of_statements() -> None:
    assert len(statements("SELECT 1;\nDO $$\nx;\n$$;\n-- a note\nSELECT 2; -- two\n")) == 3


async def test_a_closed_store_says_so(store: PostgresStore) -> None:
    await store.close()
    await store.close()
    with pytest.raises(StoreClosed):
        await store.read(Users())
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
            await hasty.read(Messages(ANN))
        failing = await hasty.health()
        assert (failing.status, dict(failing.facts)["breaker"]) == ("failing", "open")
        with pytest.raises(StoreUnavailable, match="left alone"):
            await hasty.read(Messages(ANN))
        # Nobody hears of it who can wait: neither who writes nor who reads.
        waiting = asyncio.gather(store.apply([adding(ANN, "meanwhile")]), store.read(Messages(ANN)))
        await asyncio.to_thread(server.start)
        receipt, _ = await waiting
        assert receipt.durable
        assert [message.text for message in await store.read(Messages(ANN))] == ["before", "meanwhile"]
        while (await hasty.health()).status == "failing":
            await asyncio.gather(hasty.read(Messages(ANN)), return_exceptions=True)
            await asyncio.sleep(0.05)
        assert (await store.verify()).ok
    finally:
        await store.close()
        await hasty.close()
        server.remove()


async def test_a_commit_whose_answer_was_lost_is_not_made_twice(store: PostgresStore) -> None:
    from aforesaid.store.postgres import queries  # noqa: PLC0415

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
    assert [message.seq for message in await store.read(Messages(ANN))] == [1]
    assert (await store.verify()).ok


@pytest.mark.defect("D6")
async def test_calls_that_meet_a_database_that_hangs_give_up_by_themselves() -> None:
    shared_server()  # leaves the test out where no server can be had
    server = Server()
    store = await PostgresStore.open(server.create("hanging"), Options(patience=1.0, statement_seconds=1.0))
    await add(store, ANN, "before")
    with server.hung():
        async with asyncio.timeout(30):  # without a limit of their own, both would wait for ever
            reading = asyncio.create_task(store.read(Messages(ANN)))
            writing = asyncio.create_task(add(store, ANN, "while it hangs"))
            for waiting in (reading, writing):
                with pytest.raises(StoreUnavailable):
                    await waiting
    while (await store.health()).status == "failing":
        await asyncio.gather(add(store, ANN, "afterwards"), return_exceptions=True)
        await asyncio.sleep(0.05)
    texts = [message.text for message in await store.read(Messages(ANN))]
    assert (texts[0], texts[-1]) == ("before", "afterwards")
    await store.close()
    server.remove()
