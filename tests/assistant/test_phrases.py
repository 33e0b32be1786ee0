"""The fixed texts of bots and commands, in every language."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import aforesaid
from aforesaid.assistant import Router
from aforesaid.assistant.chat_texts import failure
from aforesaid.assistant.phrases import Phrases, offered
from aforesaid.bots import BotSession
from aforesaid.errors import ModelUnavailable
from aforesaid.text.languages import CODES, language_told
from aforesaid.text.plurals import PLURALS
from aforesaid.text.times.find import read_requested_time
from bots.remembering import QUIET
from bots.room import Room, incoming

SOURCE = Path(aforesaid.__file__).parent
ENGLISH = Phrases.of("en")
OTHERS = sorted({*offered()} - {"en"})


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[aforesaid.Memory]:
    async with aforesaid.connect(tmp_path / "memory.db", profile=QUIET, embedder="none") as opened:
        yield opened


@pytest.fixture
def room() -> Room:
    return Room()


SHARED = """
bot sqlite json mumble chat byte bytes tea sinéad berlin is in over me uncle cousin level status no non an on a i s n j
y o e t set was hallo all so am will man model profile limit minute minutes message messages information analyse ex
partner active per app account archive format start contact service program to as text person rest moment week had
change note open parents questions do
tokens score conversation
later december we not die das des april name long important question simple total normal central plan
"""
SAME = set(SHARED.split())
"""Words that another language shares with English, names, and names of formats."""


def own_words(text: str) -> set[str]:
    """Return the words in Latin letters that are neither placeholders, commands, options nor names of places."""
    bare = re.sub(r"\{[^}]*\}|/\w+|`[^`]*`|\w+/\w+|aforesaid", " ", text)
    return {word.lower() for word in re.findall(r"[A-Za-zÀ-ž']+", bare)}


def texts_of(code: str) -> dict[str, list[str]]:
    return {key: [text] if isinstance(text, str) else text for key, text in Phrases.of(code).texts.items()}


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_language_that_is_told_has_a_file() -> None:
    assert set(offered()) == set(CODES.values())


@pytest.mark.parametrize("code", OTHERS)
def test_no_text_is_missing_and_all_have_the_placeholders_of_the_english_ones(code: str) -> None:
    english, texts = texts_of("en"), texts_of(code)
    assert set(texts) == set(english)
    for key, found in texts.items():
        for text in found:
            assert text.strip(), key
            assert placeholders(text) == placeholders(english[key][0]), key
        if len(english[key]) > 1:
            rule = re.search('plural = "(.*)"', (SOURCE / f"assistant/phrases/{code}.toml").read_text("utf-8"))
            assert rule is not None
            assert len(found) == PLURALS[rule[1]][0], key


@pytest.mark.parametrize("code", OTHERS)
def test_no_text_is_left_in_english(code: str) -> None:
    left = {
        (key, word)
        for key, texts in texts_of(code).items()
        for text in texts
        for word in own_words(text) & own_words(" ".join(texts_of("en")[key]))
        if word not in SAME and not (key.startswith(("example.", "zone.", "words.")) and word.istitle())
    }
    assert left == set()


@pytest.mark.parametrize("code", sorted(offered()))
def test_the_examples_are_understood(code: str) -> None:
    say, said = Phrases.of(code), datetime(2026, 1, 5, 8, tzinfo=UTC)
    for key, hour in (("example.remind", 9), ("start.remind", 9), ("reminder.move_example", 10)):
        when = read_requested_time(re.sub(r"^/reminders \S+ \S+ |^/remind ", "", say(key, number="12")), said)
        assert when is not None, key
        assert when.when[0].hour == hour, key
    for key in ("erase.word", "erase.keep_word"):
        assert len(say(key)) <= 20, "groups hear only short answers"
    action = say("example.reminders").split()[1].casefold()
    assert action in say("words.cancel").split("|")


@pytest.mark.parametrize(
    ("code", "day"),
    [
        ("de", "12. Juni 2026"),
        ("fr", "12 juin 2026"),
        ("ja", "2026年6月12日"),
        ("es", "12 de junio de 2026"),
        ("en", "12 June 2026"),
    ],
)
def test_dates_are_said_in_the_language(code: str, day: str) -> None:
    assert Phrases.of(code).day(datetime(2026, 6, 12, tzinfo=UTC)) == day


def used_keys() -> tuple[set[str], set[str]]:
    """Return the keys that the code names, and the beginnings of those that it puts together."""
    whole, beginnings = set(), set()
    for path in [*SOURCE.glob("assistant/**/*.py"), *SOURCE.glob("bots/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
                beginnings.add(str(node.values[0].value))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                whole.add(node.value)
    return whole, {each for each in beginnings if re.fullmatch(r"[a-z]+\.", each)}


def test_every_text_is_used_and_every_text_that_is_used_exists() -> None:
    whole, beginnings = used_keys()
    unused = {key for key in ENGLISH.texts if key not in whole and not key.startswith(tuple(beginnings))}
    assert unused == set()
    groups = {key.partition(".")[0] for key in ENGLISH.texts if "." in key}
    named = {each for each in whole if re.fullmatch(rf"(?:{'|'.join(groups)})\.[a-z_]+", each)}
    assert {key for key in named if key not in ENGLISH} <= {"storage.json"}


SENDING = {"Answer", "Button", "_say", "say", "send", "_tell", "_note", "_write", "set_result"}


def test_no_code_says_a_text_that_is_in_no_catalogue() -> None:
    said = []
    for path in [*SOURCE.glob("assistant/**/*.py"), *SOURCE.glob("bots/**/*.py")]:
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(call, ast.Call):
                continue
            name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
            if name not in SENDING:
                continue
            for argument in [*call.args, *(each.value for each in call.keywords)]:
                said += [
                    (path.name, node.value)
                    for node in ast.walk(argument)
                    if isinstance(node, ast.Constant) and isinstance(node.value, str) and not node.value.startswith("%")
                    if re.search(r"[^\W\d_]", node.value) and " " in node.value.strip()
                ]
    assert said == []


def test_short_messages_do_not_change_the_language() -> None:
    for text in ("ok", "👍", "Rex?", "12", "Anna", "https://example.org", "…"):
        assert language_told(text, "turkish") in {None, "turkish"}, text
    assert language_told("I am going to the station now", "german") == "english"
    assert language_told("明日", "japanese") is None


COMMON = """
/help
/remind
/nonsense
/reminders
/summary
sqlite
700
30
/summary_status
/forget_me
{no}
/timezone
/timezone Mars
/people
/memories
/timeline
/export
"""
STORIES = {
    "de": """Hallo! Ich heiße Jonas und ich wohne seit gestern in Köln.
Danke!
ok
Wann fliegt meine Tante?
Erinnere mich morgen um 9 daran, Mama anzurufen
/remind Oma am 3. Mai 2020 um 10 Uhr
/forget Fußball
/search Giraffe
/reminders absagen 99""",
    "tr": """Merhaba, ben Ayşe ve bugün çok yorgunum ama iyiyim.
ok
Annem ne zaman geliyor?
/remind annemi ara 2030-06-12 09:00
/remind Ali 2020-01-01 10:00
/forget futbol
/search deniz
/reminders iptal 99""",
    "ar": """مرحبا، أنا سارة وأسكن في القاهرة منذ سنة
ok
متى تأتي أمي؟
/remind الاتصال بأمي غدا 9:00
/forget كرة
/search زرافة""",
    "ja": """こんにちは、健太です。先週から大阪に住んでいます。
ok
母はいつ来ますか？
/remind 母に電話する 明日の午前9時
/forget 野球
/search キリン""",
}
WORDS = """
the you your what that with and have has there are this know nothing noted remember remind reminder remembered summary
summaries messages found when will cancel everything erase list lists like of from it my said
"""
ENGLISH_WORDS = set(WORDS.split())


@pytest.mark.defect("Q5")
@pytest.mark.parametrize("code", sorted(STORIES))
async def test_nobody_who_writes_another_language_is_answered_in_english(
    memory: aforesaid.Memory, room: Room, code: str
) -> None:
    no = Phrases.of(code)("words.no").partition("|")[0]
    said = [*STORIES[code].splitlines(), *COMMON.format(no=no).split("\n")[1:-1]]
    async with BotSession(memory, room) as session:
        for number, text in enumerate(said):
            await session.hear(incoming(text, id=str(number)))
            await session.idle()
    assert len(room.texts) >= len(said)
    assert {(text, word) for text in room.texts for word in own_words(text) & ENGLISH_WORDS} == set()
    if code in {"ar", "ja"}:
        latin = {word for text in room.texts for word in own_words(text) if len(word) > 1}
        assert latin <= {"sinéad", "sqlite", "json", "utc", "ok", "mars"}


async def test_words_of_a_command_are_taken_in_the_language_that_asked_for_them(memory: aforesaid.Memory) -> None:
    for code in offered():
        user, router, say = memory.user(code), Router(memory), Phrases.of(code)
        for word in (say("erase.word"), "erase everything"):
            await user.add("user", "x")
            router.languages.hear(user, "", code)
            asked = await router.answer(user, "/forget_me")
            assert asked is not None
            assert say("erase.word") in asked.text
            assert await router.answer(user, word) is not None
            assert await user.history() == []


@pytest.mark.defect("Q9")
def test_the_words_of_a_provider_reach_no_chat() -> None:
    error = ModelUnavailable("dead:x cannot be reached at http://127.0.0.1:9/v1")
    for code in offered():
        assert "127.0.0.1" not in failure(error, Phrases.of(code))
        assert "dead" not in failure(error, Phrases.of(code))
