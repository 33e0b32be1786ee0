"""An hour of traffic in minutes: many people, a bot that is killed again and again, a model that fails."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from aforesaid.testing import ScriptedModel
from aforesaid.testing.telegram import FakeTelegram
from torture.bot_world import BotWorld, all_reminded, answer
from torture.support import Size
from torture.zygote import Zygote

pytestmark = pytest.mark.skipif(
    "not config.getoption('--torture')",
    reason="a drill of a minute; tests/bots/test_killed.py kills a bot at each step of an answer",
)


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    """Starts bots quickly: the library for Telegram takes seconds to import."""
    with Zygote("torture.soak") as started:
        yield started


async def test_an_hour_of_traffic_with_kills_stops_and_failures(arena: Path, size: Size, zygote: Zygote) -> None:
    chance = random.Random(815)
    messages = size.of(small=100, full=8_000)
    ends = sorted(chance.sample(range(20, messages - 20), size.of(small=3, full=40)))
    with ScriptedModel(answer) as model:
        async with FakeTelegram() as telegram:
            world = BotWorld(telegram, model, zygote, arena / "memory.db", size.of(small=20, full=200))
            world.begin(seconds=size.of(small=10, full=240))
            await world.start()
            for number in range(messages):
                await world.say()
                if number % 50 == 25:
                    world.trouble()
                if number in ends:
                    await world.stop(signal.SIGKILL if chance.random() < 0.7 else signal.SIGTERM)
                    await world.start()
            await world.settle()
            # The reminders that are not due yet come within ten of the bot's minutes, and a lease.
            await all_reminded(world)
            await world.stop(signal.SIGTERM)
            await world.check()
    assert world.figures["answers"] > world.figures["messages"] / 2
    world.figures.show()
