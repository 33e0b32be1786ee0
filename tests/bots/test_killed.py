"""A bot is killed at every step of answering and reminding: nothing is lost, and what is doubled is known."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import aforesaid
from aforesaid.bots import BotSession, run
from aforesaid.memory import Connecting
from aforesaid.store.people import Marks
from aforesaid.testing import ScriptedModel
from aforesaid.testing.telegram import FakeTelegram, Person
from bots import victim
from bots.fake_discord import CHANNEL, GUILD, TOKEN, fake_discord
from bots.remembering import QUIET
from torture.zygote import Zygote

ANN = Person(1001, "Ann")
REMINDER = "⏰ Reminder: call mum"


class Killing:
    """Runs bots in processes of their own, each until it is killed after a step."""

    def __init__(self, zygote: Zygote) -> None:
        self._zygote = zygote

    async def __call__(self, name: str, url: str, token: str, store: Path, step: str, model: str = "") -> None:
        child = self._zygote.start(
            "live", platform=name, url=url, token=token, store=str(store), step=step, model=model
        )
        # The platform that it talks with is in this process.
        ended = await asyncio.to_thread(self._zygote.expect, child, "ended")
        assert ended[2] == -signal.SIGKILL


@pytest.fixture(scope="module")
def killed() -> Iterator[Killing]:
    with Zygote("bots.victim") as zygote:
        yield Killing(zygote)


def opened(store: Path, model: str = "") -> Connecting:
    return aforesaid.connect(store, profile=QUIET, embedder="none", settings=victim.model_settings(model))


@asynccontextmanager
async def alive(name: str, url: str, token: str, memory: aforesaid.Memory) -> AsyncIterator[BotSession]:
    """Run the bot again, in this process."""
    bot = victim.platform(name, url, token)
    session = BotSession(memory, bot)
    task = asyncio.create_task(run(memory, bot, session=session))
    try:
        yield session
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await bot.close()


async def remind_later(memory: aforesaid.Memory, name: str, url: str, token: str) -> int:
    """Look for what is due after the lease has ended, and return how many reminders were delivered."""
    bot = victim.platform(name, url, token)
    await bot.check()
    later = datetime.now(UTC) + timedelta(minutes=3)
    done = await BotSession(memory, bot, clock=lambda: later).remind()
    assert await BotSession(memory, bot, clock=lambda: later + timedelta(minutes=3)).remind() == 0
    await bot.close()
    return done


@pytest.mark.parametrize(
    ("step", "copies"),
    [
        ("claimed", 1),
        # Telegram cannot know it again: whoever is killed right here reminds twice. Better so than never.
        ("accepted", 2),
        ("reply stored", 1),
        ("delivered", 1),
    ],
)
async def test_a_reminder_survives_a_kill_on_telegram(tmp_path: Path, killed: Killing, step: str, copies: int) -> None:
    store = tmp_path / "memory.db"
    due = datetime.now(UTC) - timedelta(minutes=1)
    async with FakeTelegram() as telegram:
        async with opened(store) as memory:
            reminder = await memory.user("1001", space="telegram").note("reminder", "call mum", when=due)
        await killed("telegram", telegram.base_url, telegram.token, store, step)
        async with opened(store) as memory:
            ann = memory.user("1001", space="telegram")
            left = await remind_later(memory, "telegram", telegram.base_url, telegram.token)
            assert left == (step != "delivered")
            assert [sent.text for sent in telegram.sent] == [REMINDER] * copies
            # It stands in the log once, and says when it was for.
            assert [message.text for message in await ann.history()] == [REMINDER]
            known = await ann.read_memory(reminder.id)
            assert (known.state, known.reason, known.remind_at) == ("expired", "delivered", due)


@pytest.mark.parametrize("step", ["claimed", "accepted", "reply stored", "delivered"])
async def test_a_reminder_comes_exactly_once_on_discord(
    tmp_path: Path, killed: Killing, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    store = tmp_path / "memory.db"
    async with fake_discord(monkeypatch) as discord:
        async with opened(store) as memory:
            due = datetime.now(UTC) - timedelta(minutes=1)
            await memory.user("1001", space="discord").note("reminder", "call mum", when=due)
        await killed("discord", discord.base, TOKEN, store, step)
        async with opened(store) as memory:
            await remind_later(memory, "discord", discord.base, TOKEN)
            assert discord.said == [REMINDER]


STEPS = ["noted", "stored", "received", "reply stored", "accepted", "settled"]


@pytest.mark.parametrize("step", STEPS)
async def test_a_message_is_stored_once_and_answered_after_a_kill_on_telegram(
    tmp_path: Path, killed: Killing, step: str
) -> None:
    store = tmp_path / "memory.db"
    with ScriptedModel(lambda request: f"answer to {request.question}") as model:
        async with FakeTelegram() as telegram:
            telegram.say(ANN, "one")
            await killed("telegram", telegram.base_url, telegram.token, store, step, model.base_url)
            async with opened(store, model.base_url) as memory:
                async with alive("telegram", telegram.base_url, telegram.token, memory):
                    telegram.say(ANN, "two")
                    await telegram.wait_for(lambda: telegram.sent[-1:] != [] and "two" in telegram.sent[-1].text)
                doubled = ["answer to one"] * (step == "accepted")
                assert [sent.text for sent in telegram.sent] == [*doubled, "answer to one", "answer to two"]
                log = [message.text for message in await memory.user("1001", space="telegram").history()]
                assert sorted(log) == ["answer to one", "answer to two", "one", "two"]
                assert await memory.store.read(Marks()) == {}


@pytest.mark.parametrize("step", STEPS)
async def test_a_message_is_answered_exactly_once_on_discord(
    tmp_path: Path, killed: Killing, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    store = tmp_path / "memory.db"
    with ScriptedModel(lambda request: f"answer to {request.question}") as model:
        async with fake_discord(monkeypatch) as discord:
            async with opened(store, model.base_url) as memory:
                # Something has to be stored of a channel for its history to be read.
                there = memory.user("1001", space=f"discord:{GUILD}", thread=str(CHANNEL))
                await there.add("user", "before", id=str(discord.number()))
            dying = asyncio.create_task(killed("discord", discord.base, TOKEN, store, step, model.base_url))
            await discord.wait_for(lambda: discord.identified == 1)
            await discord.say(1001, "ann", "bot, one")
            await dying
            async with opened(store, model.base_url) as memory:
                async with alive("discord", discord.base, TOKEN, memory) as session:
                    await discord.wait_for(lambda: session.stats.connected)
                    await discord.say(1001, "ann", "bot, two")
                    await discord.wait_for(lambda: len(discord.said) >= 2)
                    await session.idle()
                assert discord.said == ["answer to bot, one", "answer to bot, two"]
                assert await memory.store.read(Marks()) == {}


@pytest.mark.parametrize("step", ["noted", "received", "accepted", "settled"])
async def test_a_command_is_carried_out_once_or_asked_for_again(tmp_path: Path, killed: Killing, step: str) -> None:
    store = tmp_path / "memory.db"
    async with FakeTelegram() as telegram:
        telegram.say(ANN, "/remind call mum tomorrow at 9")
        await killed("telegram", telegram.base_url, telegram.token, store, step)
        async with opened(store) as memory:
            async with alive("telegram", telegram.base_url, telegram.token, memory):
                telegram.say(ANN, "/reminders")
                await telegram.wait_for(lambda: telegram.sent[-1:] != [] and _listed(telegram.sent[-1].text))
            told = [sent.text for sent in telegram.sent]
            done = len(await memory.user("1001", space="telegram").reminders())
            assert done == (step in {"accepted", "settled"})
            assert sum("I will remind you" in text for text in told) == done
            assert sum("I was stopped before I had answered /remind" in text for text in told) == (step != "settled")


def _listed(text: str) -> bool:
    return ", 09:00  call mum" in text or "nothing to remind" in text
