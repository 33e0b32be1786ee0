"""Discord, through discord.py itself, over REST and a gateway on loopback: the whole way of a bot."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

import aforesaid
from aforesaid.bots import BotSession, run
from aforesaid.bots.discord import Discord
from aforesaid.errors import InvalidInput, PlatformRefused
from aforesaid.settings import DiscordSettings, Secret
from aforesaid.testing import Request, ScriptedModel
from bots.fake_discord import BOT, CHANNEL, GUILD, TOKEN, FakeDiscord, fake_discord
from bots.remembering import QUIET

ANN, BOB = 101, 102


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeDiscord]:
    async with fake_discord(monkeypatch) as fake:
        yield fake


@asynccontextmanager
async def running(memory: aforesaid.Memory) -> AsyncIterator[BotSession]:
    bot = Discord(DiscordSettings(Secret(TOKEN)))
    session = BotSession(memory, bot)
    task = asyncio.create_task(run(memory, bot, session=session, first_pause=0.05))
    try:
        yield session
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await bot.close()


def connect(path: Path) -> aforesaid.memory.Connecting:
    return aforesaid.connect(path / "memory.db", profile=QUIET, embedder="none")


async def said(memory: aforesaid.Memory) -> list[str]:
    there = memory.user(BOT, space=f"discord:{GUILD}", thread=str(CHANNEL))
    return [message.text for message in await there.history(1000, within="thread") if message.role == "user"]


async def test_the_whole_way_with_a_restart_and_a_broken_connection(server: FakeDiscord, tmp_path: Path) -> None:
    async with connect(tmp_path) as memory:
        async with running(memory) as session:
            await server.wait_for(lambda: server.identified == 1)
            assert {"summary", "context", "remember"} <= {command["name"] for command in server.commands}
            shown = {command["name"]: command["description_localizations"] for command in server.commands}["help"]
            assert (shown["de"], shown["es-ES"]) == ("diese Liste", "esta lista")
            await server.say(ANN, "ann", "I like tea.")
            asked = await server.say(BOB, "bob", f"<@{BOT}> remember that I like coffee")
            await server.wait_for(lambda: len(server.said) == 1)
            reply = server.messages[CHANNEL][-1]
            assert reply["content"] == "I will remember that."
            assert reply["sent_with"]["allowed_mentions"]["parse"] == []
            assert reply["sent_with"]["message_reference"]["message_id"] == int(asked["id"])
            await server.say(ANN, "ann", "this is private", channel=ANN + 10_000)
            await server.wait_for(lambda: len(server.said) == 2)
        # While nobody listens, more is written than one page of history holds.
        for number in range(130):
            await server.say(ANN, "ann", f"missed {number}")
        await server.say(BOB, "bob", "bot, what do you know about me?")
        async with running(memory) as session:
            await server.wait_for(lambda: any("coffee" in text for text in server.said))
            await server.hang_up()
            await server.say(ANN, "ann", "said into a broken line")
            await server.wait_for(lambda: server.identified == 3)
            await server.say(ANN, "ann", "and after")
            while "and after" not in await said(memory):
                await asyncio.sleep(0.02)
            assert session.stats.reconnections > 0
        log = await said(memory)
        assert log == [
            "I like tea.",
            "@bot remember that I like coffee",
            *(f"missed {number}" for number in range(130)),
            "bot, what do you know about me?",
            "said into a broken line",
            "and after",
        ]
        assert len(server.said) == 3
        first = (await memory.user(ANN, space=f"discord:{GUILD}").history(1000))[0]
        assert (first.author, first.name) == (str(ANN), "ann")


async def test_a_wrong_token_and_a_missing_right_are_told(server: FakeDiscord, tmp_path: Path) -> None:
    async with connect(tmp_path) as memory:
        wrong = Discord(DiscordSettings(Secret("wrong")))
        with pytest.raises(PlatformRefused, match="the token was refused by Discord"):
            await run(memory, wrong)
        await wrong.close()
        server.close_with = 4014
        bot = Discord(DiscordSettings(Secret(TOKEN)))
        with pytest.raises(PlatformRefused, match="MESSAGE CONTENT INTENT"):
            await run(memory, bot)
        await bot.close()
    with pytest.raises(InvalidInput, match=r"no Discord token is configured.*AFORESAID_BOTS__DISCORD__TOKEN"):
        Discord(DiscordSettings())


@pytest.mark.req("B11", "B12")
async def test_people_are_known_by_what_they_are_called_in_the_guild(server: FakeDiscord, tmp_path: Path) -> None:
    there = f"discord:{GUILD}"
    with ScriptedModel(lambda request: {"action": "none"} if request.schema else "Hello.") as model:
        settings = {"providers.s.base_url": model.base_url, "models.chat.chain": "s:scripted"}
        async with aforesaid.connect(
            tmp_path / "memory.db", profile=QUIET, embedder="none", settings=settings
        ) as memory:
            async with running(memory):
                await server.wait_for(lambda: server.identified == 1)
                await server.say(BOB, "bob77", "Morning.", nick="Captain Bob")
                await server.say(ANN, "ann_b", f"bot, ask <@{BOB}>", nick="Queen Ann")
                await server.wait_for(lambda: len(server.said) == 1)
                sent = str(model.requests[-1].body["messages"])
                assert "@Captain Bob" in sent
                assert "Queen Ann: bot, ask" in sent
                assert not any(word in sent for word in (str(ANN), str(BOB), "ann_b", "bob77"))
                # By nickname, by account's name, by mention: the same person.
                await server.say(ANN, "ann_b", "bot remember that Captain Bob plays chess", nick="Queen Ann")
                await server.say(ANN, "ann_b", "bot remember that bob77 likes tea", nick="Queen Ann")
                await server.say(ANN, "ann_b", f"bot remember that <@{BOB}> lives in Bern", nick="Queen Ann")
                await server.wait_for(lambda: len(server.said) == 4)
                known = str(await memory.user(BOB, space=there).portrait())
                assert all(word in known for word in ("chess", "tea", "Bern"))
            await server.say(BOB, "bob77", "While you were away.", nick="Admiral Bob")
            async with running(memory):
                await server.wait_for(lambda: server.identified == 2)
                await server.say(BOB, "bob77", "Later.", nick="Admiral Bob")
                while (log := await memory.user(BOB, space=there).history())[-1].text != "Later.":
                    await asyncio.sleep(0.02)
    assert [(message.author, message.name) for message in log if message.role == "user"] == [
        (str(BOB), "Captain Bob"),
        (str(BOB), "Admiral Bob"),
        (str(BOB), "Admiral Bob"),
    ]
    # What is stored about people names ids, and no name.
    assert f"<@{BOB}>" in next(m.text for m in await _of(tmp_path, ANN) if "ask" in m.text)


async def test_each_answer_has_a_receipt_of_what_the_model_was_sent(server: FakeDiscord, tmp_path: Path) -> None:
    def answer(request: Request) -> str | dict[str, str]:
        if request.schema:
            return {"action": "none"}
        return "  \n" if "nothing" in str(request.body["messages"][-1]["content"]) else "Ann likes tea."

    with ScriptedModel(answer) as model:
        settings = {"providers.s.base_url": model.base_url, "models.chat.chain": "s:scripted"}
        async with aforesaid.connect(
            tmp_path / "memory.db", profile=QUIET, embedder="none", settings=settings
        ) as memory:
            async with running(memory):
                await server.wait_for(lambda: server.identified == 1)
                await server.say(ANN, "ann", "I like tea.")
                await server.say(BOB, "bob", f"<@{BOT}> who likes tea?")
                await server.wait_for(lambda: len(server.said) == 1)
                await server.say(BOB, "bob", "And in private?", channel=BOB + 10_000)
                await server.wait_for(lambda: len(server.said) == 2)
                await server.say(BOB, "bob", f"<@{BOT}> say nothing")
                await server.wait_for(lambda: len(server.said) == 3)
            channel = memory.user(BOB, space=f"discord:{GUILD}", thread=str(CHANNEL))
            log = await channel.history(within="thread")
            (reply,) = (message for message in log if message.role == "assistant")
            empty, receipt = await channel.receipts()
            assert (receipt.reply, receipt.thread, receipt.model) == (reply.seq, str(CHANNEL), "s:scripted")
            assert receipt.ids("message") == [log[0].seq], "what Ann said"
            assert await channel.receipts(replies=[reply]) == [receipt]
            assert empty.reply is None, "the model was sent something, and wrote nothing"
            private = memory.user(BOB, space="discord")
            _, told = await private.history()
            assert [(each.reply, each.knew) for each in await private.receipts()] == [(told.seq, "nothing")]
            assert await memory.user(ANN, space=f"discord:{GUILD}").receipts() == []


async def _of(path: Path, user: int) -> list[aforesaid.Message]:
    async with connect(path) as memory:
        return await memory.user(user, space=f"discord:{GUILD}").history()
