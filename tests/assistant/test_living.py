"""Short conversations without a language model, in several languages, through the session of a bot."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest

import aforesaid
from aforesaid.assistant import Assistant
from aforesaid.bots import BotSession
from aforesaid.models.embed import LocalEmbedder
from bots.room import NOON, Room, incoming


async def live(path: Path, said: Sequence[str], language: str | None = None) -> list[str]:
    """Return the replies to what a person says, with the encoder that is built in."""
    room = Room()
    async with (
        aforesaid.connect(path / "memory.db", embedder=LocalEmbedder(ranker=False)) as memory,
        BotSession(memory, room) as session,
    ):
        if language is not None:
            await memory.user("ann", space="room").set("language", language)
        for number, text in enumerate(said):
            await session.hear(incoming(text, name="Ann", at=NOON + timedelta(minutes=number)))
            await session.idle()
    return room.texts


@pytest.mark.defect("Q5")
@pytest.mark.parametrize(
    ("said", "setting", "answer"),
    [
        ("Hallo", None, "Hallo!"),
        ("Ciao", None, "Ciao!"),
        ("Hola", None, "¡Hola!"),
        ("Merhaba", None, "Merhaba!"),
        ("Cześć", None, "Cześć!"),
        ("こんにちは", None, "こんにちは！"),
        ("Hello", None, "Hello!"),
        ("Hi", "tr", "Merhaba!"),
        ("Hallo", "nl", "Hallo!"),
        ("👍", "de", "🙂"),
    ],
)
async def test_a_greeting_of_one_word_is_answered_in_its_language(
    tmp_path: Path, said: str, setting: str | None, answer: str
) -> None:
    assert (await live(tmp_path, [said], setting))[0].splitlines()[0] == answer


@pytest.mark.parametrize(
    ("said", "last"),
    [
        (["Mein Hund heißt Bello", "Vergiss, was ich über meinen Hund gesagt habe"], "Ich habe vergessen:"),
        (["うちの犬の名前はポチです", "犬について話したことを忘れて"], "忘れました："),
        (["Ich bin Jonas.", "Ach so, ja klar"], "🙂"),
        (["Me llamo Lucía.", "Claro que sí"], "🙂"),
        (["Me llamo Lucía.", "Qué cansada estoy"], "Te entiendo."),
        (["Me llamo Lucía.", "qué hora es"], "Son las "),
        (["Ich heiße Jonas.", "Erzähl mir einen Witz"], "Das kann ich ohne Sprachmodell nicht."),
        (["Ich heiße Jonas.", "Wer bist du?"], "Ich bin Aforesaid, ein Bot"),
        (["Ich heiße Jonas.", "Bot?"], "Hallo!"),
        (["Ich heiße Jonas.", "Mach's gut"], "Bis bald!"),
        (["Ich heiße Jonas.", "Hilfe"], "Ich merke mir, was du mir erzählst"),
        (["Me llamo Lucía.", "No entiendo"], "Recuerdo lo que me cuentas"),
        (["Me llamo Lucía.", "Que descanses"], "¡Hasta pronto!"),
        (["Ich heiße Jonas.", "Schönen Feierabend"], "Bis bald!"),
        (["Benim adım Ayşe.", "benim hakkımda ne biliyorsun"], "Ad: Ayşe"),
    ],
)
async def test_small_talk_is_answered_fittingly(tmp_path: Path, said: list[str], last: str) -> None:
    assert (await live(tmp_path, said))[-1].startswith(last)


async def test_the_birthday_of_a_child_is_not_the_parents(tmp_path: Path) -> None:
    said = ["Soy Diego y tengo dos hijos, Ana y Luis", "El cumpleaños de Ana es el 3 de mayo"]
    asked, own = (await live(tmp_path, [*said, "cuándo es el cumpleaños de Ana", "cuándo es mi cumpleaños"]))[-2:]
    assert "3 de mayo" in asked or "El cumpleaños de Ana" in asked
    assert "Esto lo sé: Cumpleaños" not in asked + own


@pytest.mark.defect("Q3")
async def test_what_the_bot_says_it_has_forgotten_is_not_quoted_afterwards(tmp_path: Path) -> None:
    said = ["Am Freitag um 15 Uhr habe ich einen Termin beim Frisör", "Der Frisör ist doch erst um 16 Uhr"]
    replies = await live(tmp_path, [*said, "Vergiss das mit dem Frisör", "wann ist der Frisör?"])
    assert replies[-2].startswith("Ich habe vergessen:")
    assert "Frisör" not in replies[-1]


async def test_a_reminder_for_somebody_keeps_their_name_in_a_direct_chat(tmp_path: Path) -> None:
    (reply,) = await live(tmp_path, ["Erinnere Tom morgen um 10 an den Schlüssel"])
    assert reply.splitlines()[0].endswith("Tom: an den Schlüssel")


@pytest.mark.defect("Q4")
@pytest.mark.parametrize(
    ("reminders", "moves", "cancels", "left"),
    [
        (
            ["Recuérdame mañana a las 9 llamar a mamá", "Recuérdame el viernes a las 18 el dentista"],
            "Cambia el del dentista al sábado a las 10",
            "Cancela el de mamá",
            "10:00  el dentista",
        ),
        (
            ["明日の9時に母に電話するのを思い出させて", "金曜の18時に歯医者ってリマインドして"],
            "歯医者を土曜の10時に変更して",
            "母のリマインダーを取り消して",
            "10:00  歯医者",
        ),
        (
            ["Yarın saat 9'da annemi aramamı hatırlat", "Cuma günü saat 18'de dişçiyi hatırlat"],
            "Dişçiyi cumartesi saat 10'a ertele",
            "Annemi arama hatırlatmasını iptal et",
            "10:00  dişçiyi",
        ),
    ],
)
async def test_the_reminder_that_is_named_is_moved_or_cancelled_and_none_is_set_twice(
    tmp_path: Path, reminders: list[str], moves: str, cancels: str, left: str
) -> None:
    replies = await live(tmp_path, [*reminders, "/reminders", moves, cancels, "/reminders"])
    assert len(replies[2].splitlines()) == 3
    listed = replies[-1].splitlines()
    assert len(listed) == 2
    assert listed[0].endswith(left)


@pytest.mark.defect("Q5")
async def test_commands_that_explain_use_no_english_words(tmp_path: Path) -> None:
    commands = ["/context wo wohne ich?", "/explain Köln", "/search Köln", "/portrait", "/summary_now", "/analyze"]
    said = ["Ich wohne in Köln und arbeite als Krankenpfleger.", "Antworte bitte immer kurz.", *commands]
    replies = (await live(tmp_path, said))[2:]
    told = "\n".join(line for reply in replies for line in reply.splitlines())
    for word in ("tokens", "score", "asks", "User", "Assistant", "assistant", "its words", "left out"):
        assert word not in told
    assert "die Wörter passen" in told
    assert 'Ann wünscht: "Antworte bitte immer kurz."' in told


SPOKEN = """when is my appointment with Dr. Lee|where do I live|what am I allergic to|does Tom swim|is Tom coming|
what appointments do I have|wo wohne ich|wann habe ich den Termin bei Doktor Lee|wogegen bin ich allergisch|
wie heißt meine Katze|dónde vivo|cuándo tengo cita con el doctor Lee|a qué soy alérgica|cómo se llama mi gata|
où est-ce que j'habite|quand est mon rendez-vous chez le docteur Lee|dove abito|quando ho l'appuntamento dal dottor Lee|
come si chiama il mio gatto|onde eu moro|quando é minha consulta com o doutor Lee|waar woon ik|gdzie mieszkam|
kiedy mam wizytę u doktora Lee|где я живу|когда у меня приём у доктора Ли|nerede yaşıyorum|
doktor Lee ile randevum ne zaman|أين أسكن|متى موعدي مع الدكتور لي|我住在哪里|我什么时候看李医生|どこに住んでる|
リー先生の予約はいつ|나 어디 살아|리 선생님 예약이 언제야|मैं कहाँ रहता हूँ|डॉक्टर ली से मेरी मुलाक़ात कब है|
heeft mijn vrouw morgen een afspraak|na co uczulony jest mój syn|oğlumun neye alerjisi var"""


@pytest.mark.defect("M4")
async def test_spoken_questions_become_no_memories() -> None:
    learned = {}
    async with aforesaid.connect(":memory:", embedder=LocalEmbedder(ranker=False)) as memory:
        asked = [each.strip() for each in SPOKEN.split("|")]
        for number, question in enumerate(asked):
            await memory.user(f"person {number}").add("user", question, name="Aneta", at=NOON)
        await memory.upkeep()
        for number, question in enumerate(asked):
            if found := await memory.user(f"person {number}").memories():
                learned[question] = [each.text for each in found]
    assert learned == {}


@pytest.mark.defect("Q2")
@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ("I am allergic to peanuts.", "what am I allergic to"),
        ("I have a dentist appointment on 12 May 2031.", "what appointments do I have"),
        ("My brother Tom swims every Monday.", "does Tom swim"),
        ("Tom is coming to dinner on Friday.", "is Tom coming"),
        ("Ich bin gegen Nüsse allergisch.", "Wogegen bin ich allergisch?"),
        ("Soy alérgica a los cacahuetes.", "a qué soy alérgica"),
    ],
)
async def test_questions_are_answered_and_not_noted(tmp_path: Path, told: str, asked: str) -> None:
    _, answer = await live(tmp_path, [told, asked])
    assert "Noted" not in answer
    assert "Notiert" not in answer
    assert "Anotado" not in answer
    assert any(word in answer for word in ("peanuts", "12 May", "Tom", "Nüsse", "cacahuetes"))


async def test_a_statement_that_sounds_like_a_question_is_noted(tmp_path: Path) -> None:
    (answer,) = await live(tmp_path, ["Merhaba! Ben Deniz, İzmir'de köpeğim Pasha ile yaşıyorum"])
    assert answer.startswith("Not ettim:")


async def test_whether_somebody_has_a_pet_is_not_answered_with_an_allergy(tmp_path: Path) -> None:
    _, answer = await live(tmp_path, ["Jestem uczulona na orzechy laskowe.", "czy mam psa?"])
    assert "uczulona" not in answer
    assert "orzechy" not in answer


@pytest.mark.parametrize(
    ("told", "asked", "foreign"),
    [
        ("나는 새우 알레르기가 있어.|우리 언니는 채식주의자야.", "나 채식주의자야?", "언니"),
        ("我对花生过敏|我妈妈有高血压", "我有什么病", "妈妈"),
        ("عندي حساسية من الفول السوداني|أخي مصاب بالسكري", "هل عندي سكري؟", "أخي"),
    ],
)
async def test_what_is_asked_of_oneself_is_not_answered_with_somebody_else(
    tmp_path: Path, told: str, asked: str, foreign: str
) -> None:
    *_, answer = await live(tmp_path, [*told.split("|"), asked])
    assert foreign not in answer


async def test_a_statement_that_is_surely_taken_for_a_question_is_noted_and_answers_later(tmp_path: Path) -> None:
    noted, answer = await live(tmp_path, ["عندي قطة اسمها لولو", "ما اسم قطتي؟"])
    assert noted.startswith("سجّلت")
    assert "لولو" in answer


@pytest.mark.defect("Q4")
async def test_a_reminder_that_was_just_set_is_moved_by_a_pronoun(tmp_path: Path) -> None:
    said = ["rappelle-moi demain à 18h d'appeler le véto", "décale-le à 19h", "quels sont mes rappels ?"]
    *_, listed = await live(tmp_path, said, "fr")
    assert "19:00" in listed
    assert "18:00" not in listed


async def test_that_a_store_is_in_memory_is_said_once() -> None:
    async with aforesaid.connect(":memory:", embedder="none") as memory:
        assistant = Assistant(memory)
        replies = [
            "".join([piece async for piece in assistant.reply(memory.user("ann"), text)]) for text in ("Hi", "Hello")
        ]
    assert "lost when the program ends" in replies[0]
    assert "lost when the program ends" not in replies[1]


@pytest.mark.defect("Q3")
async def test_a_compound_is_forgotten_by_its_first_part(tmp_path: Path) -> None:
    said = ["ich hab eine laktoseintoleranz", "vergiss das mit der laktose", "was darf ich nicht essen"]
    *_, answer = await live(tmp_path, said)
    assert "laktose" not in answer.casefold()


@pytest.mark.defect("Q3")
@pytest.mark.parametrize(
    ("told", "forget", "asked", "gone"),
    [
        ("Vivo en Salta.", "Olvidate de dónde vivo.", "dónde vivo", "Salta"),
        ("I live in Leeds.", "forget where I live", "where do i live", "Leeds"),
    ],
)
async def test_what_a_question_asks_for_is_forgotten(
    tmp_path: Path, told: str, forget: str, asked: str, gone: str
) -> None:
    _, forgot, answer = await live(tmp_path, [told, forget, asked])
    assert gone in forgot
    assert gone not in answer
