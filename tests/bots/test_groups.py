"""Commands and requests in groups: they speak of the group, and of nothing else."""

from __future__ import annotations

import pytest

import aforesaid
from aforesaid.bots import BotSession
from aforesaid.models.embed import LocalEmbedder
from bots.room import Room, incoming


async def hear(
    session: BotSession, text: str, user: str, thread: str | None = "family", *, wanted: bool = True
) -> None:
    names: dict[str, tuple[str, ...]] = {"oma": ("Oma",), "tom": ("Tom",)}
    message = incoming(text, user, thread, name=user.title(), wanted=wanted, people=names)
    await session.hear(message)
    await session.idle()


async def family(session: BotSession) -> None:
    """Oma and Tom talk in a group; Tom also writes in private and in another group."""
    await hear(session, "There is Nutella in the cellar.", "oma", wanted=False)
    await hear(session, "I bought bread and Nutella on Monday.", "tom", wanted=False)
    await hear(session, "My secret Nutella is under the bed.", "tom", None)
    # A platform of somebody's own may have private chats in the same space.
    alone = session.memory.user("tom", space="room:1")
    await alone.add("user", "Another secret Nutella is under the bed.")
    await alone.remember("Nutella is under the bed")
    await hear(session, "The other Nutella stands in the office.", "tom", "office", wanted=False)


@pytest.mark.defect("Q6")
@pytest.mark.parametrize(
    "command", ["/search Nutella", "/summary_now", "/explain Nutella", "/analyze", "/historycontext"]
)
async def test_commands_in_a_group_answer_from_what_everybody_said_there(
    memory: aforesaid.Memory, room: Room, command: str
) -> None:
    async with BotSession(memory, room) as session:
        await family(session)
        await hear(session, command, "tom")
    said = room.texts[-1]
    assert "Oma" in said
    assert "cellar" in said
    assert "bread" in said
    assert "under the bed" not in said
    assert "office" not in said


@pytest.mark.defect("Q6")
async def test_portraits_in_a_group_tell_of_its_members_what_they_said_there(room: Room) -> None:
    embedder = LocalEmbedder(ranker=False)
    async with aforesaid.connect(":memory:", embedder=embedder) as memory, BotSession(memory, room) as session:
        await family(session)
        await hear(session, "Bot, I live in Bern.", "oma")
        await hear(session, "Bot, I live in Basel.", "tom")
        await memory.upkeep()
        await hear(session, "/portrait", "oma")
        everybody = room.texts[-1]
        await hear(session, "/portrait Tom", "oma")
        found = await memory.user("tom", space="room:1").memories()
    assert all(word in everybody for word in ("Oma", "Bern", "Tom", "Basel"))
    assert "under the bed" not in everybody
    assert "Basel" in room.texts[-1]
    assert "Bern" not in room.texts[-1]
    # The name of the bot is no part of what is said to it.
    assert not [each.text for each in found if "bot" in each.text.casefold()]


async def test_commands_in_private_answer_from_what_the_person_said(memory: aforesaid.Memory, room: Room) -> None:
    async with BotSession(memory, room) as session:
        await family(session)
        await hear(session, "/search Nutella", "tom", None)
        assert "under the bed" in room.texts[-1]
        assert "cellar" not in room.texts[-1]
        await hear(session, "/summary_now", "oma", None)
    assert "nothing new" in room.texts[-1]


@pytest.mark.defect("Q6")
async def test_the_status_of_a_group_counts_the_messages_of_that_group(memory: aforesaid.Memory, room: Room) -> None:
    async with BotSession(memory, room) as session:
        await family(session)
        await hear(session, "/summary_status", "tom")
    assert "Messages: 2 in all, 0 archived" in room.texts[-1]


@pytest.mark.defect("Q6")
async def test_a_group_summary_leaves_out_who_switched_memory_off(memory: aforesaid.Memory, room: Room) -> None:
    async with BotSession(memory, room) as session:
        await family(session)
        await hear(session, "/summary_off", "oma")
        await hear(session, "/summary_now", "ann")
        assert "bread" in room.texts[-1]
        assert "cellar" not in room.texts[-1]
        await hear(session, "/summary_now", "tom", "empty")
    assert "nothing new" in room.texts[-1]


@pytest.mark.parametrize(
    ("said", "answers"),
    [
        ("Tom, can you bring the cake?", 0),
        ("@Tom kannst du den Kuchen mitbringen?", 1),
        ("<@tom>, where do I live?", 0),
        ("Tom, @bot knows when the dentist is", 1),
        ("Bot, can Tom bring the cake?", 1),
        ("Where does Tom live?", 1),
        ("Sorry, where do I live?", 1),
    ],
)
async def test_who_calls_another_member_does_not_mean_the_bot(
    memory: aforesaid.Memory, room: Room, said: str, answers: int
) -> None:
    async with BotSession(memory, room) as session:
        await hear(session, "I am here.", "tom", wanted=False)
        await hear(session, said, "oma")
    assert len(room.texts) == answers
    stored = await memory.user("oma", space="room:1", thread="family").history()
    assert stored[0].text == said


@pytest.mark.defect("Q1")
async def test_the_name_of_the_bot_is_taken_off_commands_and_answers_to_its_questions(
    memory: aforesaid.Memory, room: Room
) -> None:
    async with BotSession(memory, room) as session:
        await hear(session, "Bot, /summary", "tom")
        assert "Choose storage format" in room.texts[-1]
        await hear(session, "Bot, sqlite", "tom", wanted=False)
    assert "Send a number" in room.texts[-1] or "Storage: SQLite" in room.texts[-1]
