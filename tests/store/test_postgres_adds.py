"""One message on PostgreSQL: what it takes to store it, and what is right however many others write at that moment."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from aforesaid.domain.receipt import Repeated
from aforesaid.domain.scope import Scope
from aforesaid.store.messages import Messages, MessagesBetween, Sessions
from aforesaid.store.postgres import PostgresStore
from aforesaid.store.postgres.connection import Connection
from aforesaid.store.postgres.queries import Row, Statement
from making import NOON, add, adding
from pg import clean_database, shared_server

ANN = Scope.of("123456789")
GUILD = Scope.of("42", space="900", thread="777")


@pytest.fixture
async def store() -> AsyncIterator[PostgresStore]:
    opened = await PostgresStore.open(clean_database())
    yield opened
    await opened.close()


@pytest.fixture
async def other(store: PostgresStore) -> AsyncIterator[PostgresStore]:
    """Another process with the same database."""
    opened = await PostgresStore.open(store.dsn)
    yield opened
    await opened.close()


class Wire:
    """Passes on what a client and a server say to each other, and counts the client's messages by their kind."""

    def __init__(self, server: Path) -> None:
        self.sent: Counter[bytes] = Counter()
        self._server = str(server)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Be a server for one client."""
        answers, questions = await asyncio.open_unix_connection(self._server)
        back = asyncio.create_task(self._answer(answers, writer))
        try:
            questions.write(await self._read(reader, await reader.readexactly(4)))  # the first message has no kind
            while kind := await reader.read(1):
                self.sent[kind] += 1
                questions.write(kind + await self._read(reader, await reader.readexactly(4)))
        finally:
            questions.close()
            await back

    async def _read(self, reader: asyncio.StreamReader, length: bytes) -> bytes:
        return length + await reader.readexactly(int.from_bytes(length, "big") - 4)

    async def _answer(self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while some := await answers.read(65_536):
            writer.write(some)
        writer.close()

    def taken(self) -> tuple[int, int]:
        """Return the statements and the round trips since it was last asked."""
        sent, self.sent = self.sent, Counter()
        return sent[b"E"] + sent[b"Q"], sent[b"S"] + sent[b"H"] + sent[b"Q"]


@asynccontextmanager
async def counted(folder: Path) -> AsyncIterator[tuple[PostgresStore, Wire]]:
    """Open a store whose connections are counted."""
    server = shared_server()
    server.create("counted")
    wire = Wire(server.data / ".s.PGSQL.5432")
    listening = await asyncio.start_unix_server(wire.serve, folder / ".s.PGSQL.5432")
    store = await PostgresStore.open(f"postgresql://aforesaid@/counted?host={folder}")
    try:
        yield store, wire
    finally:
        await store.close()
        listening.close()


@pytest.mark.defect("X3")
async def test_a_message_is_stored_in_one_round_trip_of_two_statements(tmp_path: Path) -> None:
    async with counted(tmp_path) as (store, wire):
        await store.apply([adding(ANN, "hello")])
        await store.apply([adding(GUILD, "hello", id="1")])
        wire.taken()
        for turn in range(8):  # a statement is prepared at the sixth time
            for change in (
                adding(ANN, "again"),
                adding(ANN, "Hello, Ann!", "assistant"),
                adding(ANN, "with an id", id=f"ann {turn}"),
                adding(GUILD, "with details", id=f"guild {turn}", metadata={"mood": "sunny"}),
                adding(GUILD, "by somebody new", author=f"author {turn}"),
            ):
                await store.apply([change])
                assert wire.taken() == (2, 1)
        assert len(await store.read(Messages(ANN))) == 25
        assert (await store.verify()).ok


@pytest.mark.defect("X3")
async def test_what_others_store_in_the_same_session_costs_nothing(tmp_path: Path) -> None:
    async with counted(tmp_path) as (store, wire):
        await add(store, ANN, "hello")
        other = await PostgresStore.open(shared_server().dsn("counted"))
        await add(other, ANN, "from elsewhere", "and again")
        await add(other, Scope.of("ben"), "somebody else")
        wire.taken()
        (message,) = await add(store, ANN, "from here")
        assert (message.seq, wire.taken()) == (5, (2, 1))
        await other.close()
        assert (await store.verify()).ok


async def test_who_writes_to_one_thread_at_the_same_time_is_stored_in_one_order(
    store: PostgresStore, other: PostgresStore
) -> None:
    third = await PostgresStore.open(store.dsn)

    async def write(to: PostgresStore, name: str) -> list[int]:
        return [message.seq for number in range(25) for message in await add(to, ANN, f"{name} {number}")]

    try:
        given = await asyncio.gather(write(store, "one"), write(other, "two"), write(third, "three"))
    finally:
        await third.close()
    assert all(numbers == sorted(numbers) for numbers in given)
    assert sorted(number for numbers in given for number in numbers) == list(range(1, 76))
    stored = await store.read(MessagesBetween(ANN.space, 0, 2**62))
    assert sorted(message.seq for message in stored) == list(range(1, 76))
    assert {message.session for message in stored} == {"s-1"}
    assert (await store.verify()).ok


async def test_a_session_that_changed_elsewhere_is_noticed(store: PostgresStore, other: PostgresStore) -> None:
    await store.apply([adding(ANN, "noon", at=NOON)])
    await store.apply([adding(ANN, "a minute later", at=NOON + timedelta(minutes=1))])
    await other.apply([adding(ANN, "next day", at=NOON + timedelta(days=1))])
    # As far as the first store knows, the first session is the newest.
    await store.apply([adding(ANN, "two minutes later", at=NOON + timedelta(minutes=2))])
    await store.apply([adding(ANN, "next day, too", at=NOON + timedelta(days=1, minutes=1))])
    sessions = await store.read(Sessions(ANN))
    assert [(session.id, session.messages) for session in sessions] == [("s-1", 3), ("s-3", 2)]
    # The newest session of all is erased.
    await other.erase(ANN, (3, 5))
    await store.apply([adding(ANN, "next day again", at=NOON + timedelta(days=1, minutes=2))])
    assert [session.id for session in await store.read(Sessions(ANN))] == ["s-1", "s-6"]
    assert (await store.verify()).ok


async def test_what_was_delivered_elsewhere_is_not_stored_again(store: PostgresStore, other: PostgresStore) -> None:
    await store.apply([adding(ANN, "noon", at=NOON)])
    soon = NOON + timedelta(minutes=1)
    for change in (adding(ANN, "once", id="7", at=NOON + timedelta(seconds=1)), adding(ANN, "at a time", at=soon)):
        (first,) = (await other.apply([change])).results
        (second,) = (await store.apply([change])).results
        assert isinstance(second, Repeated)
        assert second.message == first.message  # type: ignore[union-attr]
    await store.apply([adding(ANN, "something else at the same time", at=soon)])
    assert [message.seq for message in await store.read(Messages(ANN))] == [1, 2, 3, 4]
    assert (await store.verify()).ok


async def test_a_message_whose_answer_was_lost_is_stored_once(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, ANN, "before")
    together = Connection.together
    lost: list[int] = []

    async def losing(self: Connection, statements: Sequence[Statement]) -> list[list[Row]]:
        answers = await together(self, statements)
        if not lost:
            lost.append(len(statements))
            await add(other, ANN, "meanwhile")
            await self.close()
            raise psycopg.OperationalError("the connection was lost")
        return answers

    monkeypatch.setattr(Connection, "together", losing)
    (message,) = await add(store, ANN, "once")
    assert lost == [2]
    assert (message.seq, message.text) == (2, "once")
    texts = [(message.seq, message.text) for message in await store.read(Messages(ANN))]
    assert texts == [(1, "before"), (2, "once"), (3, "meanwhile")]
    assert (await store.verify()).ok


async def test_a_message_that_never_arrived_is_stored_once_also_when_it_arrives_later(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(store, ANN, "before")
    together = Connection.together
    late: list[Sequence[Statement]] = []

    async def losing(self: Connection, statements: Sequence[Statement]) -> list[list[Row]]:
        if not late:
            late.append(statements)
            await self.close()
            raise psycopg.OperationalError("the connection was lost")
        return await together(self, statements)

    monkeypatch.setattr(Connection, "together", losing)
    (message,) = await add(store, ANN, "once")
    assert (message.seq, len(late[0])) == (2, 2)
    async with store._database.pool.connection() as connection:
        assert await connection.together(late[0]) == [[()], []]
    assert [message.text for message in await store.read(Messages(ANN))] == ["before", "once"]
    assert (await store.verify()).ok


async def test_statements_of_one_round_trip_are_one_transaction(store: PostgresStore) -> None:
    async with store._database.pool.connection() as connection:
        with pytest.raises(psycopg.errors.DivisionByZero):
            await connection.together([("CREATE TABLE half (id integer)", ()), ("SELECT 1 / $1::integer", (0,))])
        assert await connection.together([("SELECT to_regclass('half') IS NULL", ())]) == [[(True,)]]


async def test_statements_are_prepared_and_those_that_were_not_used_for_long_are_dropped(store: PostgresStore) -> None:
    asked = [(f"SELECT $1::text, $2::bigint + {place}", ("tea", 7)) for place in range(150)]
    async with store._database.pool.connection() as connection:
        for turn in range(14):
            some = asked if turn % 2 else asked[:20]
            assert await connection.together(some) == [[("tea", 7 + place)] for place in range(len(some))]
        (((prepared,),),) = await connection.together([("SELECT count(*) FROM pg_prepared_statements", ())])
        assert 20 <= prepared <= 100


async def test_an_answer_that_nobody_waits_for_is_not_taken_for_that_of_another(store: PostgresStore) -> None:
    query = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%%pg_sleep(60)%%' AND pid != pg_backend_pid()"
    with psycopg.connect(store.dsn, autocommit=True) as asking:
        async with store._database.pool.connection() as connection:
            waiting = asyncio.create_task(connection.together([("SELECT 'late', pg_sleep(60)", ())]))
            # A server forgets what it is asked to cancel before it has begun.
            while asking.execute(query + " AND state = 'active'").fetchone() == (0,):
                await asyncio.sleep(0.01)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert connection.closed
        # A busy server takes a while to see that nobody waits any more.
        until = time.monotonic() + 30
        while asking.execute(query + " AND state = 'active'").fetchone() != (0,):
            assert time.monotonic() < until, "the database goes on"
            await asyncio.sleep(0.05)
