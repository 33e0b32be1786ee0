"""A process that is killed while it cleans up leaves everything whole, and the next one goes on."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import aforesaid
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import SummaryDraft
from aforesaid.store import open_store
from aforesaid.store.summaries import Archive
from making import adding

PROGRAM = """
import sys, aforesaid
rules = {"retention.messages.purge_days": 365, "retention.audit.purge_days": 1}
def told(what, done, total):
    print(what, done, total, flush=True)
    if sys.argv[2] == "wait":
        sys.stdin.readline()
with aforesaid.open(sys.argv[1], settings=rules, embedder="none") as memory:
    memory.cleanup(told)
"""
OLD = datetime(2020, 1, 1, tzinfo=UTC)


async def fill(location: str, archives: int) -> None:
    store = await open_store(location)
    for number in range(archives):
        scope = Scope.of(f"user{number % 3}")
        said = [adding(scope, f"old words {number} {each}", at=OLD + timedelta(days=number)) for each in range(100)]
        seqs = tuple(result.seq for result in (await store.apply(said)).results)  # type: ignore[union-attr]
        await store.apply([Archive(SummaryDraft(scope, f"summary {number}", messages=seqs))])
        await store.apply([adding(scope, f"young words {number}")])
    await store.close()


@pytest.mark.req("C18")
@pytest.mark.parametrize("kind", ["sqlite", "json"])
async def test_killed_in_the_middle(kind: str, tmp_path: Path) -> None:
    location = str(tmp_path / "memory.db") if kind == "sqlite" else f"json:{tmp_path / 'memory.json'}"
    await fill(location, 12)
    for how in ("wait", "go on"):
        command = [sys.executable, "-c", PROGRAM, location, how]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("removing messages")
            process.kill()
    async with aforesaid.connect(location, embedder="none", settings={"retention.messages.purge_days": 365}) as memory:
        assert (await memory.verify()).ok
        left = (await memory.cleanup(dry_run=True)).rules[0].count
        assert left <= 1_000, "each of them removed something"
        assert left % 100 == 0, "whole archives"
        assert (await memory.cleanup()).rules[0].count == left
        texts = [message.text for number in range(3) for message in await memory.user(f"user{number}").history(1_000)]
        assert sorted(texts) == sorted(f"young words {number}" for number in range(12))
        assert (await memory.stats()).summaries == 12
        assert (await memory.verify()).ok
