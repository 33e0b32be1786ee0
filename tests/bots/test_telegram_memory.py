"""What a bot on Telegram keeps and uses: over the move of a group, a failing disk, and in the profile of accounts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

import aforesaid
from aforesaid.errors import StoreFull
from aforesaid.store.people import Marks
from aforesaid.store.sqlite import SqliteStore
from aforesaid.testing import ScriptedModel
from aforesaid.testing.telegram import FakeTelegram, Fault
from bots.remembering import QUIET
from bots.test_telegram import ANN, opened, running
from intercepting import innermost


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as server:
        yield server


@pytest.mark.parametrize("learned", ["from the old group", "from the new group", "when sending"])
async def test_a_group_that_becomes_a_supergroup_keeps_its_memory(
    telegram: FakeTelegram, tmp_path: Path, learned: str
) -> None:
    old, new = -500, -1_000_000_000_500
    async with opened(tmp_path) as memory:
        async with running(telegram, memory):
            first = telegram.say(ANN, "bot remember that I like tea", group=old)
            await telegram.next_sent(0)
            if learned == "from the old group":
                telegram.say(ANN, None, group=old, migrate_to_chat_id=new)
            elif learned == "from the new group":
                telegram.say(ANN, None, group=new, migrate_from_chat_id=old)
            else:
                moved = Fault(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to=new)
                telegram.fail("sendMessage", moved, times=1)
                telegram.say(ANN, "bot, still there?", group=old)
                assert (await telegram.next_sent(1)).chat == new
        before = len(telegram.sent)
        async with running(telegram, memory):  # also after a restart
            # A supergroup counts its messages from the beginning.
            telegram.say(ANN, "bot what do you know about me?", group=new, message_id=first)
            told = await telegram.next_sent(before)
            assert (told.chat, told.replies_to) == (new, first)
            assert "tea" in told.text
        log = await memory.user("1001", space=f"telegram:{old}", thread=str(old)).history(within="thread")
        assert [message.text for message in log if message.role == "user"][-1] == "bot what do you know about me?"
        assert await memory.users(f"telegram:{new}") == []


@pytest.mark.req("C11", "C12")
async def test_the_context_of_an_account_reaches_the_model_of_a_bot(telegram: FakeTelegram, tmp_path: Path) -> None:
    with ScriptedModel(lambda request: f"re {request.question}") as model:
        settings = {"providers.s.base_url": model.base_url, "models.chat.chain": "s:scripted"}
        async with aforesaid.connect(
            tmp_path / "memory.db", profile="account", embedder="deterministic", settings=settings
        ) as memory:
            ann = memory.user("1001", space="telegram")
            await ann.add("user", "The blue safe in the cellar opens with 4711.")
            for number in range(60):
                await ann.add("user", f"Today I walked {number} miles along the river.")
            await memory.upkeep()
            async with running(telegram, memory):
                telegram.say(ANN, "The blue safe in the cellar opens with what?")
                await telegram.next_sent(0)
        sent = model.requests[-1].body["messages"]
        assert [turn["role"] for turn in sent] == ["system", "user"], "turns of one role are one message"
        system, said = (turn["content"] for turn in sent)
        # History first, then the last ten messages, then the question below what is near in meaning.
        assert "walked" in system
        lines = [f"Today I walked {number} miles along the river." for number in range(50, 60)]
        assert [line for line in said.splitlines() if line in lines] == lines
        assert "4711" in system + said
        assert said.endswith("The blue safe in the cellar opens with what?")


@pytest.mark.req("A14", "A15")
async def test_people_are_told_when_the_store_fails_and_when_it_works_again(
    telegram: FakeTelegram, tmp_path: Path
) -> None:
    with ScriptedModel(lambda request: f"re {request.question}") as model:
        settings = {"providers.s.base_url": model.base_url, "models.chat.chain": "s:scripted", "fallback": "memory"}
        async with aforesaid.connect(
            tmp_path / "memory.db", profile=QUIET, embedder="none", settings=settings
        ) as memory:
            disk = cast("Any", innermost(memory.store, SqliteStore))
            apply = disk.apply
            async with running(telegram, memory):
                telegram.say(ANN, "one")
                await telegram.next_sent(0)

                async def full(changes: object, *_: object) -> object:
                    del changes
                    raise StoreFull("no room is left on the device")

                disk.apply = full
                for text in ("two", "three"):
                    telegram.say(ANN, text)
                    await telegram.wait_for(lambda: _was_sent(telegram, f"re {text}"))  # noqa: B023
                told = [sent.text for sent in telegram.sent]
                assert sum("cannot be written right now" in text for text in told) == 1
                assert sum("kept in memory only" in text for text in told) == 1
                disk.apply = apply
                telegram.say(ANN, "four")
                await telegram.wait_for(lambda: any("stored durably again" in sent.text for sent in telegram.sent))
                await telegram.wait_for(lambda: _was_sent(telegram, "re four"))
    async with opened(tmp_path) as memory:
        log = [message.text for message in await memory.user("1001", space="telegram").history()]
        assert sorted(log) == sorted(
            [*("one", "two", "three", "four"), *(f"re {n}" for n in ("one", "two", "three", "four"))]
        )
        assert await memory.store.read(Marks()) == {}, "nothing is owed any more"


def _was_sent(telegram: FakeTelegram, text: str) -> bool:
    return text in [sent.text for sent in telegram.sent]
