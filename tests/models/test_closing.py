"""Closing a memory does not wait for a model that takes its time."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

import aforesaid
from aforesaid.errors import ModelUnavailable
from aforesaid.models.resilience import RunningCalls
from aforesaid.testing import ScriptedModel, faults


def settings(model: ScriptedModel) -> dict[str, object]:
    return {
        "providers.local.base_url": model.base_url,
        "models.default": "local:tiny",
        "models.embed.chain": "local:tiny",
        "models.timeout": 600,
        "resilience.stall_seconds": 600,
    }


async def test_calls_end_at_once_when_closed_and_no_other_begins() -> None:
    calls, began = RunningCalls(), asyncio.Event()

    async def call() -> None:
        async with calls.running():
            began.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(call())
    await began.wait()
    calls.close()
    with pytest.raises(ModelUnavailable, match="closed"):
        await task
    with pytest.raises(ModelUnavailable, match="closed"):
        await call()


async def test_a_callers_own_deadline_stays_its_own() -> None:
    calls = RunningCalls()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), calls.running():
            await asyncio.Event().wait()
    with pytest.raises(TimeoutError, match="mine"):
        async with calls.running():
            raise TimeoutError("mine")


async def asked(model: ScriptedModel) -> None:
    while not model.requests:
        await asyncio.sleep(0.01)


async def test_closing_ends_whoever_waits_for_a_model(tmp_path: Path) -> None:
    async with ScriptedModel() as model:
        model.fail(faults.NeverAnswers())
        memory = await aforesaid.connect(tmp_path / "memory.db", settings=settings(model))
        assert memory.models is not None
        waiting = asyncio.create_task(memory.models.text("chat", []))
        await asked(model)
        await memory.close()
        with pytest.raises(ModelUnavailable, match="closed"):
            await waiting


def test_closing_from_another_thread_does_not_wait_either(tmp_path: Path) -> None:
    with ScriptedModel() as model:
        model.fail(faults.NeverAnswers())
        memory = aforesaid.open(tmp_path / "memory.db", profile="session", settings=settings(model))
        told: list[aforesaid.AforesaidError] = []

        def remember() -> None:
            try:
                memory.user("ann").remember("likes tea")
            except aforesaid.AforesaidError as error:
                told.append(error)

        thread = threading.Thread(target=remember)
        thread.start()
        while not model.requests:
            time.sleep(0.01)
        memory.close()
        thread.join()
        # The model would have had ten minutes: that this line is reached is what is tested.
        assert not told or "closed" in str(told[0])
