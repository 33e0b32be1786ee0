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
@pytest.mark.parametrize("command", ["/today", "/week"])
async def test_the_days_of_a_group_are_told_from_what_everybody_said_there(
    memory: aforesaid.Memory, room: Room, command: str
) -> None:
    async with BotSession(memory, room) as session:
        await family(session)
        await hear(session, command, "tom")
        assert "nothing new" in room.texts[-1], "what was said is of other days"
        for user, text in (("oma", "There is Nutella in the cellar."), ("tom", "I bought bread on Monday.")):
            await memory.user(user, space="room:1", thread="family").add("user", text, name=user.title())
        await hear(session, command, "tom")
    said = room.texts[-1]
    assert all(word in said for word in ("Oma", "cellar", "Tom", "bread"))
    assert "under the bed" not in said


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


@pytest.mark.parametrize(
    ("remind", "shows", "moves", "cancels"),
    [
        (
            "remind us on Saturday at 14:00 to bring the chairs",
            "what are our reminders",
            "move the chairs to Sunday at 15:00",
            "cancel the chairs",
        ),
        (
            "Erinnere uns am Samstag um 14:00 an die Stühle",
            "Welche Erinnerungen haben wir?",
            "Verschieb die Stühle auf Sonntag 15:00",
            "Sag die Stühle ab",
        ),
        (
            "Rappelle-nous samedi à 14:00 d'apporter les chaises",
            "quels sont nos rappels",
            "Décale les chaises à dimanche 15:00",
            "Annule les chaises",
        ),
        (
            "Recuérdanos el sábado a las 14:00 traer las sillas",
            "cuáles son nuestros recordatorios",
            "Mueve las sillas al domingo a las 15:00",
            "Cancela las sillas",
        ),
        (
            "Ricordaci sabato alle 14:00 di portare le sedie",
            "quali sono i nostri promemoria",
            "Sposta le sedie a domenica alle 15:00",
            "Annulla le sedie",
        ),
        (
            "Lembra a gente no sábado às 14:00 de trazer as cadeiras",
            "quais são os nossos lembretes",
            "Muda as cadeiras para domingo às 15:00",
            "Cancela as cadeiras",
        ),
        (
            "Herinner ons zaterdag om 14:00 aan de stoelen",
            "wat zijn onze herinneringen",
            "Verzet de stoelen naar zondag 15:00",
            "Annuleer de stoelen",
        ),
        (
            "Przypomnij nam w sobotę o 14:00 o krzesłach",
            "jakie mamy przypomnienia",
            "Przełóż krzesła na niedzielę o 15:00",
            "Odwołaj krzesła",
        ),
        (
            "Напомни нам в субботу в 14:00 про стулья",
            "какие у нас напоминания",
            "Перенеси стулья на воскресенье в 15:00",
            "Отмени стулья",
        ),
        (
            "Cumartesi saat 14:00'te sandalyeleri herkese hatırlat",
            "hatırlatmalarımız neler",
            "Sandalyeleri pazar saat 15:00'e ertele",
            "Sandalyeleri iptal et",
        ),
        (
            "ذكرنا يوم السبت الساعة 14:00 بإحضار الكراسي",
            "ما هي تذكيراتنا",
            "أجل الكراسي إلى الأحد الساعة 15:00",
            "ألغ الكراسي",
        ),
        (
            "提醒我们周六14:00带椅子",
            "我们有哪些提醒",
            "把椅子改到周日15:00",
            "取消椅子",
        ),
        (
            "土曜の14:00に椅子を持っていくとみんなに知らせて",
            "私たちのリマインダーを見せて",
            "椅子を日曜の15:00に変更して",
            "椅子をキャンセルして",
        ),
        (
            "토요일 14:00에 의자 가져오라고 우리한테 알려줘",
            "우리 알림 뭐 있어?",
            "의자 알림을 일요일 15:00으로 옮겨 줘",
            "의자 알림 취소해 줘",
        ),
        (
            "सबको शनिवार 14:00 बजे कुर्सियाँ लाने की याद दिला देना",
            "हमारे रिमाइंडर क्या हैं",
            "कुर्सियाँ रविवार 15:00 बजे कर दो",
            "कुर्सियाँ वाला रद्द कर दो",
        ),
    ],
)
async def test_a_reminder_for_everybody_is_shown_moved_and_cancelled_by_any_member_of_that_chat(
    room: Room, remind: str, shows: str, moves: str, cancels: str
) -> None:
    embedder = LocalEmbedder(ranker=False)
    async with aforesaid.connect(":memory:", embedder=embedder) as memory, BotSession(memory, room) as session:
        await hear(session, remind, "oma")
        (reminder,) = await memory.user("oma", space="room:1").reminders()
        await hear(session, shows, "tom")
        assert reminder.text in room.texts[-1]
        for elsewhere in ("office", None):
            await hear(session, "/reminders", "tom", elsewhere)
            assert reminder.text not in room.texts[-1]
        await hear(session, f"/reminders cancel {reminder.id}", "tom", "office")
        await hear(session, moves, "tom")
        (moved,) = await memory.user("oma", space="room:1").reminders()
        assert moved.remind_at is not None
        assert (moved.remind_at.weekday(), moved.remind_at.hour) == (6, 15)
        await hear(session, cancels, "tom")
        assert await memory.user("oma", space="room:1").reminders() == []


async def test_a_reminder_for_one_person_is_not_listed_for_the_others(room: Room) -> None:
    embedder = LocalEmbedder(ranker=False)
    async with aforesaid.connect(":memory:", embedder=embedder) as memory, BotSession(memory, room) as session:
        await hear(session, "remind me tomorrow at 10:00 to buy a present for Tom", "oma")
        await hear(session, "remind Oma tomorrow at 11:00 to call Tom's school", "ann")
        await hear(session, "remind us tomorrow at 12:00 to call the baker", "oma")
        await hear(session, "what's coming up", "tom")
        assert "baker" in room.texts[-1]
        await hear(session, "what are our reminders", "tom")
        assert "baker" in room.texts[-1]
        assert "present" not in room.texts[-1]
        assert "school" not in room.texts[-1]
        await hear(session, "cancel all reminders", "tom")
        assert [each.text for each in await memory.user("oma", space="room:1").reminders()] != []
