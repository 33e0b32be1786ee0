"""What is the same on every platform: stored first, answered in order, told when not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import aforesaid
from aforesaid.bots import Address, BotSession, Deleted, Edited, Pressed
from aforesaid.bots.sending import TRIES
from aforesaid.domain.receipt import Receipt
from aforesaid.errors import PlatformUnavailable, StoreDamaged, StoreError, StoreFull
from aforesaid.store.messages import AddMessage
from aforesaid.testing import ScriptedModel, faults
from bots.remembering import QUIET, Waits, texts, with_model
from bots.room import NOON, Room, incoming


async def test_a_message_is_stored_when_it_was_heard_and_answered_after(tmp_path: Path, room: Room) -> None:
    with ScriptedModel(["Hello Ann."]) as model:
        async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
            await session.hear(incoming("Hi", name="Ann"))
            stored = await memory.user("ann", space="room").history()
            assert stored[0].text == "Hi"
            await session.idle()
            assert room.sent == [(Address("room", "ann"), "Hello Ann.")]
            assert await texts(memory) == [("user", "Hi"), ("assistant", "Hello Ann.")]
            assert session.health().status == "active"


async def test_what_is_not_for_the_bot_is_stored_and_not_answered(memory: aforesaid.Memory, room: Room) -> None:
    async with BotSession(memory, room) as session:
        await session.hear(incoming("What a day", thread="general", wanted=False))
        await session.idle()
    assert room.sent == []
    assert len(await memory.user("ann", space="room:1").history()) == 1


async def test_a_message_that_is_handed_in_again_is_stored_and_answered_once(tmp_path: Path, room: Room) -> None:
    with ScriptedModel(["First.", "Never said."]) as model:
        for _ in range(2):  # the second time as after a restart
            async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
                await asyncio.gather(*(session.hear(incoming("Hi", id="7")) for _ in range(3)))
                await session.idle()
                assert await texts(memory) == [("user", "Hi"), ("assistant", "First.")]
    assert room.texts == ["First."]


async def test_without_a_model_the_log_holds_what_people_said_alone(memory: aforesaid.Memory, room: Room) -> None:
    async with BotSession(memory, room) as session:
        for _ in range(2):
            await session.hear(incoming("I like tea.", id="1"))
            await session.hear(incoming("What do I like?", id="2"))
            await session.hear(incoming("remember that I play chess", id="3"))
            await session.idle()
    assert len(room.texts) == 3
    assert "Noted: I like tea." in room.texts[0]
    assert room.texts[1] == "You said on 5 March 2026: I like tea."
    assert await texts(memory) == [
        ("user", "I like tea."),
        ("user", "What do I like?"),
        ("user", "remember that I play chess"),
        ("assistant", "I will remember that."),
    ]


async def test_an_answer_that_cannot_be_stored_is_sent_all_the_same(tmp_path: Path, room: Room) -> None:
    with ScriptedModel(["You like tea."]) as model:
        async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
            apply = memory.store.apply

            async def full(changes: Sequence[Any], *_: object, **__: object) -> Receipt:
                if isinstance(changes[0], AddMessage) and changes[0].draft.role == "assistant":
                    raise StoreFull("no room is left on /srv/secret-disk")
                return await apply(changes)

            memory.store.apply = full  # type: ignore[method-assign]
            await session.hear(incoming("What do I like?"))
            await session.idle()
    assert room.texts[0].startswith("You like tea.")
    assert "could not store" in room.texts[0]


async def test_each_thread_keeps_its_order_and_none_waits_for_another(tmp_path: Path, room: Room) -> None:
    gate = threading.Event()
    with ScriptedModel(
        lambda request: Waits(gate) if request.question == "slow" else f"answer to {request.question}"
    ) as model:
        async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
            for number in range(3):
                await session.hear(incoming("slow" if number == 0 else f"a{number}", "ann"))
            await session.hear(incoming("b", "bob"))
            while not room.texts:
                await asyncio.sleep(0.01)
            assert room.texts == ["answer to b"]
            assert room.typing_now == {Address("room", "ann")}
            gate.set()
            await session.idle()
    assert room.texts == ["answer to b", "Struck by a fault, and hardly readable.", "answer to a1", "answer to a2"]
    assert room.typing_now == set()


async def test_a_failing_model_is_told_and_the_message_is_kept(tmp_path: Path, room: Room) -> None:
    with ScriptedModel(["Back again."]) as model:
        model.fail(faults.ServerError())
        async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
            await session.hear(incoming("Hi"))
            await session.idle()
            assert "The language model could not answer" in room.texts[0]
            assert "What you said is stored" in room.texts[0]
            assert "fault" not in room.texts[0].lower()
            assert await texts(memory) == [("user", "Hi")]
            model.heal()
            await session.hear(incoming("And now?"))
            await session.idle()
    assert room.texts[1] == "Back again."


@pytest.mark.req("A13")
async def test_a_person_is_told_once_that_a_summary_failed(tmp_path: Path, room: Room) -> None:
    with ScriptedModel(lambda _: "ok") as model:
        settings = {"providers.s.base_url": model.base_url, "models.default": "s:scripted", "resilience.attempts": 1}
        profile = {"summaries": "tree", "tree_turns": 2, "extract": False}
        async with (
            aforesaid.connect(tmp_path / "memory.db", profile=profile, embedder="none", settings=settings) as memory,
            BotSession(memory, room) as session,
        ):
            for number in range(2):
                await session.hear(incoming(f"Turn {number}"))
                await session.idle()
            model.fail(faults.ServerError())
            await memory.upkeep()
            model.heal()
            for number in range(3):
                await session.hear(incoming(f"Afterwards {number}"))
                await session.idle()
            said = [text for text in room.texts if "a summary could not be made" in text]
            assert len(said) == 1
            assert await memory.user("ann", space="room").summaries() == []
            assert (await memory.user("ann", space="room").status()).since_last == 5


async def test_a_person_is_told_when_memory_is_not_durable_and_when_it_is_again(room: Room) -> None:
    async with (
        aforesaid.connect(":memory:", profile=QUIET, embedder="none") as memory,
        BotSession(memory, room) as session,
    ):
        for text in ("one", "two"):
            await session.hear(incoming(text))
            await session.idle()
        told = [text for text in room.texts if "kept in memory only" in text]
        assert len(told) == 1
        apply = memory.store.apply

        async def durable(changes: object, *_: object) -> object:
            return replace(await apply(changes), durable=True)  # type: ignore[arg-type]

        memory.store.apply = durable  # type: ignore[assignment,method-assign]
        await session.hear(incoming("three"))
        await session.idle()
    assert sum("stored durably again" in text for text in room.texts) == 1


@pytest.mark.defect("B12")
async def test_a_disk_that_is_full_is_told_and_so_is_that_it_works_again(memory: aforesaid.Memory, room: Room) -> None:
    async with BotSession(memory, room) as session:
        apply = memory.store.apply

        async def full(changes: object, *_: object) -> object:
            del changes
            raise StoreFull("no room is left on the device")

        memory.store.apply = full  # type: ignore[assignment,method-assign]
        await session.hear(incoming("one"))
        await session.idle()
        assert "I could not store that" in room.texts[-1]
        assert "secret-disk" not in room.texts[-1]
        memory.store.apply = apply  # type: ignore[method-assign]
        await session.hear(incoming("two"))
        await session.hear(incoming("three"))
        await session.idle()
    assert sum("I can store messages again" in text for text in room.texts) == 1
    assert "Got it." in room.texts[-1]


async def test_an_adapter_learns_whether_a_message_is_to_be_delivered_again(
    memory: aforesaid.Memory, room: Room
) -> None:
    async with BotSession(memory, room) as session:
        with failing(memory, StoreFull("no room is left on the device")):
            assert not await session.hear(incoming("one", id="1"), redelivers=True)
            assert not await session.hear(incoming("one", id="1"), redelivers=True)
            assert await session.hear(incoming("/help", id="2"), redelivers=True)
            assert await session.hear(incoming("   "))
        with failing(memory, StoreDamaged("a page is damaged")):
            assert await session.hear(incoming("never", "bob"), redelivers=True)
        assert await session.hear(incoming("x" * 70_000, "cem"))
        for _ in range(2):
            assert await session.hear(incoming("one", id="1"), redelivers=True)
        await session.idle()
    to_ann = [text for to, text in room.sent if to.user == "ann"]
    assert sum("I could not store that, and try again until I can" in text for text in to_ann) == 1
    assert sum(text == "(I can store messages again.)" for text in to_ann) == 1
    assert "Got it." in to_ann[-1]
    assert "so I will not remember it" in next(text for to, text in room.sent if to.user == "bob")
    assert [text for role, text in await texts(memory) if role == "user"] == ["one"]


async def test_an_answer_to_a_message_that_was_delivered_again_survives_a_platform_that_is_away(
    tmp_path: Path, room: Room
) -> None:
    with ScriptedModel(["First."]) as model:
        async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
            with failing(memory, StoreFull("no room is left on the device")):
                await session.hear(incoming("Hi", id="1"), redelivers=True)
                await session.idle()
            away = PlatformUnavailable("away", retry_after=0)
            room.failures.extend([away] * 2 * TRIES)  # the notice and the answer
            assert await session.hear(incoming("Hi", id="1"), redelivers=True)
            await session.idle()
            await session.resume()
            await session.idle()
    assert room.texts[-1] == "First."


@contextmanager
def failing(memory: aforesaid.Memory, error: StoreError) -> Iterator[None]:
    """Let every write fail until the end of the block."""
    apply = memory.store.apply

    async def fail(changes: object, *_: object) -> object:
        del changes
        raise error

    memory.store.apply = fail  # type: ignore[assignment,method-assign]
    yield
    memory.store.apply = apply  # type: ignore[method-assign]


@pytest.mark.defect("B12")
async def test_what_a_provider_reports_is_not_shown_in_a_channel(tmp_path: Path, room: Room) -> None:
    with ScriptedModel() as model:
        model.fail(faults.WrongKey())
        async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
            await session.hear(incoming("Bot, hello", thread="general"))
            await session.idle()
            told = "Whoever runs this bot finds the reason in its log. What you said is stored."
            assert room.texts == [f"(The language model could not answer. {told})"]
            assert session.stats.unanswered == 1


async def test_an_edit_is_a_new_version_and_a_deletion_takes_the_message_back(
    memory: aforesaid.Memory, room: Room
) -> None:
    address = Address("room", "ann")
    later = NOON + timedelta(minutes=5)
    ann = memory.user("ann", space="room")
    async with BotSession(memory, room) as session:
        await session.hear(incoming("I live in Bern.", id="1", name="Ann", attachments=("map.png (2 kB)",)))
        await session.idle()
        for _ in range(2):  # a platform may deliver an edit again, or report a link preview as one
            await session.edited(Edited(address, "1", "I live in Bonn.", later, "Ann"))
        await session.edited(Edited(address, "nobody-knows-it", "hello", later))
        await session.deleted(Deleted(address, "nobody-knows-it", later))
        assert [text for role, text in await texts(memory) if role != "assistant"] == [
            "I live in Bonn.\n[attached: map.png (2 kB)]"
        ]
        assert (await ann.history())[0].at == NOON
        await session.edited(Edited(address, "1", "I live in Bern.", later, "Ann"))
        for _ in range(2):
            await session.deleted(Deleted(address, "1", later))
        await session.edited(Edited(address, "1", "I live in Brig.", later, "Ann"))
        assert (session.stats.edits, session.stats.deletions) == (2, 1)
    assert [text for role, text in await texts(memory) if role != "assistant"] == []
    assert await ann.search("Bonn", min_score=0, kinds=["message"]) == []
    versions = [each for each in await ann.history(versions=True) if each.role == "user"]
    assert [each.taken_back for each in versions] == [False, False, False, True]


async def test_an_edit_or_a_deletion_that_cannot_be_stored_ends_no_bot(
    memory: aforesaid.Memory, room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_ann, by_bob = (Address("room:1", user, "general") for user in ("ann", "bob"))
    async with BotSession(memory, room) as session:
        await session.hear(incoming("I plant tulips.", id="1", thread="general", wanted=False))
        assert await session.edited(Edited(by_ann, "1", "x" * 70_000, NOON)), "to try again would change nothing"
        assert "at most 65,536" in str(session.health().issues)

        async def full(*_: object) -> None:
            raise StoreFull("no room is left on the device")

        with monkeypatch.context() as patched:
            patched.setattr(memory.store, "apply", full)
            assert not await session.edited(Edited(by_ann, "1", "I plant roses.", NOON))
            assert not await session.deleted(Deleted(by_ann, "1", NOON))
        # A moderator's event names the moderator.
        assert await session.edited(Edited(by_bob, "1", "I plant roses.", NOON))
        assert [text for _, text in await texts(memory, "ann", "room:1")] == ["I plant roses."]


async def test_a_model_sees_what_a_message_replies_to(tmp_path: Path, room: Room) -> None:
    with ScriptedModel() as model:
        async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
            await session.hear(incoming("I plant tulips.", id="1", thread="general", wanted=False))
            at_once = replace(incoming("Bot, and that?", id="2", thread="general"), quoted="Dan wants\nto go to Mars")
            await session.hear(replace(at_once, reply_to="55"))
            await session.hear(replace(incoming("Bot, why?", id="3", thread="general"), reply_to="1"))
            await session.idle()
        asked = [str(request.messages[-1]["content"]) for request in model.requests if "stream" in request.body]
    assert "(In reply to: “Dan wants to go to Mars”)\nBot, and that?" in asked[0]
    assert "(In reply to: “I plant tulips.”)\nBot, why?" in asked[1]


async def test_a_reply_names_the_message_that_it_replies_to(memory: aforesaid.Memory, room: Room) -> None:
    async with BotSession(memory, room) as session:
        await session.hear(incoming("Tea or coffee?", id="1"))
        await session.hear(replace(incoming("The first.", id="2"), reply_to="1"))
        await session.idle()
    assert [each.reply_to for each in await memory.user("ann", space="room").history() if each.role == "user"] == [
        None,
        "1",
    ]


async def test_attachments_are_noted_and_what_no_store_can_hold_is_replaced(
    memory: aforesaid.Memory, room: Room
) -> None:
    async with BotSession(memory, room) as session:
        await session.hear(incoming("", attachments=("photo", "plan.pdf (82 kB)")))
        await session.hear(incoming("a\0b\ud800c"))
        await session.hear(incoming("   "))
        await session.idle()
    said = [text for role, text in await texts(memory) if role == "user"]
    assert said == ["[attached: photo]\n[attached: plan.pdf (82 kB)]", "a\ufffdb?c"]


async def test_what_is_too_long_is_told(memory: aforesaid.Memory, room: Room) -> None:
    async with BotSession(memory, room) as session:
        await session.hear(incoming("x" * 70_000))
        await session.idle()
    assert "at most 65,536" in room.texts[0]


@pytest.mark.req("A12")
async def test_the_set_up_with_buttons_abandoned_repeated_and_answered_wrongly(tmp_path: Path, room: Room) -> None:
    address = Address("room", "ann")
    summarising = aforesaid.connect(tmp_path / "memory.db", profile={"extract": False}, embedder="none")
    async with summarising as memory, BotSession(memory, room) as session:

        async def say(text: str) -> str:
            await session.hear(incoming(text))
            await session.idle()
            return room.texts[-1]

        async def press(word: str) -> str:
            await session.pressed(Pressed(address, word))
            await session.idle()
            return room.texts[-1]

        assert await say("/summary") == "Choose storage format:"
        assert [button.word for button in room.buttons[-1]] == ["sqlite", "json"]
        assert "Send a number 1-500." in await press("sqlite")
        assert "not open any more" in await press("sqlite")
        assert "Got it" in await say("never mind, what a day")
        assert "not open any more" in await press("json")
        await say("/summary")
        await press("json")
        assert "is not between" in await say("501")
        assert "Threshold: 15 messages" in await say("15")
        # All at once, faster than anything is answered.
        await asyncio.gather(*(session.hear(incoming(text)) for text in ("/summary", "sqlite", "20")))
        await session.idle()
        assert "Threshold: 20 messages" in room.texts[-1]
        # Only what is no command and no answer to one is part of the conversation.
        assert [text for role, text in await texts(memory) if role == "user"] == ["never mind, what a day"]


async def test_a_flood_is_stored_and_only_its_beginning_answered(tmp_path: Path, room: Room) -> None:
    gate = threading.Event()
    with ScriptedModel(lambda _: Waits(gate)) as model:
        async with with_model(model, tmp_path / "memory.db") as memory, BotSession(memory, room) as session:
            for number in range(40):
                await session.hear(incoming(f"flood {number}"))
            gate.set()
            await session.idle()
            log = await texts(memory)
    assert sum(role == "user" for role, _ in log) == 40
    assert sum(role == "assistant" for role, _ in log) == 20
    assert sum("a lot at once" in text for text in room.texts) == 1


@pytest.mark.defect("U3")
async def test_whoever_waits_for_a_command_is_answered_when_the_bot_stops(memory: aforesaid.Memory, room: Room) -> None:
    begun = asyncio.Event()

    async def never_ends(*_: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with BotSession(memory, room, patience=0.01) as session:
        session.assistant.router.answer = never_ends  # type: ignore[method-assign,assignment]
        address = Address("room", "ann")
        running = asyncio.create_task(session.command(address, "/status"))
        await begun.wait()
        queued = asyncio.create_task(session.command(address, "/status"))
        await asyncio.sleep(0)
    answers = await asyncio.wait_for(asyncio.gather(running, queued), 30)
    assert ["stopping" in answer.text for answer in answers] == [True, True]
