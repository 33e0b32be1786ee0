"""What a bot owes is delivered later: answers, parts of answers, reminders."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import aforesaid
from aforesaid.bots import Address, BotSession, run
from aforesaid.bots.bot_session import found
from aforesaid.bots.reminding import LEASE
from aforesaid.bots.sending import TRIES
from aforesaid.errors import PlatformRefused, PlatformUnavailable, StoreUnavailable
from aforesaid.testing import ScriptedModel
from bots.remembering import Waits, texts, with_model
from bots.room import NOON, Room, incoming

DUE = NOON.replace(year=2126)
"""When the clock of a test reads it, a reminder that could be set for a time ahead is due."""


async def test_what_was_not_answered_before_the_bot_stopped_is_answered_when_it_runs_again(
    tmp_path: Path, room: Room
) -> None:
    gate = threading.Event()
    with ScriptedModel(lambda request: Waits(gate) if request.question == "slow" else "Late.") as model:
        async with with_model(model, tmp_path / "memory.db") as memory:
            async with BotSession(memory, room, patience=0.0) as session:
                for text in ("slow", "then this", "/help"):
                    await session.hear(incoming(text))
            gate.set()
            assert room.texts == []
            async with BotSession(memory, room) as session:
                await session.resume()
                await session.resume()
                await session.idle()
            assert room.texts[1] == "Late."
            assert "stopped before I had answered /help" in room.texts[2]
            assert [role for role, _ in await texts(memory)] == ["user", "user", "assistant", "assistant"]
            async with BotSession(memory, room) as session:
                await session.resume()
                await session.idle()
    assert len(room.texts) == 3


async def test_an_answer_that_could_not_be_sent_is_sent_when_the_platform_is_back(tmp_path: Path, room: Room) -> None:
    with ScriptedModel(["Once."]) as model:
        async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
            room.failures = [PlatformUnavailable("down", retry_after=0.0)] * TRIES
            await session.hear(incoming("Hi"))
            await session.idle()
            assert room.texts == []
            assert "could not be sent" in str(session.health().issues)
            await session.resume()
            await session.idle()
            assert room.texts == ["Once."]
            assert len(model.requests) == 1


async def test_of_a_long_answer_only_what_was_not_sent_is_sent_later(tmp_path: Path, room: Room) -> None:
    parts = [letter * 1900 for letter in "abc"]
    with ScriptedModel(["\n\n".join(parts)]) as model:
        async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
            send, sent = room.send, list[object]()

            async def once(*given: Any, **more: Any) -> None:  # noqa: ANN401
                if len(sent) == 2:
                    room.failures = [PlatformUnavailable("down", retry_after=0.0)]
                await send(*given, **more)
                sent.append(given)

            room.send = once  # type: ignore[method-assign]
            await session.hear(incoming("Hi"))
            await session.idle()
            assert room.texts == parts[:2]
            room.send = send  # type: ignore[method-assign]
            await session.resume()
            await session.idle()
    assert room.texts == parts


async def test_sending_is_tried_again_and_given_up_when_it_is_refused(memory: aforesaid.Memory, room: Room) -> None:
    async with BotSession(memory, room) as session:
        room.failures = [PlatformUnavailable("busy", retry_after=0.0), PlatformUnavailable("busy", retry_after=0.0)]
        await session.hear(incoming("/help"))
        await session.idle()
        assert len(room.texts) == 1
        room.failures = [PlatformRefused("the bot was blocked by the user")]
        await session.hear(incoming("/help"))
        await session.idle()
        assert len(room.texts) == 1
        assert "blocked" in str(session.health().issues)
        await session.hear(incoming("/help"))
        await session.idle()
        assert session.health().issues == ()


async def test_reminders_are_delivered_once_to_the_right_person(memory: aforesaid.Memory, room: Room) -> None:
    due = DUE - timedelta(minutes=1)
    ann, bob = memory.user("ann", space="room"), memory.user("bob", space="room:1", thread="general")
    await ann.note("reminder", "call mum", when=due)
    await bob.note("reminder", "water the plants", when=due)
    await memory.user("eve", space="elsewhere").note("reminder", "not ours", when=due)
    await ann.note("reminder", "later", when=DUE + timedelta(hours=1))
    async with (
        BotSession(memory, room, clock=lambda: DUE) as session,
        BotSession(memory, room, clock=lambda: DUE) as other,
    ):
        await asyncio.gather(session.remind(), other.remind(), session.remind())
    assert sorted(room.sent) == [
        (Address("room", "ann"), "⏰ Reminder: call mum"),
        (Address("room:1", "bob"), "⏰ Reminder: water the plants"),
    ]
    assert (await ann.history())[-1].text == "⏰ Reminder: call mum"


@pytest.mark.defect("U1")
async def test_an_error_of_the_platforms_library_does_not_end_reminders(
    memory: aforesaid.Memory, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aforesaid.bots.reminding.EVERY", 0.01)
    room.failures = [ValueError("the library cannot parse the reply")]
    await memory.user("ann", space="room").note("reminder", "call mum", when=DUE - timedelta(minutes=1))
    async with asyncio.timeout(60), BotSession(memory, room, clock=lambda: DUE):
        while room.failures:
            await asyncio.sleep(0)
        await memory.user("bob", space="room").note("reminder", "water the plants", when=DUE - timedelta(minutes=1))
        await room.something_sent.wait()
        assert room.texts == ["⏰ Reminder: water the plants"]
    # The first one is due again when its lease ends.
    assert await BotSession(memory, room, clock=lambda: DUE + LEASE).remind() == 1


@pytest.mark.defect("U1")
async def test_a_store_that_fails_while_catching_up_does_not_end_it(
    tmp_path: Path, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    async def fails_once(user: aforesaid.UserMemory, id: str, **versions: bool) -> object:  # noqa: A002
        nonlocal asked
        asked += 1
        if asked == 1:
            raise StoreUnavailable("the database is restarting")
        return await found(user, id, **versions)

    with ScriptedModel(["Once."]) as model:
        async with with_model(model, tmp_path / "memory.db") as memory:
            async with BotSession(memory, room) as session:
                room.failures = [PlatformUnavailable("down", retry_after=0.0)] * TRIES
                await session.hear(incoming("Hi"))
                await session.idle()
            monkeypatch.setattr("aforesaid.bots.bot_session._CATCH_UP", 0.01)
            monkeypatch.setattr("aforesaid.bots.bot_session.found", fails_once)
            async with asyncio.timeout(60), BotSession(memory, room) as session:
                session.stats.mark_ok()
                await room.something_sent.wait()
    assert room.texts == ["Once."]


async def test_a_reminder_that_could_not_be_sent_is_not_lost(memory: aforesaid.Memory, room: Room) -> None:
    ann = memory.user("ann", space="room:1", thread="general")
    await ann.add("user", "hello")
    await ann.note("reminder", "call mum", when=DUE - timedelta(minutes=1))
    room.failures = [PlatformUnavailable("down", retry_after=0.0)] * 3
    assert await BotSession(memory, room, clock=lambda: DUE).remind() == 0
    assert room.sent == []
    assert room.failures == []
    assert await BotSession(memory, room, clock=lambda: DUE).remind() == 0
    assert room.sent == [], "somebody may still be at it"
    session = BotSession(memory, room, clock=lambda: DUE + LEASE)
    # Who cannot be reached in private is reminded where they spoke last.
    room.failures = [PlatformRefused("cannot write to this user")]
    assert await session.remind() == 1
    assert room.sent == [(Address("room:1", "ann", "general"), "⏰ Reminder: call mum")]
    assert await session.remind() == 0


async def test_a_bot_connects_again_and_ends_when_it_is_refused(memory: aforesaid.Memory) -> None:
    class Shaky(Room):
        tries = 0

        async def check(self) -> str:
            self.tries += 1
            if self.tries == 4:
                raise PlatformRefused("the token was refused")
            if self.tries == 1:
                raise PlatformUnavailable("no network")
            return "shaky"

        async def listen(self, session: BotSession) -> None:
            await session.hear(incoming(f"hello {self.tries}"))
            raise PlatformUnavailable("the connection is lost")

    room = Shaky()
    ready: list[str] = []
    with pytest.raises(PlatformRefused, match="the token was refused"):
        await run(memory, room, ready=ready.append, first_pause=0.001)
    assert ready == ["shaky", "shaky"]
    assert [text for role, text in await texts(memory) if role == "user"] == ["hello 2", "hello 3"]
