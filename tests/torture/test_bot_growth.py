"""A bot that runs for long takes no more memory than when its caches are full."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from aforesaid.testing import ScriptedModel
from aforesaid.testing.telegram import FakeTelegram
from torture.bot_world import BotWorld, all_reminded, answer
from torture.support import Figures, Size
from torture.zygote import Zygote

pytestmark = pytest.mark.skipif(
    "not config.getoption('--torture')", reason="growth shows in thousands of messages alone"
)

_ROOM = 16 * 1024 * 1024
"""What may come in the second half. The first half fills the caches: columns and words of people, and pages."""


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    """Starts bots quickly: the library for Telegram takes seconds to import."""
    with Zygote("torture.soak") as started:
        yield started


async def test_a_bot_that_runs_for_long_does_not_grow(arena: Path, size: Size, zygote: Zygote) -> None:
    messages, parts = size.of(small=100, full=20_000), size.of(small=5, full=10)
    with ScriptedModel(answer) as model:
        async with FakeTelegram() as telegram:
            world = BotWorld(telegram, model, zygote, arena / "memory.db", size.of(small=20, full=200))
            world.begin(seconds=size.of(small=10, full=400))
            await world.start()
            taken = []
            for number in range(messages):
                await world.say()
                if number % 100 == 50:
                    world.trouble()
                if (number + 1) % (messages // parts) == 0:
                    await world.settle()
                    taken.append(world.rss())
            await all_reminded(world)
            await world.stop(signal.SIGTERM)
            await world.check()
    warm = taken[parts // 2 - 1]
    figures = Figures("bots for long", "MB when warm", "MB at the end", "messages")
    figures.add("MB when warm", warm >> 20)
    figures.add("MB at the end", taken[-1] >> 20)
    figures.add("messages", messages)
    figures.show()
    assert taken[-1] - warm < _ROOM, [each >> 20 for each in taken]
