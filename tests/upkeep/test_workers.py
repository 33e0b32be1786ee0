"""Workers: processes that share the upkeep of one PostgreSQL database."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import cast

import pytest
from typer.testing import CliRunner

import aforesaid
from aforesaid.cli import app
from aforesaid.domain.memory import Unextracted
from aforesaid.domain.report import Component
from aforesaid.domain.scope import Scope
from aforesaid.memory import Memory
from aforesaid.store.memories import Memories, UnextractedUsers
from aforesaid.store.postgres import PostgresStore
from aforesaid.store.searches import UnembeddedMessages
from aforesaid.store.summaries import CoveredMessages, Summaries
from aforesaid.upkeep import Digesting, Extracting
from aforesaid.upkeep.workers import Workers, WorkerTasks
from citus import clean_distributed_database
from making import adding
from pg import clean_database, pgbouncer, shared_server

USERS = 6
TURNS = 12


def start_worker(dsn: str, *arguments: str) -> subprocess.Popen[str]:
    command = str(Path(sys.executable).with_name("aforesaid"))
    return subprocess.Popen(
        [command, "worker", "--store", dsn, "--profile", "default", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


async def fill(dsn: str, users: int = USERS, turns: int = TURNS) -> None:
    store = await PostgresStore.open(dsn)
    for turn in range(turns):
        for user in range(users):
            scope = Scope.of(f"user{user}", space=f"space{user % 2}")
            await store.apply(
                [
                    adding(scope, f"I like fruit number {turn} and live in town {user}"),
                    adding(scope, "Noted.", "assistant"),
                ]
            )
    await store.close()


async def until_done(dsn: str, users: int, workers: list[subprocess.Popen[str]]) -> None:
    """Wait until everything is summarised, learned and embedded."""
    name = await embedder_name()
    store = await PostgresStore.open(dsn)
    try:
        while True:
            made = [
                await store.read(Summaries(Scope.of(f"user{user}", space=f"space{user % 2}"))) for user in range(users)
            ]
            waiting = await store.read(UnextractedUsers(1))
            unseen = await store.read(UnembeddedMessages(name, 1))
            if all(made) and not waiting and not unseen:
                return
            assert any(worker.poll() is None for worker in workers), "all workers have ended"
            await asyncio.sleep(0.2)
    finally:
        await store.close()


async def embedder_name() -> str:
    async with aforesaid.connect(":memory:") as memory:
        health = await memory.health()
        return dict(health.component("embedder").facts)["model"]


@pytest.mark.every_store
@pytest.mark.distributed
@pytest.mark.parametrize("kind", ["postgres", "citus"])
async def test_two_workers_do_each_thing_once_and_stop_gracefully(kind: str) -> None:
    dsn = clean_distributed_database() if kind == "citus" else clean_database("workers")
    await fill(dsn)
    workers = [start_worker(dsn, "--concurrency", "2") for _ in range(2)]
    try:
        await until_done(dsn, USERS, workers)
    finally:
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
        outputs = [worker.communicate(timeout=60)[0] for worker in workers]
    assert all("stopped after" in output for output in outputs), outputs
    assert [worker.returncode for worker in workers] == [0, 0]
    store = await PostgresStore.open(dsn)
    for user in range(USERS):
        scope = Scope.of(f"user{user}", space=f"space{user % 2}")
        below = [
            await store.read(CoveredMessages(scope, summary.id))
            for summary in await store.read(Summaries(scope, kind="tree"))
        ]
        covered = Counter(message.seq for messages in below for message in messages)
        assert covered
        assert max(covered.values()) == 1, "no message is below two summaries"
        memories = [memory.text for memory in await store.read(Memories(scope, active=None))]
        assert memories
        assert len(memories) == len(set(memories)), "nothing is learned twice"
    assert (await store.verify()).ok
    await store.close()


@pytest.mark.defect("W9")
async def test_a_worker_works_behind_pgbouncer_in_transaction_mode() -> None:
    server = shared_server()
    server.create("pooled_workers")
    with pgbouncer(server) as folder:
        dsn = f"postgresql://aforesaid@/pooled_workers?host={folder}&port=6432"
        await fill(dsn, users=1)
        worker = start_worker(dsn)
        try:
            await until_done(dsn, 1, [worker])
        finally:
            worker.send_signal(signal.SIGTERM)
            output = worker.communicate(timeout=60)[0]
        assert "stopped after" in output, output
        assert "rror" not in output, output


def test_only_a_shared_database_has_workers(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["worker", "--store", str(tmp_path / "memory.db")])
    assert ran.exit_code != 0
    assert "PostgreSQL" in ran.output


async def test_upkeep_can_be_left_to_workers(tmp_path: Path) -> None:
    settings = {"background": False}
    async with aforesaid.connect(tmp_path / "memory.db", profile="archive", settings=settings) as memory:
        ann = memory.user("ann")
        for turn in range(12):
            await ann.add("user", f"hello {turn}")
            await ann.add("assistant", "hi")
        assert not {task.get_name() for task in asyncio.all_tasks()} & {"aforesaid-embedding", "aforesaid-summarising"}
        report = await memory.upkeep()
        assert report.summarised > 0


@pytest.mark.defect("U1")
async def test_the_scan_of_a_worker_goes_on_after_any_exception_and_is_seen_in_health() -> None:
    dsn = clean_database("workers")
    await fill(dsn, users=1, turns=1)
    async with aforesaid.connect(dsn, settings={"background": False, "fallback": "none"}) as memory:
        parts = {part.name: part for part in memory._services.upkeep.tasks}
        learning, digesting = cast("Extracting", parts.pop("remembered")), cast("Digesting", parts.pop("summarised"))
        errors, failed = [ValueError("a row has no user")], asyncio.Event()
        waiting = learning.waiting

        async def fails_once(limit: int) -> list[Unextracted]:
            if errors:
                failed.set()
                raise errors.pop()
            return await waiting(limit)

        learning.waiting = fails_once  # type: ignore[method-assign]
        workers = Workers(dsn, WorkerTasks(learning, digesting, tuple(parts.values())), memory.loops, scan_seconds=0.2)
        running = asyncio.create_task(workers.run())
        await failed.wait()
        while "queue scan: ValueError: a row has no user" not in (await background(memory)).issues:
            await asyncio.sleep(0)
        while (await background(memory)).issues or len(await memory.store.read(UnextractedUsers(1))):
            await asyncio.sleep(0.05)
        facts = dict((await background(memory)).facts)
        assert set(facts) >= {"queue scan", "queue worker"}
        assert "1 failed, last error" in facts["queue scan"]
        assert "failed" not in facts["queue worker"], "jobs go on while a scan fails"
        workers.stop()
        await running


async def background(memory: Memory) -> Component:
    return (await memory.health()).component("background")
