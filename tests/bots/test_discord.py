"""Discord, through discord.py itself, in a simulated Discord: two people and the bot in one channel."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import discord
import pytest
import simcord

import aforesaid
from aforesaid.bots import BotSession
from aforesaid.bots.discord import Discord
from aforesaid.settings import DiscordSettings, Secret
from aforesaid.testing import Request, ScriptedModel
from bots.remembering import QUIET

COMMUNITY = {**QUIET, "context": {"order": ["system", "portrait", "recent", "current"], "trim": ["recent", "portrait"]}}


@dataclass
class Guild:
    """A guild with Ann, Bob and the bot in the channel `general`."""

    env: simcord.Env
    session: BotSession
    memory: aforesaid.Memory
    space: str
    general: Any
    ann: Any
    bob: Any

    async def settle(self) -> None:
        await self.session.idle()

    async def say(self, who: Any, text: str, **more: Any) -> discord.Message:  # noqa: ANN401
        message: discord.Message = await who.send(self.general, text, **more)
        await self.settle()
        return message

    @property
    def me(self) -> str:
        """How the bot is mentioned."""
        assert self.env.bot.user is not None
        return self.env.bot.user.mention

    def said(self) -> list[str]:
        """What the bot said in the channel."""
        return [message.content for message in self.general.history() if message.author.bot]

    def there(self, who: Any) -> aforesaid.UserMemory:  # noqa: ANN401
        return self.memory.user(who.id, space=self.space, thread=str(self.general.id))


class Outside:
    """A session that works outside of the simulation, whose clock it must not follow."""

    def __init__(self, session: BotSession) -> None:
        self._session = session
        self._context = contextvars.copy_context()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        found = getattr(self._session, name)
        if not inspect.iscoroutinefunction(found):
            return found

        async def work(*given: Any) -> Any:  # noqa: ANN401
            return await asyncio.get_running_loop().create_task(found(*given), context=self._context.copy())

        return work


@asynccontextmanager
async def guild(memory: aforesaid.Memory) -> AsyncIterator[Guild]:
    platform = Discord(DiscordSettings(Secret("a-token-for-tests")))
    async with BotSession(memory, platform) as session:
        platform.attach(Outside(session))  # type: ignore[arg-type]
        async with simcord.run(platform.client, settle_timeout=20) as env:
            home = env.create_guild()
            general = home.create_text_channel("general")
            ann = home.add_member(env.create_user("annie", global_name="Ann"))
            bob = home.add_member(env.create_user("bobby", global_name="Bob"))
            yield Guild(env, session, memory, f"discord:{home.id}", general, ann, bob)
            await session.idle()


def connect(path: Path, **more: Any) -> Any:  # noqa: ANN401
    return aforesaid.connect(path / "memory.db", **{"profile": QUIET, "embedder": "none", **more})


def shown(result: simcord.InteractionResult) -> simcord.ResponseMessage:
    """What a person sees as the answer to a command."""
    return [each for each in (result.response, *result.followups) if each is not None][-1]


@pytest.mark.req("B4")
async def test_everything_that_is_said_is_stored_and_only_what_is_for_the_bot_is_answered(tmp_path: Path) -> None:
    async with connect(tmp_path) as memory, guild(memory) as here:
        await here.say(here.ann, "I like tea.")
        await here.say(here.bob, "Coffee for me.")
        assert here.said() == []
        asked = await here.say(here.bob, f"{here.me} who likes tea?")
        assert "I like tea." in here.said()[0]
        reply = here.general.history()[-1]
        assert reply.reference.message_id == asked.id
        await here.say(here.ann, "Thanks!", reply_to=reply)
        assert len(here.said()) == 2
        log = await here.there(here.ann).history(within="thread")
        assert [(message.name, message.text) for message in log if message.role == "user"] == [
            ("Ann", "I like tea."),
            ("Bob", "Coffee for me."),
            ("Bob", "@bot who likes tea?"),
            ("Ann", "Thanks!"),
        ]
        assert {message.author for message in log if message.role == "user"} == {str(here.ann.id), str(here.bob.id)}


@pytest.mark.req("B12", "B4")
async def test_portraits_of_two_people_are_kept_apart(tmp_path: Path) -> None:
    async with connect(tmp_path, profile=COMMUNITY) as memory, guild(memory) as here:
        await here.say(here.ann, "Bot remember that I like tea")
        await here.say(here.bob, "Bot remember that I like coffee")
        await here.say(here.ann, f"Bot, remember that <@{here.bob.id}> plays chess")
        await here.say(here.bob, "I moved to Berlin.")
        await here.say(here.ann, "Bot, remember this about bobby")
        await here.say(here.ann, "Bot what do you know about me?")
        about_ann = here.said()[-1]
        await here.say(here.ann, f"Bot what do you know about <@{here.bob.id}>")
        about_bob = here.said()[-1]
        assert "tea" in about_ann
        assert not any(word in about_ann for word in ("coffee", "chess", "Berlin"))
        assert all(word in about_bob for word in ("coffee", "chess", "Berlin"))
        assert "tea" not in about_bob
        assert await memory.get_memories(here.space, str(here.bob.id)) == about_bob
        assert await memory.get_memories("discord", str(here.bob.id)) is None
        await here.say(here.bob, "Bot forget that Bob plays chess")
        assert "forgotten" in here.said()[-1]


@pytest.mark.req("B11", "B13")
async def test_replies_are_made_with_the_portrait_and_with_names(tmp_path: Path) -> None:
    def script(request: Request) -> Any:  # noqa: ANN401
        return {"action": "none", "about": "", "fact": ""} if request.schema else "Tea, of course."

    with ScriptedModel(script) as model:
        settings = {
            "providers.s.base_url": model.base_url,
            "models.chat.chain": "s:scripted",
            "models.route.chain": "s:scripted",
        }
        async with connect(tmp_path, profile=COMMUNITY, settings=settings) as memory, guild(memory) as here:
            await here.there(here.ann).remember("I drink <tea> & nothing else", name="Ann")
            await here.say(here.bob, f"<@{here.ann.id}> is never late")
            await here.say(here.ann, f"bot, what do I drink, <@{here.bob.id}>?")
            assert here.said() == ["Tea, of course."]
            sent = model.requests[-1].body["messages"]
            system = sent[0]["content"]
            assert "<portrait>\n<person>Ann</person>" in system
            assert "&lt;tea&gt; &amp; nothing else" in system
            (talk,) = (turn["content"] for turn in sent[1:])
            assert "\nBob: @Ann is never late\n\nNow: " in talk
            assert talk.endswith("\n\nAnn: bot, what do I drink, @Bob?")
            assert str(here.ann.id) not in str(sent)
            # Stored with the ids.
            assert f"<@{here.ann.id}>" in (await here.there(here.bob).history())[-1].text


@pytest.mark.req("A12", "C13")
async def test_slash_commands_are_answered_to_who_gave_them_alone(tmp_path: Path) -> None:
    async with connect(tmp_path, profile={"extract": False}) as memory, guild(memory) as here:
        for number in range(3):
            await here.say(here.ann, f"I planted tree number {number}.")

        async def give(name: str, **options: str) -> Any:  # noqa: ANN401
            result = await here.ann.slash(here.general, name, **options)
            await here.settle()
            return result

        status = await give("summary_status")
        assert "Messages: 3 in all" in shown(status).content
        asked = await give("summary")
        assert shown(asked).content == "Choose storage format:"
        pressed = await here.ann.click(shown(asked), custom_id="aforesaid:json")
        await here.settle()
        assert "Send a number" in shown(pressed).content
        await here.say(here.ann, "25")
        assert here.said()[-1].endswith("Threshold: 25 messages")
        assert "tree number 1" in shown(await give("search", words="tree number 1")).content
        assert "remember that" in shown(await give("remember", words="I like trees")).content
        for command in ("historycontext", "analyze", "clear", "context", "summary_on", "summary_off", "summary_now"):
            assert shown(await give(command)).content
        assert "short-term window is empty" in shown(await give("clear")).content
        # Nobody else sees any of it.
        assert len(here.said()) == 1


async def test_edits_deletions_and_attachments(tmp_path: Path) -> None:
    async with connect(tmp_path) as memory, guild(memory) as here:
        message = await here.say(here.ann, "I live in Bern.", attachments=[("map.png", b"x" * 2000)])
        await here.ann.edit(message, "I live in Bonn.")
        await here.settle()
        log = [(entry.role, entry.text) for entry in await here.there(here.ann).history()]
        assert log[0] == ("user", "I live in Bonn.\n[attached: map.png (2 kB)]")
        await here.ann.delete(message)
        await here.settle()
        assert [entry.text for entry in await here.there(here.ann).history() if entry.role == "user"] == []


async def test_private_messages_are_a_memory_of_their_own(tmp_path: Path) -> None:
    async with connect(tmp_path) as memory, guild(memory) as here:
        await here.ann.send_dm("remember that I have a secret")
        await here.settle()
        await here.say(here.bob, f"bot what do you know about <@{here.ann.id}>")
        assert here.said() == ["I know nothing about Ann yet."]
        assert "secret" in str(await memory.user(here.ann.id, space="discord").portrait())


async def test_reminders_come_in_private_and_once(tmp_path: Path) -> None:
    async with connect(tmp_path) as memory, guild(memory) as here:
        await here.there(here.ann).note("reminder", "call mum", when=datetime.now(UTC))
        assert await here.session.remind() == 1
        assert await here.session.remind() == 0
        direct = here.ann.user.dm_channel if hasattr(here.ann, "user") else here.ann._user.dm_channel
        assert [message.content for message in direct.history()] == ["⏰ Reminder: call mum"]


async def test_nobody_is_pinged_by_what_the_bot_writes(tmp_path: Path) -> None:
    with ScriptedModel(["@everyone look!"]) as model:
        settings = {"providers.s.base_url": model.base_url, "models.chat.chain": "s:scripted"}
        async with connect(tmp_path, settings=settings) as memory, guild(memory) as here:
            await here.say(here.ann, "bot, shout")
            assert here.said() == ["@everyone look!"]
            assert not here.general.history()[-1].mention_everyone
            sent = [entry for entry in here.env.http_requests if entry.method == "POST" and "/messages" in entry.path]
            assert "'parse': []" in str(sent[-1]) or '"parse": []' in str(sent[-1])


async def test_what_was_written_while_the_bot_was_away_is_stored_once_each(tmp_path: Path) -> None:
    async with connect(tmp_path) as memory, guild(memory) as here:
        await here.say(here.ann, "before")
        first = here.env.bot
        fresh = Discord(DiscordSettings(Secret("a-token-for-tests")))
        fresh.attach(Outside(here.session))  # type: ignore[arg-type]
        # The old one hears nothing any more.
        first.on_message = _deaf  # type: ignore[attr-defined]
        for number in range(60):
            here.env.backend.create_message(here.general.id, here.ann.id, f"missed {number}")
        here.env.backend.create_message(here.general.id, here.bob.id, "bot, are you there?")
        for _ in range(2):
            await here.env.restart_bot(fresh.client)
            await here.settle()
            fresh = Discord(DiscordSettings(Secret("a-token-for-tests")))
            fresh.attach(Outside(here.session))  # type: ignore[arg-type]
        log = await here.there(here.ann).history(1000, within="thread")
        said = [message.text for message in log if message.role == "user"]
        assert said == ["before", *(f"missed {number}" for number in range(60)), "bot, are you there?"]
        # It was long ago: nobody waits for an answer any more.
        assert here.said() == []


async def _deaf(message: discord.Message) -> None:
    del message
