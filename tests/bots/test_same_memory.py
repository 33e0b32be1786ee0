"""The same conversation leaves the same memory, in the terminal, on Telegram and on Discord."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

import aforesaid
from aforesaid.bots import Platform, run
from aforesaid.bots.discord import Discord
from aforesaid.bots.telegram import Telegram
from aforesaid.settings import DiscordSettings, Secret, TelegramSettings
from aforesaid.testing import ScriptedModel
from aforesaid.testing.telegram import FakeTelegram, Person
from bots import conversation
from bots.fake_discord import TOKEN, fake_discord

ANN = Person(1001, "ann")


@asynccontextmanager
async def running(store: Path, model: ScriptedModel, bot: Platform) -> AsyncIterator[None]:
    async with aforesaid.connect(
        store, profile=conversation.QUIET, embedder="none", settings=conversation.settings(model)
    ) as memory:
        task = asyncio.create_task(run(memory, bot))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await bot.close()


@pytest.mark.req("B11", "C13", "D3")
async def test_the_same_conversation_leaves_the_same_memory_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedModel(conversation.answer) as model:
        terminal = await conversation.in_the_terminal(tmp_path, model)
        async with FakeTelegram() as telegram:
            bot = Telegram(TelegramSettings(Secret(telegram.token), api=telegram.base_url), poll_seconds=1)
            async with running(tmp_path / "telegram.db", model, bot):
                for number, text in enumerate(conversation.SAID):
                    telegram.say(ANN, text)
                    await telegram.next_sent(number)
        assert await conversation.left_behind(tmp_path / "telegram.db", "1001", "telegram") == terminal
        async with (
            fake_discord(monkeypatch) as discord,
            running(tmp_path / "discord.db", model, Discord(DiscordSettings(Secret(TOKEN)))),
        ):
            await discord.wait_for(lambda: discord.identified == 1)
            for number, text in enumerate(conversation.SAID, 1):
                await discord.say(1001, "ann", text, channel=11_001)
                await discord.wait_for(lambda: len(discord.said) >= number)  # noqa: B023 - waited for at once
        assert await conversation.left_behind(tmp_path / "discord.db", "1001", "discord") == terminal
    assert terminal["log"]
