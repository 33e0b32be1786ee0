"""Background loops survive every failure, say so, and end with the memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

import aforesaid
from aforesaid.background import BackgroundLoop, BackgroundLoops, SingleFlight, close_all
from aforesaid.errors import AforesaidError, StoreClosed, StoreUnavailable
from aforesaid.models.embed import DeterministicEmbedder, Vectors
from aforesaid.store.searches import UnembeddedMessages
from intercepting import intercept


class FailingOnce(DeterministicEmbedder):
    """An embedder whose library raises an exception of its own, once."""

    def __init__(self) -> None:
        super().__init__()
        self.failed = asyncio.Event()
        self.worked = asyncio.Event()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if not self.failed.is_set():
            self.failed.set()
            raise ValueError("a row has the wrong length")
        self.worked.set()
        return await super().embed(texts)


@pytest.mark.defect("U1")
async def test_an_embedder_that_raises_an_unexpected_error_once_is_asked_again(tmp_path: Path) -> None:
    embedder = FailingOnce()
    async with aforesaid.connect(tmp_path / "memory.db", embedder=embedder) as memory:
        await memory.user("ann").add("user", "I moved to Berlin.")
        await embedder.failed.wait()
        while (health := await memory.health()).component("embedder").status == "active":
            await asyncio.sleep(0)
        assert health.component("embedder").issues == ("ValueError: a row has the wrong length",)
        background = health.component("background")
        assert (background.status, background.issues) == (
            "failing",
            ("embedding: ValueError: a row has the wrong length",),
        )
        await asyncio.wait_for(embedder.worked.wait(), 30)
        while (health := await memory.health()).status == "failing":
            await asyncio.sleep(0.01)
        line = dict(health.component("background").facts)["embedding"]
        assert "2 runs, last success 2" in line
        assert "1 failed, last error" in line
        assert line.endswith("ValueError: a row has the wrong length")


@pytest.mark.defect("U1")
async def test_closing_after_a_failed_run_raises_nothing_and_closes_the_store(tmp_path: Path) -> None:
    embedder = FailingOnce()
    memory = await aforesaid.connect(tmp_path / "memory.db", embedder=embedder)
    await memory.user("ann").add("user", "I moved to Berlin.")
    await embedder.failed.wait()
    await memory.close()
    with pytest.raises(StoreClosed):
        await memory.user("ann").history()


@pytest.mark.defect("U1")
async def test_closing_closes_the_store_although_the_embedder_does_not_close(tmp_path: Path) -> None:
    class Stuck(DeterministicEmbedder):
        async def close(self) -> None:
            raise RuntimeError("the socket is gone")

    memory = await aforesaid.connect(tmp_path / "memory.db", embedder=Stuck())
    with pytest.raises(RuntimeError, match="the socket is gone"):
        await memory.close()
    with pytest.raises(StoreClosed):
        await memory.user("ann").history()


@pytest.mark.defect("U1")
async def test_a_store_that_is_unavailable_once_does_not_end_a_loop(tmp_path: Path) -> None:
    embedder = FailingOnce()
    embedder.failed.set()
    async with aforesaid.connect(tmp_path / "memory.db", embedder=embedder) as memory:
        asked = asyncio.Event()

        async def unavailable(*_: object) -> None:
            end()
            asked.set()
            raise StoreUnavailable("the disk was away")

        end = intercept(memory.store, UnembeddedMessages, unavailable)
        await memory.user("ann").add("user", "I moved to Berlin.")
        await asked.wait()
        await asyncio.wait_for(embedder.worked.wait(), 30)


async def test_a_loop_goes_on_after_any_exception_and_waits_longer_after_each(
    caplog: pytest.LogCaptureFixture,
) -> None:
    errors: list[BaseException] = [ValueError("one"), AforesaidError("two"), asyncio.CancelledError("three")]
    done = asyncio.Event()

    async def work() -> None:
        if errors:
            raise errors.pop(0)
        done.set()

    loop = BackgroundLoop("counting", work, retry_seconds=0.001)
    with caplog.at_level(logging.WARNING, "aforesaid.background"):
        loop.wake()
        await done.wait()
    assert (loop.status.runs, loop.status.failures, loop.status.failures_in_a_row) == (4, 3, 0)
    assert [record.getMessage() for record in caplog.records] == [
        "counting failed; next try in 0.001 s",
        "counting failed; next try in 0.004 s: two",
        "counting failed; next try in 0.016 s",
    ]
    await loop.stop()


async def test_a_loop_runs_again_when_woken_or_when_its_work_says_so() -> None:
    runs: asyncio.Queue[int] = asyncio.Queue()
    again = iter([0.001, None, None])

    async def work() -> float | None:
        runs.put_nowait(1)
        return next(again)

    loop = BackgroundLoop("running", work)
    loop.start()
    await runs.get()
    await runs.get()
    assert runs.empty()
    loop.wake()
    await runs.get()
    await loop.stop()


async def test_loops_end_together_and_cannot_be_woken_after_that() -> None:
    loops, began = BackgroundLoops(), asyncio.Event()

    async def work() -> None:
        began.set()
        await asyncio.Event().wait()

    loop = loops.add(BackgroundLoop("waiting", work))
    loop.wake()
    await began.wait()
    await loops.close()
    loop.wake()
    assert loops.statuses() == []
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "aforesaid-waiting"]


async def test_everything_is_closed_and_the_first_failure_is_raised_with_the_others_noted() -> None:
    closed = []

    async def close(name: str, error: Exception | None = None) -> None:
        closed.append(name)
        if error is not None:
            raise error

    with pytest.raises(ValueError, match="first") as raised:
        await close_all(
            lambda: close("a", ValueError("first")), lambda: close("b", OSError("second")), lambda: close("c")
        )
    assert closed == ["a", "b", "c"]
    assert raised.value.__notes__ == ["closing also failed with OSError: second"]


async def test_many_who_ask_at_once_share_one_call_and_its_failure() -> None:
    flights, calls = SingleFlight[int](), []

    async def call() -> int:
        calls.append(1)
        await asyncio.sleep(0)
        if len(calls) == 1:
            raise AforesaidError("no")
        return 7

    first = await asyncio.gather(*(flights.run("key", call) for _ in range(5)), return_exceptions=True)
    assert [str(each) for each in first] == ["no"] * 5
    assert await asyncio.gather(*(flights.run("key", call) for _ in range(5))) == [7] * 5
    assert len(calls) == 2


async def test_a_shared_call_goes_on_while_anybody_waits_for_it() -> None:
    flights, go_on, ended = SingleFlight[int](), asyncio.Event(), asyncio.Event()

    async def call() -> int:
        try:
            await go_on.wait()
            return 7
        finally:
            ended.set()

    first, second = (asyncio.create_task(flights.run("key", call)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait((first,))
    assert not ended.is_set()
    second.cancel()
    await asyncio.wait((second,))
    await asyncio.wait_for(ended.wait(), 60)


async def test_work_that_an_earlier_process_left_is_done_soon_after_opening(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory.db"
    async with aforesaid.connect(path, embedder=DeterministicEmbedder()) as memory:
        await memory.user("ann").add("user", "I moved to Berlin.")
    monkeypatch.setattr("aforesaid.front.handle._RESUME_SECONDS", 0.01)
    async with aforesaid.connect(path, embedder=DeterministicEmbedder()) as memory:
        while (await memory.health()).component("embedder").waiting or not await memory.user("ann").memories():
            await asyncio.sleep(0.01)


async def test_a_short_program_starts_no_work_that_others_left(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    async with aforesaid.connect(path, embedder=DeterministicEmbedder()) as memory:
        await memory.user("ann").add("user", "I moved to Berlin.")
    async with aforesaid.connect(path, embedder=DeterministicEmbedder()) as memory:
        assert await memory.user("ann").search("Berlin")
        assert (await memory.health()).component("embedder").waiting == 1


async def test_a_process_without_background_work_leaves_what_waits_to_the_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aforesaid.front.handle._RESUME_SECONDS", 0.01)
    async with aforesaid.connect(tmp_path / "memory.db", settings={"background": False}) as memory:
        await memory.user("ann").add("user", "I moved to Berlin.")
        await asyncio.sleep(0.1)
        assert (await memory.health()).component("embedder").waiting == 1
