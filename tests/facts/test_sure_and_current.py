"""What is known is sure, is about whom it was said of, and ends when it is over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from aforesaid.domain.memory import DOUBTED, LAPSED, PASSED, Event, Matter, MemoryDraft
from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.facts.people import person_called
from aforesaid.facts.settling import over_by
from aforesaid.facts.timeline import calendar, timeline
from aforesaid.facts.values import by_values
from aforesaid.memory import Memory, UserMemory
from aforesaid.models.embed import LocalEmbedder
from aforesaid.models.reader import Holds, Intents, Mark, Reading
from facts.talking import connect

MARCH = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)
ENCODER = LocalEmbedder(ranker=False)
ANN = person_called("ann", "Ann")


@pytest.fixture
async def memory() -> AsyncIterator[Memory]:
    async with connect(embedder=ENCODER) as opened:
        yield opened


async def tell(memory: Memory, *texts: str, user: str = "ann") -> UserMemory:
    """Say one thing a week, and learn each of them."""
    person = memory.user(user)
    for week, text in enumerate(texts):
        await person.add("user", text, at=MARCH + timedelta(weeks=week), name="Ann")
        await memory.upkeep()
    return person


def message(number: int, text: str, *, weeks: int = 0) -> Message:
    at = MARCH + timedelta(weeks=weeks)
    return Message(
        number, f"#{number}", "default", "ann", "home", "s", "user", "ann", "Ann", text, at, at, True, None, b""
    )


def told(*read: tuple[str, str, Matter, Holds, float]) -> list[tuple[str, str, str | None]]:
    """Return the matter, the value and whom it is about of messages with one mark each, as a reader has read them."""
    messages, readings = [], {}
    for number, (text, words, matter, holds, certainty) in enumerate(read, 1):
        at = text.index(words)
        mark = Mark(at, at + len(words), words, matter, holds, certainty, 0.95, 0.9)
        messages.append(message(number, text))
        readings[number] = Reading(Intents.surely("tell"), 0.95, (mark,))
    found = by_values(messages, readings, {"ann": ANN}, ANN, UTC)
    return [(each.matter or "", each.value or "", each.about) for each in found]


@pytest.mark.defect("M8", "M11")
def test_the_name_of_somebody_known_is_no_medicine() -> None:
    said = told(
        ("My son Cathal plays the tuba.", "son Cathal", "child", "own", 0.9),
        ("I take Cathal to the match.", "Cathal", "medicine", "own", 0.8),
    )
    assert said == [("child", "son Cathal", None)]


@pytest.mark.defect("M9", "M11")
@pytest.mark.parametrize(
    ("first", "name", "second", "value", "matter"),
    [
        ("Mein Sohn Friedemann ist da.", "Sohn Friedemann", "Friedemann verträgt keine Nüsse.", "Nüsse", "allergy"),
        ("My son Noah is here.", "son Noah", "Noah wants to stop judo next year.", "judo", "hobby"),
        ("Mon fils Noé est là.", "fils Noé", "Noé veut arrêter le judo.", "judo", "hobby"),
        ("妻の美咲と来ました。", "妻の美咲", "美咲は卵が食べられないんです。", "卵", "allergy"),
    ],
)
def test_what_a_sentence_says_of_a_known_name_is_not_the_authors(
    first: str, name: str, second: str, value: str, matter: Matter
) -> None:
    said = told((first, name, "friend", "own", 0.95), (second, value, matter, "own", 0.8))
    assert not [each for each in said if each[0] == matter and each[2] is None]


@pytest.mark.defect("M11")
@pytest.mark.parametrize(
    "said",
    [
        "I have eaten the food of your wife Nomsa for thirty years.",
        "Deine Mama Helga kommt am Samstag.",
        "Tu tío Ramón pone la nave este otoño.",
        "Twoja siostra Ola dzwoniła.",
        "Твоя сестра Ольга звонила вчера.",
        "你婆婆也歇一下。",
    ],
)
async def test_whose_people_are_yours_are_not_the_authors(memory: Memory, said: str) -> None:
    ann = await tell(memory, said)
    assert not [each for each in await ann.memories() if each.matter is not None and each.about is None]


@pytest.mark.defect("M8")
async def test_a_value_that_is_not_sure_is_known_when_it_was_told_twice(memory: Memory) -> None:
    ann = memory.user("ann")
    doubtful = "Corridor piano is a Lesage, three dead hammers, and the grip is gone, descaler too."
    await ann.add("user", doubtful, at=MARCH, name="Ann")
    await memory.upkeep()
    assert not [each for each in await ann.memories() if each.matter and (each.confidence or 1.0) < 0.6]
    for each in await ann.memories(active=None):
        assert each.active or each.reason in {DOUBTED, LAPSED, PASSED}


@pytest.mark.defect("M9")
@pytest.mark.req("G18")
@pytest.mark.parametrize(
    ("usual", "other", "labels"),
    [
        (
            ("Ich wohne in Bern und arbeite als Lehrerin.", "Meine Katze heißt Nina.", "Ich trinke gern Tee."),
            "I am allergic to hazelnuts.",
            ("Wohnort", "Allergie"),
        ),
        (
            ("Ayvalık'ta yaşıyorum, muhasebede çalışıyorum.", "Bir kedim var, adı Pamuk.", "Çok yorgunum bugün."),
            "I am allergic to hazelnuts.",
            ("Yaşadığı yer", "Alerji"),
        ),
    ],
)
async def test_labels_are_in_the_language_of_most_messages(
    memory: Memory, usual: tuple[str, ...], other: str, labels: tuple[str, ...]
) -> None:
    ann = await tell(memory, *usual, other)
    shown = await ann.portrait() or ""
    assert all(label in shown for label in labels), shown
    assert "Allergic" not in shown


def plan(text: str, *, in_weeks: int, **other: object) -> MemoryDraft:
    at = MARCH + timedelta(weeks=in_weeks)
    draft = MemoryDraft(
        Scope.of("ann"), "fact", text, sources=(1,), speaker="ann", valid_from=MARCH, trust="said", confidence=0.9
    )
    return replace(draft, event=Event(at, at + timedelta(days=1), timed=False), **other)  # type: ignore[arg-type]


@pytest.mark.defect("M8")
@pytest.mark.req("G19")
def test_what_was_to_come_ends_with_its_date() -> None:
    flight = plan('Ann: "We fly to Rome on the 19th."', in_weeks=2)
    later = plan('Ann: "The wedding is in June."', in_weeks=12)
    stated = plan("Ann: The exam.", in_weeks=2, trust="stated")
    request = plan("Ann: Answer in metric.", in_weeks=2, kind="instruction")
    over = over_by([message(5, "Hello again", weeks=4)], [flight, later, stated, request], ANN)
    assert [(each.known, each.reason) for each in over] == [(flight, PASSED)]
    assert list(over_by([message(5, "Hello again", weeks=1)], [flight, later], ANN)) == []


@pytest.mark.defect("M8")
@pytest.mark.parametrize(("confidence", "kept_weeks", "over_weeks"), [(0.7, 24, 27), (0.9, 27, 53)])
def test_what_was_said_in_passing_lapses_and_values_do_not(confidence: float, kept_weeks: int, over_weeks: int) -> None:
    quote = MemoryDraft(
        Scope.of("ann"), "fact", 'Ann: "The movers want 1,450 euros."', sources=(1,), speaker="ann",
        valid_from=MARCH, trust="said", confidence=confidence,
    )  # fmt: skip
    home = replace(quote, text="Ann: Lives in Lisbon", matter="home", value="Lisbon", subject="home")
    assert list(over_by([message(5, "The tram was late.", weeks=kept_weeks)], [quote, home], ANN)) == []
    (over,) = over_by([message(5, "The tram was late.", weeks=over_weeks)], [quote, home], ANN)
    assert (over.known, over.reason) == (quote, LAPSED)


@pytest.mark.defect("M13")
async def test_the_timeline_has_neither_what_was_cancelled_nor_what_is_doubted(memory: Memory) -> None:
    ann = await tell(memory, "The concert is on 3 June 2027 at the town hall.", "The concert is cancelled.")
    assert not [each for each in await ann.timeline() if each.reason == DOUBTED or "Event" in each.text]
    kept = [each for each in await ann.memories(active=None) if each.matter == "event"]
    assert not timeline([replace(each, reason=DOUBTED) for each in kept])


@pytest.mark.defect("M13")
@pytest.mark.parametrize(
    ("first", "second", "old", "new"),
    [
        ("I live in Lisbon.", "I moved to Porto last week.", "Lisbon", "Porto"),
        ("大阪に住んでいます。", "先月、京都に引っ越しました。", "大阪", "京都"),
        ("İzmir'de yaşıyorum.", "Geçen hafta Ankara'ya taşındım.", "İzmir", "Ankara"),
    ],
)
async def test_nothing_that_is_read_shows_what_was_replaced(
    memory: Memory, first: str, second: str, old: str, new: str
) -> None:
    ann = await tell(memory, first, second)
    shown = await ann.portrait() or ""
    assert new in shown
    assert old not in shown
    assert old not in calendar(await ann.memories(), UTC)
    assert old not in " ".join(each.text for each in await ann.timeline())


@pytest.mark.defect("M10")
@pytest.mark.parametrize(
    ("said", "topic", "stop"),
    [
        ("Bugün yine bahçede domates ektim ama çok yoruldum", "domates", "ama"),
        ("I don't know why but the tomatoes didn't grow, he's sad", "tomatoes", "dont"),
        ("今日もサッカーの練習に行ったよ、とても楽しかった", "サッカー", "った"),
    ],
)
async def test_topics_of_habits_are_words_in_every_language(memory: Memory, said: str, topic: str, stop: str) -> None:
    ann = memory.user("ann")
    for number in range(12):
        await ann.add("user", f"{said} {number}")
    topics = [word for word, _ in (await ann.preferences()).topics]
    assert topic in topics
    assert stop not in topics
