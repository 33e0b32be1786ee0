"""Several servers and workers on one database, and workers that die by SIGKILL: everything is done once, in order."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import httpx2
import psycopg
import pytest

import aforesaid
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.store.memories import Memories, UnextractedUsers
from aforesaid.store.messages import Messages, MessagesBetween, UserLedger
from aforesaid.store.postgres import PostgresStore
from aforesaid.store.summaries import CoveredMessages, Summaries
from pg import Server, shared_server
from torture.support import Figures, Size

pytestmark = pytest.mark.skipif(
    "not config.getoption('--torture')",
    reason="a drill of a minute with six processes",
)
SPACES = 2
TREE_TURNS = 10
"""Turns of a user that make a summary (the profile `default`)."""
COMMAND = str(Path(sys.executable).with_name("aforesaid"))
LEFT_BEHIND = "SELECT count(*) FROM procrastinate_jobs WHERE status = 'doing'"
"""Once nothing is due, only a dead worker's jobs stay so, until its heart has not been heard for long enough."""
UNFINISHED = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('doing', 'failed', 'aborted')"


def scope(user: int) -> Scope:
    return Scope.of(f"user{user}", space=f"space{user % SPACES}")


def said(user: int, turn: int) -> str:
    return f"I like dish{turn} of town{user}."


class Crew:
    """Processes that are started, killed and replaced."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self._dsn = dsn
        self._folder = folder
        self._environment = {**os.environ, "AFORESAID_BACKGROUND": "false", "XDG_DATA_HOME": str(folder)}
        self.workers: list[subprocess.Popen[bytes]] = []

    def hire(self) -> None:
        """Start another worker."""
        with (self._folder / f"worker-{len(list(self._folder.glob('worker-*')))}").open("wb") as log:
            self.workers.append(self._start(log.fileno(), "worker", "--concurrency", "3"))

    def kill_one(self, chance: Random) -> None:
        """End a worker without a warning, and start another."""
        victim = self.workers.pop(chance.randrange(len(self.workers)))
        assert victim.poll() is None, "it had ended by itself"
        victim.kill()
        victim.wait(60)
        self.hire()

    def dismiss(self) -> list[int]:
        """Let all workers finish what they began, and return how they ended."""
        for worker in self.workers:
            worker.send_signal(signal.SIGTERM)
        return [worker.wait(60) for worker in self.workers]

    @contextmanager
    def server(self) -> Iterator[str]:
        """Serve, and give the address."""
        process = self._start(subprocess.PIPE, "serve", "--port", "0", "--no-auth")
        try:
            assert process.stdout is not None
            link = re.search(rb"http://[^/\s]+", process.stdout.readline())
            assert link is not None
            yield link[0].decode()
        finally:
            process.kill()
            process.communicate()

    def end(self) -> None:
        """Leave nobody behind."""
        for worker in self.workers:
            worker.kill()
            worker.wait(60)

    def _start(self, output: int, command: str, *options: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [COMMAND, command, "--store", self._dsn, "--profile", "default", *options],
            stdout=output,
            stderr=subprocess.STDOUT if output != subprocess.PIPE else None,
            env=self._environment,
        )


async def talk(address: str, user: int, turns: int, acknowledged: list[tuple[str, int, str]]) -> None:
    """Say something, be answered, and so on, over HTTP."""
    here = scope(user)
    async with httpx2.AsyncClient(base_url=address, timeout=60) as client:
        for turn in range(turns):
            for role, text in (("user", said(user, turn)), ("assistant", f"Noted {turn}.")):
                body = {"user": here.user, "role": role, "text": text}
                answer = await client.post("/api/messages", params={"space": here.space}, json=body)
                assert answer.status_code == 201, answer.text
                assert answer.json()["durable"]
                acknowledged.append((here.space, answer.json()["message"]["seq"], text))


async def kill_now_and_then(crew: Crew, chance: Random, kills: int, figures: Figures) -> None:
    for _ in range(kills):
        await asyncio.sleep(chance.uniform(1.0, 5.0))
        await asyncio.to_thread(crew.kill_one, chance)
        figures.add("kills")


async def until_all_is_done(dsn: str, users: int) -> None:
    """Wait until nothing is due, and no job waits for a worker that is dead."""
    store = await PostgresStore.open(dsn)
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        while True:
            waiting = [(await store.read(UserLedger(scope(user)))).open_turns >= TREE_TURNS for user in range(users)]
            left = await (await connection.execute(LEFT_BEHIND)).fetchone()
            if not any(waiting) and not await store.read(UnextractedUsers(1)) and left == (0,):
                break
            await asyncio.sleep(0.3)
    await store.close()


async def learned_by_one(users: int, turns: int) -> dict[int, Counter[str]]:
    """Return what one process alone learns from the same messages."""
    found = {}
    async with aforesaid.connect(":memory:", profile="default", settings={"background": False}) as memory:
        for user in range(users):
            person = memory.user(scope(user).user, space=scope(user).space)
            for turn in range(turns):
                await person.add("user", said(user, turn))
                await person.add("assistant", f"Noted {turn}.")
        await memory.upkeep()
        for user in range(users):
            person = memory.user(scope(user).user, space=scope(user).space)
            found[user] = Counter(each.text for each in await person.memories(active=None))
    return found


async def check_order(store: PostgresStore, acknowledged: list[tuple[str, int, str]]) -> None:
    for space in (f"space{number}" for number in range(SPACES)):
        stored = sorted(
            (space, message.seq, message.text) for message in await store.read(MessagesBetween(space, 0, 2**62))
        )
        assert stored == sorted(each for each in acknowledged if each[0] == space)
        assert [seq for _, seq, _ in stored] == list(range(1, len(stored) + 1)), "in order, without a gap"


async def check_summaries(store: PostgresStore, user: int, figures: Figures) -> None:
    """Each message is below one summary of the first level, or it is not due yet."""
    made = [each for each in await store.read(Summaries(scope(user), active=None, kind="tree")) if each.level == 1]
    assert made
    below: list[Message] = [
        message for each in made for message in await store.read(CoveredMessages(scope(user), each.id))
    ]
    assert max(Counter(message.seq for message in below).values()) == 1, "no message is below two summaries"
    assert sorted(chunk for each in made for chunk in each.chunks) == list(range(1, len(made) + 1))
    archived = [message for message in await store.read(Messages(scope(user), limit=10_000)) if not message.active]
    assert sorted(message.seq for message in below) == [message.seq for message in archived]
    assert (await store.read(UserLedger(scope(user)))).open_turns < TREE_TURNS
    figures.add("summaries", len(made))


@pytest.mark.timeout(1_800)
@pytest.mark.req("C9", "D12")
async def test_servers_and_workers_that_die_do_everything_once_and_in_order(tmp_path: Path, size: Size) -> None:
    shared_server()  # leaves the test out where no server can be had
    figures = Figures("kill -9 of workers on one database", "kills", "messages", "summaries", "memories")
    users, turns = size.of(small=4, full=16), size.of(small=12, full=60)
    server, chance, acknowledged = Server(durable=True), Random(4), list[tuple[str, int, str]]()
    dsn = server.create("drill")
    await (await PostgresStore.open(dsn)).close()
    crew = Crew(dsn, tmp_path)
    try:
        for _ in range(4 if size.full else 2):
            crew.hire()
        with crew.server() as first, crew.server() as second:
            talking = [talk((first, second)[user // SPACES % 2], user, turns, acknowledged) for user in range(users)]
            await asyncio.gather(
                *talking, kill_now_and_then(crew, chance, size.of(small=1, full=20), figures), return_exceptions=False
            )
        await until_all_is_done(dsn, users)
        *others, newest = await asyncio.to_thread(crew.dismiss)
        assert others == [0] * len(others)
        # The one that was hired last may be told to go before it listens.
        assert newest in {0, -signal.SIGTERM}
        with psycopg.connect(dsn) as connection:
            assert connection.execute(UNFINISHED).fetchone() == (0,), "no job is stuck, and none was given up"
        expected = await learned_by_one(users, turns)
        store = await PostgresStore.open(dsn)
        await check_order(store, acknowledged)
        for user in range(users):
            await check_summaries(store, user, figures)
            learned = Counter(each.text for each in await store.read(Memories(scope(user), active=None)))
            assert learned == expected[user], "each thing is learned once, and nothing is left out"
            figures.add("memories", learned.total())
        assert (await store.verify()).ok
        await store.close()
        figures.add("messages", len(acknowledged))
        figures.show()
    finally:
        crew.end()
        server.remove()
