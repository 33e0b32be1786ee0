"""Two weeks with a bot on Telegram: a moving clock, restarts, every command, failures that are told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import aforesaid
from aforesaid.bots import BotSession, run
from aforesaid.bots.telegram import Telegram
from aforesaid.settings import Secret, TelegramSettings
from aforesaid.testing import Request, ScriptedModel, faults
from aforesaid.testing.telegram import FakeTelegram, Person, Sent

ANN = Person(1001, "Ann")
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
COMMANDS = ("summary_status", "summary_off", "summary_on", "historycontext", "analyze", "context", "clear", "portrait")


class Clock:
    """The time of everybody in this test."""

    def __init__(self) -> None:
        self.now = START

    def nanoseconds(self) -> int:
        # It never stands still: two messages are not of one moment.
        self.now += timedelta(milliseconds=1)
        return int(self.now.timestamp() * 1_000_000_000)


class Life:
    """Ann, her bot, and what becomes of it."""

    def __init__(self, telegram: FakeTelegram, model: ScriptedModel, clock: Clock, path: Path) -> None:
        self.telegram, self.model, self.clock, self.path = telegram, model, clock, path
        self.said: list[str] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[tuple[aforesaid.Memory, BotSession]]:
        settings = {"providers.s.base_url": self.model.base_url, "models.default": "s:scripted"}
        profile = {"summaries": "tree", "tree_turns": 5, "tree_level": 2, "extract": False}
        more: dict[str, Any] = {"resilience.attempts": 1, "resilience.failures": 1000, "models.route.chain": "none"}
        async with aforesaid.connect(
            self.path / "memory.db", profile=profile, embedder="none", settings={**settings, **more}
        ) as memory:
            bot = Telegram(TelegramSettings(Secret(self.telegram.token), api=self.telegram.base_url), poll_seconds=1)
            session = BotSession(memory, bot, clock=lambda: self.clock.now)
            task = asyncio.create_task(run(memory, bot, session=session, first_pause=0.05))
            try:
                yield memory, session
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                await bot.close()

    async def ask(self, text: str) -> Sent:
        """Write something and wait for what comes back."""
        before = len(self.telegram.sent)
        self.telegram.say(ANN, text)
        return await self.telegram.next_sent(before)

    async def talk(self, day: int) -> None:
        for number in range(3):
            text = f"On day {day} I saw bird number {number}."
            self.said.append(text)
            await self.ask(text)


@pytest.mark.req("A1", "A12", "A13", "C13")
async def test_two_weeks_on_telegram(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(time, "time_ns", clock.nanoseconds)
    with ScriptedModel(_script) as model:
        async with FakeTelegram() as telegram:
            telegram.clock = lambda: clock.now.timestamp()  # noqa: PLW0108 - the clock moves
            life = Life(telegram, model, clock, tmp_path)
            async with life.running() as (memory, session):
                asked = await life.ask("/summary")
                telegram.press(ANN, asked, "sqlite")
                await telegram.wait_for(lambda: "Send a number" in telegram.sent[-1].text)
                assert (await life.ask("5")).text.endswith("Threshold: 5 messages")
                assert "on Thursday, 5 March 2026" in (await life.ask("/remind call mum in 3 days")).text
                for day in range(1, 4):
                    await life.talk(day)
                    clock.now += timedelta(days=1)
                await memory.upkeep()
                assert len(await memory.user("1001", space="telegram").summaries()) == 1
            async with life.running() as (memory, session):
                await telegram.wait_for(lambda: any("Reminder: call mum" in sent.text for sent in telegram.sent))
                assert await session.remind() == 0
                await _a_summary_fails(life, memory)
                for day in range(6, 10):
                    await life.talk(day)
                    clock.now += timedelta(days=1)
                    await memory.upkeep()
            async with life.running() as (memory, session):
                for command in COMMANDS:
                    assert (await life.ask(f"/{command}")).text
                for day in range(10, 15):
                    await life.talk(day)
                    clock.now += timedelta(days=1)
                assert (await life.ask("/summary_now")).text.startswith("Summarised:")
                assert "bird number 2" in (await life.ask("/search day 7 bird number 2")).text
                status = (await life.ask("/summary_status")).text
                assert "Memory: enabled" in status
                ann = memory.user("1001", space="telegram")
                log = await ann.history(1000)
                assert [message.text for message in log if message.role == "user"] == life.said
                answers = [message for message in log if message.role == "assistant" and message.id.startswith("re:")]
                assert len(answers) == len(life.said) - 2
                assert max(summary.level for summary in await ann.summaries(active=None)) > 1
                assert sum("Reminder: call mum" in sent.text for sent in telegram.sent) == 1
                assert (log[-1].at - log[0].at).days >= 13


async def _a_summary_fails(life: Life, memory: aforesaid.Memory) -> None:
    """The model is away for a day: a message is not answered, a summary is not made, and Ann is told both."""
    await life.talk(4)
    life.clock.now += timedelta(days=1)
    life.model.fail(faults.ServerError())
    for text in ("Is anybody there?", "I saw an owl."):
        life.said.append(text)
        assert "The language model could not answer" in (await life.ask(text)).text
    await memory.user("1001", space="telegram").add("assistant", "(the model was away)")
    await memory.upkeep()
    life.model.heal()
    before = len(await memory.user("1001", space="telegram").summaries())
    await life.talk(5)
    assert any("a summary could not be made" in sent.text for sent in life.telegram.sent)
    await memory.upkeep()
    assert len(await memory.user("1001", space="telegram").summaries()) > before
    life.clock.now += timedelta(days=1)


def _script(request: Request) -> str:
    system = str(request.messages[0].get("content", ""))
    return "Birds were seen." if "ummar" in system and "helpful assistant" not in system else "How nice."
