"""The bot on a real server, in text."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import aforesaid
from aforesaid.bots.mumble.messages import ChannelState, UserRemove
from aforesaid.errors import PlatformRefused
from aforesaid.testing import ScriptedModel
from aforesaid.testing.script import Request
from mumble.botting import bot, remembering, session_of
from mumble.mumbling import PASSWORD, SUPERUSER, MumbleServer, Someone, needs_server, someone, until

pytestmark = needs_server


async def log(memory: aforesaid.Memory, server: MumbleServer, user: str, thread: str = "0") -> list[tuple[str, str]]:
    place = memory.user(f"name-{user}@127.0.0.1:{server.port}", space=space(server), thread=thread)
    return [(message.name or message.role, message.text) for message in await place.history(100, within="thread")]


async def whisper(person: Someone, text: str, name: str = "Robbie") -> str:
    """Write to the bot in private, and return its answer."""
    await until(lambda: session_of(person, name))
    await person.link.write(text, session=session_of(person, name))
    return await person.told()


@pytest.mark.req("D15")
async def test_the_bot_answers_in_the_channel_and_in_private_and_keeps_them_apart(
    mumble: MumbleServer, tmp_path: Path
) -> None:
    with ScriptedModel(["Hello everybody.", "Hello Ann, between us."]) as model:
        async with (
            remembering(tmp_path / "memory.db", model) as memory,
            bot(memory, mumble) as robbie,
            someone(mumble.address, "ann") as ann,
        ):
            await until(lambda: session_of(ann, "Robbie"))
            await ann.link.write("Is <b>anybody</b> here?<br/>It is me &amp; you.", channel=0)
            assert await ann.told() == "Hello everybody."
            assert await whisper(ann, "My PIN is 1234.") == "Hello Ann, between us."
            assert await log(memory, mumble, "ann") == [
                ("ann", "Is anybody here?\nIt is me & you."),
                ("assistant", "Hello everybody."),
            ]
            private = await memory.user(f"name-ann@127.0.0.1:{mumble.port}", space="mumble").history()
            assert [message.text for message in private] == ["My PIN is 1234.", "Hello Ann, between us."]
            assert "PIN" not in str(model.requests[0].body)
            assert robbie.session.health().status == "active"


@pytest.mark.req("B11")
async def test_two_people_and_the_bot_in_one_channel(mumble: MumbleServer, tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        return "Bob has a cat." if "cat" in str(request.body["messages"]) else "I do not know."

    with ScriptedModel(answer) as model:
        async with (
            remembering(tmp_path / "memory.db", model) as memory,
            bot(memory, mumble),
            someone(mumble.address, "ann") as ann,
            someone(mumble.address, "bob") as bob,
        ):
            await until(lambda: len(ann.link.people.persons) == 3 and len(bob.link.people.persons) == 3)
            await bob.link.write("I have a cat called Minka.", channel=0)
            await ann.told()
            await ann.link.write("robbie, who has a cat?", channel=0)
            assert await ann.told() == await last_told(bob, "robbie, who has a cat?") == "Bob has a cat."
            assert [name for name, _ in await log(memory, mumble, "ann")] == ["bob", "ann", "assistant"]
            # The model reads names, never the ids under which people are stored.
            prompt = str(model.requests[-1].body["messages"])
            assert "bob" in prompt
            assert "name-bob" not in prompt
            stored = await memory.user(f"name-ann@127.0.0.1:{mumble.port}", space=space(mumble), thread="0").history(
                9, within="thread"
            )
            assert [message.user for message in stored] == [
                f"name-{name}@127.0.0.1:{mumble.port}" for name in ("bob", "ann", "ann")
            ]


async def test_each_answer_has_a_receipt_of_what_the_model_was_sent(mumble: MumbleServer, tmp_path: Path) -> None:
    with ScriptedModel(["Bob likes tea.", "Nobody told me."]) as model:
        async with (
            remembering(tmp_path / "memory.db", model) as memory,
            bot(memory, mumble),
            someone(mumble.address, "ann") as ann,
            someone(mumble.address, "bob") as bob,
        ):
            await until(lambda: len(ann.link.people.persons) == 3 and len(bob.link.people.persons) == 3)
            await bob.link.write("I like tea.", channel=0)
            await ann.told()
            await ann.link.write("robbie, who likes tea?", channel=0)
            assert await ann.told() == "Bob likes tea."
            assert await whisper(ann, "And who likes coffee?") == "Nobody told me."
            name = f"name-ann@127.0.0.1:{mumble.port}"
            channel, private = memory.user(name, space=space(mumble), thread="0"), memory.user(name, space="mumble")
            tea, _, reply = await channel.history(within="thread")
            (receipt,) = await channel.receipts(replies=[reply])
            assert (receipt.thread, receipt.model) == ("0", "scripted:scripted")
            assert receipt.ids("message") == [tea.seq], "what Bob said"
            _, answer = await private.history()
            assert [(each.reply, each.knew) for each in await private.receipts()] == [(answer.seq, "nothing")]


def space(server: MumbleServer) -> str:
    return f"mumble:127.0.0.1:{server.port}"


async def last_told(person: Someone, before: str) -> str:
    while (text := await person.told()) == before:
        pass
    return text


@pytest.mark.req("C13")
async def test_the_commands_work_as_everywhere(mumble: MumbleServer, tmp_path: Path) -> None:
    async with (
        remembering(tmp_path / "memory.db", summaries="tree") as memory,
        bot(memory, mumble),
        someone(mumble.address, "ann") as ann,
    ):
        assert "/summary_status" in await whisper(ann, "/help")
        assert "Choose storage format:<br/>[sqlite] SQLite" in await whisper(ann, "/summary")
        assert "Send a number 1-500." in await whisper(ann, "sqlite")
        assert "Threshold: 25 messages" in await whisper(ann, "25")
        assert "remember" in await whisper(ann, "/remember I like tea")
        assert "tea" in await whisper(ann, "/portrait")
        assert "No language model is connected" in await whisper(ann, "The weather is nice.")
        for command, expected in {
            "/context": "The weather is nice.",
            "/historycontext": "",
            "/analyze": "",
            "/clear": "short-term window is empty",
            "/summary_status": "Threshold: 25",
            "/nonsense": "There is no command",
        }.items():
            assert expected in await whisper(ann, command), command


async def test_long_answers_and_code_arrive_whole(mumble: MumbleServer, tmp_path: Path) -> None:
    lines = [f"line {number}: if a < b && b > {number}: \N{GRINNING FACE}" for number in range(300)]
    with ScriptedModel(["Here:\n```python\n" + "\n".join(lines) + "\n```\nThat is all."]) as model:
        async with (
            remembering(tmp_path / "memory.db", model) as memory,
            bot(memory, mumble),
            someone(mumble.address, "ann") as ann,
        ):
            got = await whisper(ann, "Write code.")
            while "That is all." not in got:
                got += await ann.told()
            for line in lines:
                assert line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") in got
            assert got.count("<pre>") == got.count("</pre>") > 3


async def test_pictures_are_noted_and_strange_messages_do_no_harm(mumble: MumbleServer, tmp_path: Path) -> None:
    with ScriptedModel(lambda request: f"Answer {len(request.body['messages'])}") as model:
        async with (
            remembering(tmp_path / "memory.db", model) as memory,
            bot(memory, mumble) as robbie,
            someone(mumble.address, "ann") as ann,
        ):
            await until(lambda: session_of(ann, "Robbie"))
            strange = [
                '<img src="data:image/png;base64,iVBORw0KGgo="/>',
                "<a href='https://example.org/a'>a link</a> مرحبا \N{GRINNING FACE}",
                "<b><i>never closed <a href=",
                "a\0b",
                "<script>alert(1)</script>shown",
                "x" * 4000,
            ]
            for text in [*strange, "", "<br/>", "   "]:
                await ann.link.write(text, session=session_of(ann, "Robbie"))
            for _ in strange:
                await ann.told()
            private = memory.user(f"name-ann@127.0.0.1:{mumble.port}", space="mumble")
            said = [message.text for message in await private.history() if message.role == "user"]
            assert said[:2] == ["[attached: picture]", "a link (https://example.org/a) مرحبا \N{GRINNING FACE}"]
            assert said[2].startswith("never closed")
            assert said[4:] == ["shown", "x" * 4000]
            assert robbie.session.health().status == "active"


async def test_the_bot_sits_in_its_channel_and_says_when_there_is_none(mumble: MumbleServer, tmp_path: Path) -> None:
    async with someone(mumble.address, SUPERUSER, PASSWORD) as root, remembering(tmp_path / "memory.db") as memory:
        await root.link.send(ChannelState(parent=0, name="Kitchen"))
        await until(lambda: root.link.people.find_channel("Kitchen"))
        kitchen = root.link.people.find_channel("Kitchen")
        assert kitchen is not None
        async with bot(memory, mumble, channel="kitchen"):
            await until(
                lambda: any(
                    each.name == "Robbie" and each.channel == kitchen.id for each in root.link.people.persons.values()
                )
            )
        async with bot(memory, mumble, channel="Cellar") as robbie:
            with pytest.raises(PlatformRefused, match=r"no channel 'Cellar'.*Kitchen"):
                await robbie.task


async def test_a_server_that_is_restarted_finds_the_bot_again(tmp_path: Path) -> None:
    server = MumbleServer(tmp_path)
    server.start()
    try:
        with ScriptedModel(["One.", "Two."]) as model:
            async with remembering(tmp_path / "memory.db", model) as memory, bot(memory, server) as robbie:
                async with someone(server.address, "ann") as ann:
                    assert await whisper(ann, "first") == "One."
                await asyncio.to_thread(server.kill)
                await until(lambda: robbie.session.health().status == "failing")
                await asyncio.to_thread(server.start)
                async with someone(server.address, "ann") as ann:
                    assert await whisper(ann, "second") == "Two."
                private = await memory.user(f"name-ann@127.0.0.1:{server.port}", space="mumble").history()
                assert [message.text for message in private] == ["first", "One.", "second", "Two."]
                assert robbie.session.stats.reconnections >= 1
                assert robbie.session.health().status == "active"
    finally:
        server.stop()


async def test_a_bot_that_is_kicked_stops_and_says_why(mumble: MumbleServer, tmp_path: Path) -> None:
    async with (
        remembering(tmp_path / "memory.db") as memory,
        bot(memory, mumble) as robbie,
        someone(mumble.address, SUPERUSER, PASSWORD) as root,
    ):
        await until(lambda: session_of(root, "Robbie"))
        await root.link.send(UserRemove(session=session_of(root, "Robbie"), reason="go away"))
        with pytest.raises(PlatformRefused, match=r"kicked.*go away"):
            await robbie.task


async def test_a_reminder_waits_for_somebody_who_is_away_and_comes_once(mumble: MumbleServer, tmp_path: Path) -> None:
    async with remembering(tmp_path / "memory.db") as memory, bot(memory, mumble) as robbie:
        ann_id = f"name-ann@127.0.0.1:{mumble.port}"
        due = datetime.now(UTC) - timedelta(minutes=1)
        await memory.user(ann_id, space="mumble").note("reminder", "Water the plants", when=due)
        assert await robbie.session.remind() == 0
        assert robbie.session.health().status == "active", "somebody who is away is no failure"
        async with someone(mumble.address, "ann") as ann, someone(mumble.address, "bob") as bob:
            await until(lambda: robbie.platform._session(ann_id))
            await robbie.session.remind()
            assert "Water the plants" in await ann.told()
            assert await robbie.session.remind() == 0
            assert not bob.seen
