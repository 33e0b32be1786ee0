"""Telegram, through aiogram itself, against a Bot API server on loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from aiohttp import ClientSession

import aforesaid
from aforesaid.bots import BotSession, run
from aforesaid.bots.telegram import Telegram, formatted
from aforesaid.errors import InvalidInput, PlatformRefused, StoreBusy, StoreFull
from aforesaid.memory import Connecting
from aforesaid.settings import Secret, TelegramSettings
from aforesaid.store.messages import AddMessage
from aforesaid.testing import ScriptedModel
from aforesaid.testing.telegram import FakeTelegram, Fault, Person
from bots.remembering import QUIET

ANN = Person(1001, "Ann", "ann_b")
BOB = Person(1002, "Bob")
GROUP = -100500


@pytest.fixture
async def telegram() -> AsyncIterator[FakeTelegram]:
    async with FakeTelegram() as server:
        yield server


def platform(telegram: FakeTelegram, **more: str) -> Telegram:
    settings = TelegramSettings(Secret(telegram.token), api=telegram.base_url, **more)  # type: ignore[arg-type]
    return Telegram(settings, poll_seconds=1, retry_seconds=0.02)


def opened(path: Path) -> Connecting:
    return aforesaid.connect(path / "memory.db", profile=QUIET, embedder="none")


@asynccontextmanager
async def running(telegram: FakeTelegram, memory: aforesaid.Memory, **more: str) -> AsyncIterator[BotSession]:
    """Run a bot until the end of the block."""
    bot = platform(telegram, **more)
    session = BotSession(memory, bot)
    task = asyncio.create_task(run(memory, bot, session=session, first_pause=0.05))
    try:
        yield session
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await bot.close()


async def test_a_direct_chat_with_memory(telegram: FakeTelegram, tmp_path: Path) -> None:
    with ScriptedModel(["Hello Ann!", "You live in Bern."]) as model:
        settings = {"providers.s.base_url": model.base_url, "models.chat.chain": "s:scripted"}
        async with aforesaid.connect(
            tmp_path / "memory.db", profile=QUIET, embedder="none", settings=settings
        ) as memory:
            async with running(telegram, memory) as session:
                telegram.say(ANN, "I live in Bern.")
                assert (await telegram.next_sent(0)).text == "Hello Ann!"
                number = telegram.say(ANN, "Where do I live?")
                reply = await telegram.next_sent(1)
                assert (reply.chat, reply.text, reply.replies_to) == (1001, "You live in Bern.", None)
                assert 1001 in telegram.typing
                assert {"command": "summary", "description": "set up summaries, in two steps"} in telegram.menus[""]
                assert {each["command"]: each["description"] for each in telegram.menus["de"]}["help"] == "diese Liste"
                assert session.health().status == "active"
            log = await memory.user("1001", space="telegram").history()
            assert [message.text for message in log][0::2] == ["I live in Bern.", "Where do I live?"]
            assert [(message.id, message.name) for message in log][2] == (str(number), "Ann")
            await memory.receipt_keeper.settled()
            receipts = await memory.user("1001", space="telegram").receipts()
            replies = [message.seq for message in log if message.role == "assistant"]
            assert [receipt.reply for receipt in receipts] == replies[::-1], "what each reply knew"
            assert receipts[0].knew == "2 messages"
        assert "I live in Bern." in str(model.requests[-1].body)


async def test_long_replies_and_code(telegram: FakeTelegram, tmp_path: Path) -> None:
    code = "\n".join(f"print({number})  # 🎉" for number in range(400))
    with ScriptedModel([f"Look:\n```python\n{code}\n```\n**Bold** and `code`."]) as model:
        settings = {"providers.s.base_url": model.base_url, "models.chat.chain": "s:scripted"}
        async with (
            aforesaid.connect(tmp_path / "memory.db", profile=QUIET, embedder="none", settings=settings) as memory,
            running(telegram, memory),
        ):
            telegram.say(ANN, "Show me some code.")
            await telegram.wait_for(lambda: any("Bold" in sent.text for sent in telegram.sent))
    assert len(telegram.sent) > 1
    for sent in telegram.sent:
        pre = next(entity for entity in sent.entities if entity["type"] == "pre")
        block = sent.text.encode("utf-16-le")[pre["offset"] * 2 : (pre["offset"] + pre["length"]) * 2]
        assert block.decode("utf-16-le").startswith("print(")
        assert pre["language"] == "python"
    lines = [line for sent in telegram.sent for line in sent.text.splitlines() if line.startswith("print")]
    assert lines == code.splitlines()


def test_marks_become_entities() -> None:
    plain, entities = formatted("🎉 **hi** `x` and ** not ** or `")
    assert plain == "🎉 hi x and ** not ** or `"
    assert [(entity.type, entity.offset, entity.length) for entity in entities] == [("bold", 3, 2), ("code", 6, 1)]


@pytest.mark.req("A12")
async def test_the_set_up_with_its_keyboard(telegram: FakeTelegram, tmp_path: Path) -> None:
    summarising = aforesaid.connect(tmp_path / "memory.db", profile={"extract": False}, embedder="none")
    async with summarising as memory, running(telegram, memory):
        telegram.say(ANN, "/summary")
        asked = await telegram.next_sent(0)
        assert asked.buttons == ("sqlite", "json")
        telegram.press(ANN, asked, "json")
        assert "Send a number 1-500." in (await telegram.next_sent(1)).text
        telegram.press(ANN, asked, "json")
        assert "not open any more" in (await telegram.next_sent(2)).text
        telegram.say(ANN, "0")
        assert "is not between" in (await telegram.next_sent(3)).text
        telegram.say(ANN, "15")
        assert (await telegram.next_sent(4)).text.endswith("Threshold: 15 messages")
        assert "answerCallbackQuery" in telegram.calls
        assert (await memory.user("1001", space="telegram").status()).threshold == 15


async def test_in_a_group_everything_is_stored_and_only_what_is_for_the_bot_is_answered(
    telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with opened(tmp_path) as memory, running(telegram, memory):
        telegram.say(ANN, "I like tea.", group=GROUP)
        telegram.say(BOB, "/help@another_bot", group=GROUP)
        asked = telegram.say(BOB, "@memory_bot who likes tea?", group=GROUP)
        answer = await telegram.next_sent(0)
        assert answer.chat == GROUP
        assert answer.replies_to == asked
        assert "I like tea." in answer.text
        telegram.say(ANN, "thanks", group=GROUP, replies_to=answer)
        await telegram.next_sent(1)
        telegram.say(BOB, "bot remember that I play chess", group=GROUP)
        assert (await telegram.next_sent(2)).text == "I will remember that."
        telegram.say(BOB, "/portrait@memory_bot", group=GROUP)
        assert "chess" in (await telegram.next_sent(3)).text
        space = f"telegram:{GROUP}"
        there = await memory.user("1002", space=space, thread=str(GROUP)).history(within="thread")
        assert [message.text for message in there if message.role == "user"] == [
            "I like tea.",
            "/help@another_bot",
            "@memory_bot who likes tea?",
            "thanks",
            "bot remember that I play chess",
        ]
        # What is known in the group stays in the group.
        assert await memory.user("1002", space="telegram").portrait() is None
        assert await memory.user("1001", space=space).portrait() is None


async def test_edits_attachments_and_what_nobody_wrote(telegram: FakeTelegram, tmp_path: Path) -> None:
    async with opened(tmp_path) as memory, running(telegram, memory):
        number = telegram.say(ANN, "I live in Bern.")
        telegram.edit(ANN, number, "I live in Bonn.")
        document = {"file_id": "f", "file_unique_id": "u", "file_name": "plan.pdf", "file_size": 82_000}
        telegram.say(ANN, None, document=document, caption="the plan")
        telegram.say(ANN, None, voice={"file_id": "f", "file_unique_id": "u", "duration": 3})
        telegram.say(ANN, None, new_chat_title="nobody said that")
        telegram.say(BOB, None, location={"latitude": 52.5, "longitude": 13.4})
        await telegram.wait_for(lambda: len(telegram.sent) == 4)
        said = [m.text for m in await memory.user("1001", space="telegram").history() if m.role == "user"]
        assert said == [
            "I live in Bonn.",
            "the plan\n[attached: plan.pdf (82 kB)]",
            "[attached: voice message, 3 s]",
        ]


async def test_an_update_that_comes_again_is_answered_once(telegram: FakeTelegram, tmp_path: Path) -> None:
    async with opened(tmp_path) as memory:
        for _ in range(2):  # before and after a restart
            async with running(telegram, memory):
                if not telegram.sent:
                    telegram.say(ANN, "hello")
                telegram.replay()
                await telegram.confirmed()
                await telegram.next_sent(0)
        assert len(telegram.sent) == 1
        assert len(await memory.user("1001", space="telegram").history()) == 1


async def test_what_is_written_while_the_bot_is_away_is_answered_when_it_is_back(
    telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with opened(tmp_path) as memory:
        async with running(telegram, memory):
            telegram.say(ANN, "one")
            await telegram.next_sent(0)
        telegram.say(ANN, "two")
        async with running(telegram, memory) as session:
            await telegram.next_sent(1)
            await telegram.stop()
            while session.health().status == "active":
                await asyncio.sleep(0.02)
            assert "cannot be reached" in str(session.health().issues)
            telegram.say(ANN, "three")
            await telegram.start()
            await telegram.next_sent(2)
            await telegram.wait_for(lambda: session.health().status == "active")
        said = [m.text for m in await memory.user("1001", space="telegram").history() if m.role == "user"]
        assert said == ["one", "two", "three"]


@pytest.mark.parametrize("through_webhook", [False, True])
async def test_a_message_that_cannot_be_stored_is_confirmed_when_it_can(
    telegram: FakeTelegram, tmp_path: Path, *, through_webhook: bool
) -> None:
    port = free_port()
    hook = {"webhook": f"http://127.0.0.1:{port}/hook", "listen": f"127.0.0.1:{port}"} if through_webhook else {}
    async with opened(tmp_path) as memory, running(telegram, memory, **hook) as session:
        apply, tries = memory.store.apply, 0

        async def full(changes: object, *_: object) -> object:
            nonlocal tries
            tries += isinstance(changes[0], AddMessage)  # type: ignore[index]
            raise StoreFull("no room is left on the device")

        memory.store.apply = full  # type: ignore[assignment,method-assign]
        telegram.say(ANN, "one")
        telegram.say(ANN, "two")
        await telegram.wait_for(lambda: tries > 2)
        assert session.stats.stored == 0
        memory.store.apply = apply  # type: ignore[method-assign]
        await telegram.confirmed()
        await telegram.wait_for(lambda: sum("Got it." in sent.text for sent in telegram.sent) > 0)
        said = [m.text for m in await memory.user("1001", space="telegram").history() if m.role == "user"]
    assert said == ["one", "two"]
    assert sum("I could not store that" in sent.text for sent in telegram.sent) == 1
    assert "lost to me" not in str(telegram.sent)


@pytest.mark.parametrize("through_webhook", [False, True])
async def test_a_message_that_no_store_accepts_is_confirmed(
    telegram: FakeTelegram, tmp_path: Path, *, through_webhook: bool
) -> None:
    port = free_port()
    hook = {"webhook": f"http://127.0.0.1:{port}/hook", "listen": f"127.0.0.1:{port}"} if through_webhook else {}
    async with opened(tmp_path) as memory, running(telegram, memory, **hook):
        telegram.say(ANN, "x" * 70_000)
        assert "at most 65,536" in (await telegram.next_sent(0)).text
        await telegram.confirmed()


async def test_an_edit_that_cannot_be_stored_is_confirmed_when_it_can(telegram: FakeTelegram, tmp_path: Path) -> None:
    async with opened(tmp_path) as memory, running(telegram, memory) as session:
        number = telegram.say(ANN, "I live in Bern")
        await telegram.next_sent(0)
        apply, tried = memory.store.apply, asyncio.Event()

        async def busy(changes: object, *_: object) -> object:
            del changes
            tried.set()
            raise StoreBusy("another process holds the store")

        memory.store.apply = busy  # type: ignore[assignment,method-assign]
        telegram.edit(ANN, number, "I live in Bonn")
        await tried.wait()
        memory.store.apply = apply  # type: ignore[method-assign]
        await telegram.confirmed()
        assert session.stats.edits == 1


async def test_a_wrong_token_is_told_at_once(telegram: FakeTelegram, tmp_path: Path) -> None:
    async with opened(tmp_path) as memory:
        wrong = Telegram(TelegramSettings(Secret("42:wrong"), api=telegram.base_url))
        with pytest.raises(PlatformRefused, match="the token was refused by Telegram"):
            await run(memory, wrong)
        await wrong.close()
    with pytest.raises(PlatformRefused, match="it looks like 123456789"):
        Telegram(TelegramSettings(Secret("nonsense")))
    with pytest.raises(InvalidInput, match=r"no Telegram token is configured.*AFORESAID_BOTS__TELEGRAM__TOKEN"):
        Telegram(TelegramSettings())


async def test_limits_are_respected_and_those_who_block_the_bot_do_not_stop_it(
    telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with opened(tmp_path) as memory, running(telegram, memory) as session:
        telegram.fail("sendMessage", Fault(429, "Too Many Requests: retry after 1", retry_after=1), times=2)
        telegram.say(ANN, "one")
        await telegram.next_sent(0)
        assert telegram.calls.count("sendMessage") == 3
        telegram.block(BOB)
        telegram.say(BOB, "hello")
        await telegram.wait_for(lambda: "blocked" in str(session.health().issues))
        telegram.fail("getUpdates", Fault(502, "Bad Gateway"), times=2)
        telegram.fail("sendMessage", Fault(500, "Internal Server Error"), times=1)
        telegram.say(ANN, "two")
        await telegram.next_sent(1)


async def test_a_token_that_is_revoked_ends_the_bot(telegram: FakeTelegram, tmp_path: Path) -> None:
    async with opened(tmp_path) as memory:
        bot = platform(telegram)
        task = asyncio.create_task(run(memory, bot))
        await telegram.wait_for(lambda: "getUpdates" in telegram.calls)
        telegram.token = f"{telegram.token}-revoked"
        with pytest.raises(PlatformRefused, match="refused by Telegram"):
            await task
        await bot.close()


async def test_the_webhook(telegram: FakeTelegram, tmp_path: Path) -> None:
    async with opened(tmp_path) as memory:
        port = free_port()
        address = f"http://127.0.0.1:{port}/telegram/hook"
        async with running(telegram, memory, webhook=address, listen=f"127.0.0.1:{port}"):
            telegram.say(ANN, "hello")
            assert "Hello!" in (await telegram.next_sent(0)).text
            assert "getUpdates" not in telegram.calls
            async with ClientSession() as session, session.post(address, json={"update_id": 1}) as answer:
                assert answer.status == 403
            for _ in range(20):
                telegram.say(ANN, "again")
            await telegram.confirmed()
        log = await memory.user("1001", space="telegram").history()
        assert [message.text for message in log if message.role == "user"] == ["hello", *["again"] * 20]
        # Back to asking.
        async with running(telegram, memory):
            telegram.say(ANN, "/help")
            await telegram.wait_for(lambda: "/help" in telegram.sent[-1].text)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.defect("B3")
@pytest.mark.req("G6")
async def test_a_reminder_in_free_text_is_confirmed_and_cancelled(telegram: FakeTelegram, tmp_path: Path) -> None:
    async with opened(tmp_path) as memory, running(telegram, memory):
        telegram.say(ANN, "/timezone Europe/Berlin")
        assert "Europe/Berlin" in (await telegram.next_sent(0)).text
        telegram.say(ANN, "remind me tomorrow at 7 to call mum")
        confirmed = (await telegram.next_sent(1)).text
        assert " at 07:00 (Europe/Berlin): call mum" in confirmed
        (reminder,) = await memory.user("1001", space="telegram").reminders()
        assert reminder.remind_at is not None
        assert reminder.remind_at.astimezone(ZoneInfo("Europe/Berlin")).hour == 7
        telegram.say(ANN, "/reminders")
        assert ", 07:00  call mum" in (await telegram.next_sent(2)).text
        telegram.say(ANN, f"/reminders cancel {reminder.id}")
        assert (await telegram.next_sent(3)).text == "Cancelled: call mum"
        assert await memory.user("1001", space="telegram").reminders() == []


@pytest.mark.defect("B10")
@pytest.mark.req("G8")
async def test_a_new_person_is_welcomed(telegram: FakeTelegram, tmp_path: Path) -> None:
    async with opened(tmp_path) as memory, running(telegram, memory):
        telegram.say(ANN, "/start")
        assert "Three things to try" in (await telegram.next_sent(0)).text


async def test_reminders_reach_the_person_and_not_the_group(telegram: FakeTelegram, tmp_path: Path) -> None:
    async with opened(tmp_path) as memory, running(telegram, memory) as session:
        await memory.user("1001", space="telegram").note("reminder", "call mum", when=datetime.now(UTC))
        await memory.user("1002", space=f"telegram:{GROUP}").note("reminder", "chess at six", when=datetime.now(UTC))
        await telegram.wait_for(lambda: len(telegram.sent) == 2)
        assert {(sent.chat, sent.text) for sent in telegram.sent} == {
            (1001, "⏰ Reminder: call mum"),
            (1002, "⏰ Reminder: chess at six"),
        }
        assert await session.remind() == 0


async def test_a_copy_of_ones_data_comes_in_private_and_erasing_asks_first(
    telegram: FakeTelegram, tmp_path: Path
) -> None:
    async with opened(tmp_path) as memory, running(telegram, memory):
        telegram.say(ANN, "the code is zebra42", group=GROUP)
        telegram.say(ANN, "/export", group=GROUP)
        await telegram.wait_for(lambda: any("in private" in sent.text for sent in telegram.sent))
        told, file, hint = telegram.sent
        assert (told.chat, file.chat, hint.chat) == (1001, 1001, GROUP)
        assert file.file is not None
        assert b"zebra42" in file.file
        telegram.block(BOB)
        telegram.say(BOB, "/export", group=GROUP)
        assert "Write to me in private first" in (await telegram.next_sent(3)).text
        telegram.say(ANN, "/forget_me", group=GROUP)
        asked = await telegram.next_sent(4)
        telegram.press(ANN, asked, "erase everything")
        assert "Everything is erased: 1 message," in (await telegram.next_sent(5)).text
        assert await memory.user("1001", space=f"telegram:{GROUP}").history() == []
