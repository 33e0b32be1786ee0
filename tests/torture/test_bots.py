"""An hour of traffic in minutes: many people, a bot that is torn down again and again, a model that fails."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path

import recollect
from recollect.bots import Desk, run
from recollect.bots.telegram import Telegram
from recollect.settings import Secret, TelegramSettings
from recollect.testing import ScriptedModel, faults
from recollect.testing.telegram import FakeTelegram, Person
from torture.support import Figures, Size


async def test_nothing_is_lost_or_doubled_under_traffic_restarts_and_failures(arena: Path, size: Size) -> None:
    people = [Person(10_000 + number, f"P{number}") for number in range(size.of(small=12, full=200))]
    rounds = size.of(small=4, full=18)
    chance = random.Random(4711)
    figures = Figures("bots", "messages", "restarts", "answers")
    said: dict[int, list[str]] = {person.id: [] for person in people}
    with ScriptedModel(lambda _: "ok") as model:
        settings = {
            "providers.s.base_url": model.base_url,
            "models.chat.chain": "s:scripted",
            "providers.s.concurrency": 16,
            "resilience.attempts": 1,
        }
        async with FakeTelegram() as telegram:
            for turn in range(rounds):
                async with recollect.connect(
                    arena / "memory.db", profile={"extract": False}, embedder="none", settings=settings
                ) as memory:
                    bot = Telegram(TelegramSettings(Secret(telegram.token), api=telegram.base_url), poll_seconds=1)
                    bot._slowly = _at_once  # type: ignore[method-assign]
                    desk = Desk(memory, bot, patience=0.0 if turn % 2 else 60.0)
                    task = asyncio.create_task(run(memory, bot, desk=desk, first_pause=0.05))
                    model.fail(faults.ServerError(), times=chance.randrange(4))
                    for person in chance.sample(people, len(people)):
                        text = f"round {turn}, number {len(said[person.id])}"
                        said[person.id].append(text)
                        telegram.say(person, text)
                        figures.add("messages")
                        if chance.random() < 0.1:
                            telegram.replay()
                    if turn % 2 == 0 or turn == rounds - 1:
                        await telegram.confirmed()
                        await desk.idle()
                        assert desk._lanes.waiting() == 0
                        assert not desk._answering
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
                    await bot.close()
                    figures.add("restarts")
            async with recollect.connect(arena / "memory.db", embedder="none") as memory:
                for person in people:
                    log = await memory.user(person.id, space="telegram").history(10_000)
                    stored = [message.text for message in log if message.role == "user"]
                    assert stored == said[person.id]
                    answers = Counter(message.id for message in log if message.role == "assistant")
                    assert all(number == 1 for number in answers.values())
                    figures.add("answers", len(answers))
                assert (await memory.verify()).ok
    assert figures["answers"] > figures["messages"] / 3
    figures.show()


async def _at_once() -> None:
    """Do not wait between two messages: the server on this machine has no limit."""
