"""The postmaster dies by SIGKILL under load, again and again: nothing that was acknowledged is lost or doubled."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from aforesaid.domain.scope import Scope
from aforesaid.store.messages import MessagesBetween
from aforesaid.store.postgres import Options, PostgresStore
from making import adding
from pg import Server, shared_server
from torture.support import Size

SPACES = 3
WRITERS = 8


@pytest.mark.timeout(1_800)
@pytest.mark.req("D11", "C9")
async def test_nothing_is_lost_or_doubled_when_the_database_dies_under_load(size: Size) -> None:
    shared_server()  # leaves the test out where no server can be had
    rounds = round(50 * size.scale) if size.full else 2
    server = Server(durable=True)
    store = await PostgresStore.open(server.create("dying"), Options(patience=120))
    acknowledged: list[tuple[str, int, str]] = []
    going_on = True

    async def write(writer: int) -> None:
        scope = Scope.of(f"user{writer}", space=f"space{writer % SPACES}")
        number = 0
        while going_on:
            text = f"writer {writer} message {number}"
            message = (await store.apply([adding(scope, text)])).message
            acknowledged.append((scope.space, message.seq, text))
            number += 1

    writers = [asyncio.create_task(write(writer)) for writer in range(WRITERS)]
    try:
        for _ in range(rounds):
            enough = len(acknowledged) + 100
            while len(acknowledged) < enough:
                assert not [task for task in writers if task.done()], "a writer heard of it"
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
        going_on = False
        await asyncio.gather(*writers)
        assert (await store.verify()).ok
        for space in (f"space{number}" for number in range(SPACES)):
            stored = [
                (space, message.seq, message.text) for message in await store.read(MessagesBetween(space, 0, 2**62))
            ]
            assert sorted(each for each in acknowledged if each[0] == space) == stored
            assert [seq for _, seq, _ in stored] == list(range(1, len(stored) + 1)), "in order, without a gap"
            assert max(Counter(text for _, _, text in stored).values()) == 1, "nothing twice"
        assert (await store.health()).status == "active"
        print(f"{rounds} kills, {len(acknowledged):,} acknowledged messages")  # noqa: T201
    finally:
        going_on = False
        for task in writers:
            task.cancel()
        await store.close()
        server.remove()
