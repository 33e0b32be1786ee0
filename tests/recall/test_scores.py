"""Scores mean something, and search shows nothing rather than noise."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import aforesaid
from aforesaid.domain.hit import Hit
from aforesaid.errors import InvalidInput
from aforesaid.models.embed import LocalEmbedder
from aforesaid.recall.queue import Background, similarity
from aforesaid.recall.score import without_quotes

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)
TUTORIAL = (
    ("user", "I adopted a cat. Her name is Miso."),
    ("assistant", "Congratulations! How old is Miso?"),
    ("user", "Two years. She hates the vacuum cleaner."),
)


class Shared(LocalEmbedder):
    """The real embedder, loaded once for all tests."""

    async def close(self) -> None:
        """Stay."""


USE = Shared()


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[aforesaid.Memory]:
    async with aforesaid.connect(tmp_path / "memory.db", embedder=USE) as opened:
        yield opened


async def three_messages(memory: aforesaid.Memory) -> aforesaid.UserMemory:
    ann = memory.user("ann")
    for number, text in enumerate(["I live in Berlin.", "My sister has a dog.", "I like tea."]):
        await ann.add("user", text, at=NOON + timedelta(minutes=number))
    await memory.upkeep()
    return ann


@pytest.mark.defect("N2")
@pytest.mark.req("G11")
async def test_of_three_messages_in_one_session_only_the_one_that_matches_is_found(memory: aforesaid.Memory) -> None:
    ann = await three_messages(memory)
    assert [hit.text for hit in await ann.search("berlin", kinds=("message",))] == ["I live in Berlin."]


@pytest.mark.defect("N2")
@pytest.mark.req("G11")
@pytest.mark.parametrize("never_said", ["airplane schedule", "zeppelin"])
async def test_what_was_never_said_is_not_found(memory: aforesaid.Memory, never_said: str) -> None:
    ann = await three_messages(memory)
    assert await ann.search(never_said) == []
    everything = await ann.search(never_said, min_score=0, kinds=("message",))
    assert len(everything) == 3
    assert all(0 <= hit.score < 0.25 for hit in everything)


@pytest.mark.defect("N2", "R1")
@pytest.mark.req("G11")
@pytest.mark.parametrize("never_said", ["xqzzt", "quantum physics", "tax return deadline"])
async def test_words_that_nobody_said_find_nothing_however_few_messages_there_are(
    memory: aforesaid.Memory, never_said: str
) -> None:
    ann = await three_messages(memory)
    assert await ann.search(never_said) == []


async def many_messages(memory: aforesaid.Memory, count: int) -> aforesaid.UserMemory:
    ann = memory.user("ann")
    await ann.add_many(
        aforesaid.NewMessage("user", f"message {number} about berlin", NOON + timedelta(minutes=number))
        for number in range(count)
    )
    await memory.upkeep()
    return ann


@pytest.mark.defect("R1")
@pytest.mark.req("G11")
async def test_what_has_the_words_that_were_typed_is_found_however_much_else_has_them(tmp_path: Path) -> None:
    plain = {"summaries": "none", "extract": False}
    async with aforesaid.connect(tmp_path / "memory.db", embedder=USE, profile=plain) as memory:
        ann = await many_messages(memory, 400)
        assert len(await ann.search("berlin")) == 10
        assert len(await ann.search("Messages about Berlin!", limit=25)) == 25, "in any inflection and case"
        for number in (17, 3, 299):
            hits = await ann.search(f"message {number} about berlin")
            assert hits[0].text == f"message {number} about berlin"
        assert await ann.search("zeppelin") == []


@pytest.mark.defect("R1")
@pytest.mark.parametrize(
    ("said", "typed"),
    [
        ("昨天我们在柏林吃了晚饭。", "柏林"),
        ("Вчера мы ужинали в Берлине.", "берлин"),
        ("Wczoraj jedliśmy kolację w Berlinie.", "kolację Berlinie"),
        ("تعشينا أمس في برلين.", "برلين"),
        ("昨日ベルリンで夕食を食べました。", "ベルリン"),
        ("어제 베를린에서 저녁을 먹었어요.", "저녁을 베를린에서"),
        ("💪", "💪"),
    ],
)
async def test_typed_words_are_found_in_any_language(memory: aforesaid.Memory, said: str, typed: str) -> None:
    ann = memory.user("ann")
    await ann.add_many(aforesaid.NewMessage("user", f"filler {number}", NOON) for number in range(60))
    await ann.add("user", said, at=NOON)
    await memory.upkeep()
    assert said in [hit.text for hit in await ann.search(typed, kinds=("message",))]


@pytest.mark.defect("R1")
async def test_a_long_message_with_all_words_is_found_among_many_short_ones_with_one(tmp_path: Path) -> None:
    plain = {"summaries": "none", "extract": False}
    async with aforesaid.connect(tmp_path / "memory.db", embedder="none", profile=plain) as memory:
        ann = memory.user("ann")
        rest = " ".join(f"word{number}" for number in range(2_000))
        await ann.add("user", f"The harbour and the boat. {rest}", at=NOON)
        await ann.add_many(aforesaid.NewMessage("user", f"boat {number}", NOON) for number in range(300))
        assert rest in "".join(hit.text for hit in await ann.search("boat harbour", limit=100))


@pytest.mark.defect("R1")
async def test_the_text_of_a_message_finds_it_first_unless_it_is_a_question(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    for text in (
        "I like tea.",
        "I like tea, I really like tea, and more tea.",
        "When is the wedding?",
        "It is in June.",
    ):
        await ann.add("user", text, at=NOON)
    await ann.add_many(aforesaid.NewMessage("user", f"filler {number}", NOON) for number in range(30))
    await memory.upkeep()
    best = (await ann.search("i like tea", kinds=("message",)))[0]
    assert best.text == "I like tea."
    assert "it is exactly what was searched for" in [reason for reason, _ in best.reasons()]
    asked = await ann.search("When is the wedding?", kinds=("message",), min_score=0)
    assert not any(name == "same_words" for hit in asked for name, _ in hit.parts)


@pytest.mark.defect("R1")
@pytest.mark.req("G11")
async def test_a_question_whose_words_are_partly_there_is_answered_with_weak_hits_too(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    for number, (said, _) in enumerate(PAIRS):
        await ann.add("user", said, at=NOON + timedelta(days=number))
    await memory.upkeep()
    shown = await ann.search("Which animals does my grandmother read about?", kinds=("message",))
    assert any(0.04 <= hit.score < 0.25 for hit in shown)
    assert all(hit.score >= 0.04 for hit in shown)


@pytest.mark.defect("R5")
async def test_a_memory_that_quotes_a_message_is_no_second_hit(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann", thread="chat")
    said = "The big crane of the marina lifts our boats out of the water on Saturday 14 November at 9."
    for number, text in enumerate((said, "I bought a lamp.", "It rained all day.", "The bus was late again.")):
        await ann.add("user", text, at=NOON + timedelta(minutes=number), name="Ann")
    await memory.upkeep()
    assert f'Ann: "{said}"' in [known.text for known in await ann.memories()]
    hits = await ann.search("crane boats", limit=10)
    assert [hit.text for hit in hits].count(said) == 1
    assert not any(f'"{said}"' in hit.text for hit in hits)
    assert len(await ann.search("crane boats", limit=4, min_score=0)) == 4, "others take its place"
    assert [hit.kind for hit in await ann.search("crane boats", kinds=("memory",))] == ["memory"]


@pytest.mark.parametrize(
    ("memory", "first"),
    [
        ('Ann: "The boat is in the harbour."', "message"),
        ('Ann: "The boat is in the harbour." (2026-05-04).', "memory"),
        ("Ann has a boat in the harbour.", "memory"),
        ('Ann: "The boat was sold."', "memory"),
    ],
)
def test_a_message_takes_the_place_of_the_memory_that_quotes_it(memory: str, first: str) -> None:
    said = Hit("message", "m1", "The boat is in the harbour. It is blue.", 0.4, NOON, ("m1",), ())
    hits = without_quotes([Hit("memory", "1", memory, 0.8, NOON, ("m1",), ()), said])
    assert (hits[0].kind, hits[0].score, len(hits)) == (first, 0.8, 1 if first == "message" else 2)


@pytest.mark.defect("N2")
async def test_the_question_of_the_tutorial_ranks_its_answer_first(memory: aforesaid.Memory) -> None:
    page = (Path(__file__).parents[2] / "docs" / "tutorial" / "first-memory.md").read_text(encoding="utf-8")
    assert "which household appliance does she dislike?" in " ".join(page.split())
    ann = memory.user("ann")
    for role, text in TUTORIAL:
        assert role in {"user", "assistant"}
        await ann.add("user" if role == "user" else "assistant", text)
    await memory.upkeep()
    hits = await ann.search("which household appliance does she dislike?")
    assert hits[0].text == "Two years. She hates the vacuum cleaner."


@pytest.mark.req("G11")
async def test_the_score_changes_no_ranking_and_the_cut_off_can_be_moved(memory: aforesaid.Memory) -> None:
    ann = await three_messages(memory)
    everything = await ann.search("Where do I live?", min_score=0)
    assert everything == sorted(everything, key=lambda hit: -hit.score)
    assert await ann.search("Where do I live?") == [hit for hit in everything if hit.score >= 0.25]
    assert await ann.search("Where do I live?", min_score=1) == []
    with pytest.raises(InvalidInput, match="min_score"):
        await ann.search("x", min_score=float("nan"))


@pytest.mark.req("G8", "G11")
@pytest.mark.parametrize("question", ["When is the wedding?", "when is the wedding", "wann ist die Hochzeit?"])
async def test_a_question_that_was_asked_before_finds_its_answer_again(memory: aforesaid.Memory, question: str) -> None:
    ann = memory.user("ann")
    answer = "My sister gets married on 12 June."
    for text in (answer, "I bought a new bicycle.", "The soup was too salty."):
        await ann.add("user", text, at=NOON)
    await memory.upkeep()

    async def others() -> list[aforesaid.Hit]:
        hits = await ann.search(question, kinds=("message",), min_score=0)
        return [hit for hit in hits if hit.text != question]

    first = (await others())[0]
    assert first.text == answer
    for _ in range(4):
        await ann.add("user", question)
        await memory.upkeep()
        best, *rest = await others()
        assert best.text == answer
        assert best.score > first.score - 0.05
        assert best.similarity is not None
        assert best.similarity > 0.7
        assert all(hit.score < 0.25 for hit in rest), "asked again, no more noise is shown"


@pytest.mark.req("G2")
def test_a_similarity_means_the_same_whatever_the_encoder_calls_near() -> None:
    ours = Background.of(0.07, 0.08, 1_000, "use-multilingual-3")
    other = Background.of(0.72, 0.03, 1_000, "another-encoder")
    assert similarity(ours.standard(0.35)) > 0.7 > similarity(ours.standard(0.12))
    assert similarity(other.standard(0.85)) > 0.7 > similarity(other.standard(0.74))


def test_messages_that_repeat_the_question_do_not_count_among_the_unrelated_ones() -> None:
    cosines = np.array([0.1, 0.3, 1.0], dtype=np.float32)
    usual = Background.usual(float(cosines.mean()), float(cosines.std()), cosines, len(cosines))
    assert usual == pytest.approx((0.2, 0.1), abs=1e-6), "mean and deviation of 0.1 and 0.3"


PAIRS: Sequence[tuple[str, str]] = (
    ("We bought a red tandem bicycle in Utrecht.", "Which bicycle did we buy?"),
    ("My grandmother bakes plum cake every Sunday.", "What does my grandmother bake?"),
    ("The dentist said that I need a crown on the left side.", "What did the dentist say?"),
    ("Our daughter Lena plays the trumpet in a brass band.", "Which instrument does Lena play?"),
    ("I am allergic to peanuts and cashews.", "What am I allergic to?"),
    ("The landlord raises the rent by forty euros.", "How much more rent does the landlord want?"),
    ("We spend our holidays on a farm in Tuscany.", "Where do we spend our holidays?"),
    ("My brother works as a train driver.", "What job does my brother have?"),
    ("The password of the guest network is on the fridge.", "Where is the password of the guest network?"),
    ("I am reading a novel about whales.", "What novel am I reading?"),
)
SMALL_TALK = (
    "Good morning to you.", "It rained all day.", "The bus was late again.", "I had soup for lunch.", "So tired today.",
    "The printer is jammed.", "I watered the plants.", "What a long meeting.", "The lamp flickers.", "See you later.",
)  # fmt: skip


@pytest.mark.defect("B1")
@pytest.mark.req("G2")
@pytest.mark.parametrize("profile", ["community", "companion", "account"])
async def test_each_profile_brings_back_nine_of_ten_ordinary_questions(tmp_path: Path, profile: str) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", embedder=USE, profile=profile) as memory:
        ann = memory.user("ann", thread="chat", session=None)
        for number, (said, _) in enumerate(PAIRS):
            await ann.add("user", said, at=NOON + timedelta(days=number))
            await ann.add("assistant", "I see.", at=NOON + timedelta(days=number, minutes=1))
        for number in range(120):
            text = f"{SMALL_TALK[number % len(SMALL_TALK)]} ({number})"
            await ann.add("user", text, at=NOON + timedelta(days=20 + number // 10, minutes=number % 10))
        await memory.upkeep()
        asked = NOON + timedelta(days=40)
        contexts = [await ann.context(question, 1_500, at=asked) for _, question in PAIRS]
        back = [said for (said, _), context in zip(PAIRS, contexts, strict=True) if said in context.text]
        assert len(back) >= 9, [said for said, _ in PAIRS if said not in back]
