"""What runs beside the rest ends when it is told to."""

from __future__ import annotations

import asyncio

import pytest

from aforesaid.background import beside, end


async def test_a_task_is_over_when_its_end_was_waited_for() -> None:
    cleaned = False

    async def work() -> None:
        nonlocal cleaned
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned = True

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await end(task)
    assert task.done()
    assert cleaned


async def test_nothing_is_ended_where_nothing_runs() -> None:
    await end(None)


async def test_what_a_task_failed_with_is_told() -> None:
    async def work() -> None:
        raise ValueError("the work went wrong")

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    with pytest.raises(ValueError, match="went wrong"):
        await end(task)


async def test_whoever_waits_for_the_end_can_be_told_to_stop() -> None:
    """It must not take its own cancellation for that of the task, and go on as if nothing were."""
    stubborn, heard = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.set()
            await stubborn.wait()
            raise

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    waiting = asyncio.create_task(end(task))
    await heard.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    stubborn.set()
    await asyncio.wait((task,))
    assert task.cancelled()


async def test_work_beside_a_block_takes_no_longer_than_the_block() -> None:
    started = asyncio.Event()

    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    async with beside(work(), "beside"):
        await started.wait()
        assert any(task.get_name() == "beside" for task in asyncio.all_tasks())
    assert not any(task.get_name() == "beside" for task in asyncio.all_tasks())
