"""A conversation is read in the order in which it took place, although two clocks write its times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aforesaid.bots import BotSession, Edited
from aforesaid.bots.contract import MessageTimes
from aforesaid.domain import checks
from aforesaid.testing import ScriptedModel
from bots.remembering import texts, with_model
from bots.room import NOON, Room, incoming

CONVERSATION = [("user", "One"), ("assistant", "First."), ("user", "Two"), ("assistant", "Second.")]


@pytest.mark.req("B11", "D3")
@pytest.mark.parametrize("behind", [timedelta(0), timedelta(seconds=5)], ids=["same second", "slow clock"])
async def test_a_message_right_after_a_reply_is_read_after_it(tmp_path: Path, room: Room, behind: timedelta) -> None:
    with ScriptedModel(["First.", "Second."]) as model:
        async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
            for text in ("One", "Two"):
                await session.hear(incoming(text, at=datetime.now(UTC).replace(microsecond=0) - behind))
                await session.idle()
            assert await texts(memory) == CONVERSATION


@pytest.mark.req("D3")
async def test_a_reply_is_read_after_a_question_of_a_platform_whose_clock_is_ahead(tmp_path: Path, room: Room) -> None:
    with ScriptedModel(["First.", "Second."]) as model:
        async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
            for text in ("One", "Two"):
                await session.hear(incoming(text, at=datetime.now(UTC) + timedelta(minutes=5)))
                await session.idle()
            assert await texts(memory) == CONVERSATION


@pytest.mark.req("D3")
async def test_a_message_that_was_sent_while_the_bot_was_away_keeps_its_time(tmp_path: Path, room: Room) -> None:
    with ScriptedModel(["First.", "Second."]) as model:
        async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
            await session.hear(incoming("Now", at=datetime.now(UTC)))
            await session.idle()
            await session.hear(incoming("At noon", at=NOON))
            await session.idle()
            assert [text for _, text in await texts(memory)] == ["At noon", "Now", "First.", "Second."]
            assert (await memory.user("ann", space="room").history())[0].at == NOON


async def test_an_edit_right_after_a_reply_keeps_its_place(tmp_path: Path, room: Room) -> None:
    second = datetime.now(UTC).replace(microsecond=0)
    with ScriptedModel(["First."]) as model:
        async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
            said = incoming("Tee", at=second)
            await session.hear(said)
            await session.idle()
            await session.edited(Edited(said.address, said.id, "Tea", second))
            assert [text for _, text in await texts(memory)] == ["Tea", "First."]


@pytest.mark.req("D3")
def test_a_late_message_is_read_after_an_earlier_one_that_was_moved_behind_a_reply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times, thread = MessageTimes(), ("room", "main")

    def after(seconds: float) -> datetime:
        return NOON + timedelta(seconds=seconds)

    def at(seconds: float) -> None:
        monkeypatch.setattr(checks, "now", lambda: checks.microseconds(after(seconds), "now"))

    at(20)
    reply = times.sent(thread)
    earlier = times.received(thread, after(1))
    at(40)
    late = times.received(thread, after(2))
    assert reply <= earlier <= late
