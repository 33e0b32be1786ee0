"""Search as people use it, through the public API, with the real embedder where meaning counts."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import aforesaid
from aforesaid.domain.memory import MemoryDraft
from aforesaid.domain.summary import SummaryDraft
from aforesaid.errors import InvalidInput, ModelError
from aforesaid.models.embed import LocalEmbedder, Vectors
from aforesaid.recall import Arms, SearchRequest
from aforesaid.store.memories import AddMemory
from aforesaid.store.searches import MatchText
from aforesaid.store.summaries import Archive
from intercepting import Read, intercept

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)


class Shared(LocalEmbedder):
    """The real embedder, loaded once for all tests."""

    async def close(self) -> None:
        """Stay."""


USE = Shared()


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[aforesaid.Memory]:
    async with aforesaid.connect(tmp_path / "memory.db", embedder=USE) as opened:
        yield opened


async def tell(user: aforesaid.UserMemory, *lines: str, at: datetime = NOON) -> None:
    for number, line in enumerate(lines):
        await user.add("user" if number % 2 == 0 else "assistant", line, at=at + timedelta(minutes=number))


async def test_what_was_meant_is_found_without_its_words(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    await tell(ann, "We finally bought a puppy for the kids.", "Lovely!", "The tax forms are due in June.", "Noted.")
    await memory.upkeep()
    assert (await ann.search("Do we own a dog?"))[0].text == "We finally bought a puppy for the kids."
    assert (await ann.search("¿Tenemos un perro?"))[0].text == "We finally bought a puppy for the kids."
    assert (await ann.search("Do we own a dog?", arms="dense"))[0].text == "We finally bought a puppy for the kids."


async def test_a_just_added_message_is_found_by_its_words_at_once_and_by_its_meaning_soon(
    memory: aforesaid.Memory,
) -> None:
    ann = memory.user("ann")
    await tell(ann, "hello", "hi")
    await memory.upkeep()
    await ann.add("user", "My car broke down on the motorway.")
    assert (await ann.search("motorway"))[0].text == "My car broke down on the motorway."
    deadline = time.monotonic() + 30
    while (
        not await ann.search("vehicle trouble", arms="dense")
        or "car" not in (await ann.search("vehicle trouble", arms="dense"))[0].text
    ):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.05)


@pytest.mark.req("A17")
async def test_meaning_does_not_cross_from_one_user_to_another(memory: aforesaid.Memory) -> None:
    await tell(memory.user("ann"), "I am pregnant and have told nobody.")
    await tell(memory.user("bob"), "The weather is fine.")
    await memory.upkeep()
    choices: tuple[Arms, ...] = ("all", "dense", "keyword")
    for arms in choices:
        hits = await memory.user("bob").search("who expects a baby?", arms=arms)
        assert all(hit.message is not None and hit.message.user == "bob" for hit in hits)


async def test_the_same_question_gives_the_same_ranking(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    await tell(ann, *[f"line {number} about the garden and the {number % 5} apple trees" for number in range(60)])
    await memory.upkeep()
    first = await ann.search("apple trees in the garden", limit=20, at=NOON)
    for _ in range(3):
        assert await ann.search("apple trees in the garden", limit=20, at=NOON) == first


async def test_a_hit_explains_itself(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    await tell(ann, "I keep bees on the roof.", "How many hives?", "Two hives, and a third in spring.")
    await memory.upkeep()
    hit = (await ann.search("how many hives"))[0]
    assert 0.5 < hit.score <= 1
    assert dict(hit.parts)["keyword"] > 0
    assert "its words match (many, hives)" in hit.explain() or "its words match (hives)" in hit.explain()
    assert hit.explain().startswith(f"score {hit.score:.2f}: ")


async def test_what_is_said_twice_in_the_same_words_is_found_once(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    await tell(ann, "Happy birthday!", "Happy birthday!", "happy BIRTHDAY", "Thanks for the birthday cake.")
    await memory.upkeep()
    assert len(await ann.search("birthday")) == 2


async def test_a_period_that_the_question_names_counts(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    for month in range(1, 5):
        await ann.add("user", "We went hiking with the club again.", at=datetime(2026, month, 12, 9, month, tzinfo=UTC))
        await ann.add("user", f"Rain on the way home, number {month}.", at=datetime(2026, month, 12, 18, 0, tzinfo=UTC))
    await memory.upkeep()
    hits = await ann.search("Where did we go hiking in February?", at=NOON)
    assert hits[0].at.month == 2


@pytest.mark.defect("K6")
async def test_a_verb_that_is_spelled_like_a_month_does_not_look_for_the_month(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", embedder="none") as memory:
        ann = memory.user("ann")
        await ann.add("user", "Audrey went hiking.", at=datetime(2026, 5, 2, 9, tzinfo=UTC))
        await ann.add("user", "Audrey could cook lentils for us.", at=datetime(2026, 2, 2, 9, tzinfo=UTC))
        hits = await ann.search("What may Audrey cook?", at=NOON)
        assert hits[0].text == "Audrey could cook lentils for us."
        assert all(not dict(hit.parts)["period"] for hit in hits)


@pytest.mark.defect("K6")
async def test_a_date_that_is_a_day_or_two_off_still_counts_but_less(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", embedder="none") as memory:
        ann = memory.user("ann")
        for number in (3, 5, 6, 7, 20):
            await ann.add("user", f"Report {number} is done.", at=datetime(2026, 4, number, 9, tzinfo=UTC))
        hits = await ann.search("Which report was done on 7 April 2026?", at=NOON, min_score=0)
        counted = {hit.at.day: dict(hit.parts)["period"] for hit in hits}
        assert counted[7] > counted[6] > counted[5] > counted[3] == counted[20] == 0


class Down:
    name = "down"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        raise ModelError(f"no answer for {len(texts)} texts")

    async def close(self) -> None: ...


async def test_without_its_model_search_goes_on_by_words_and_health_says_so(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", embedder=Down()) as memory:
        ann = memory.user("ann")
        await tell(ann, "The boiler was repaired on Tuesday.")
        report = await memory.upkeep()
        assert report.error == "no answer for 1 texts"
        assert [hit.text for hit in await ann.search("boiler repair")] == ["The boiler was repaired on Tuesday."]
        health = await memory.health()
        assert health.status == "failing"
        assert "no answer" in health.components[1].issues[0]
    # What was not embedded then is embedded by whoever comes next.
    async with aforesaid.connect(tmp_path / "memory.db", embedder="deterministic") as memory:
        assert (await memory.upkeep()).embedded == 1
        assert (await memory.upkeep()).embedded == 0


@pytest.mark.req("D7")
async def test_a_text_that_was_embedded_before_is_not_embedded_again(tmp_path: Path) -> None:
    asked: list[str] = []

    class Counting(Shared):
        async def embed(self, texts: Sequence[str]) -> Vectors:
            asked.extend(texts)
            return await super().embed(texts)

    one_after_another = {"background": False}
    async with aforesaid.connect(tmp_path / "memory.db", embedder=Counting(), settings=one_after_another) as memory:
        await tell(memory.user("ann"), "good morning", "good morning", "how are you")
        await memory.upkeep()
        await tell(memory.user("bob"), "good morning")
        await memory.upkeep()
    assert sorted(asked) == ["good morning", "how are you"]


async def test_stop_words_are_dropped_and_more_matches_and_newer_ones_rank_higher(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    await tell(
        ann, "the bakery sells rye bread", "ok", "the bakery sells rye bread and poppy rolls", "what is it that you do"
    )
    await memory.upkeep()
    hits = await ann.search("what does the bakery sell, poppy rolls?")
    assert hits[0].text == "the bakery sells rye bread and poppy rolls"
    assert "the" not in hits[0].terms


async def test_random_queries_raise_nothing(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    chance = random.Random(7)
    parts = [
        '"',
        "'",
        "(",
        ")",
        "*",
        "-",
        "^",
        ":",
        "AND",
        "OR",
        "NOT",
        "NEAR",
        "{",
        "}",
        "\\",
        "%",
        "\0",
        "\ud800",
        "🙂",
    ]
    parts += [
        "berlin",
        "Москва",
        "北京",
        "مدينة",
        "한국",
        "हिन्दी",
        "ß",
        "İ",
        "\u202e",
        "a" * 300,
        " ",
        "\n",
        "2026",
        "u1.",
    ]
    async with aforesaid.connect(tmp_path / "memory.db", embedder="none") as memory:
        ann = memory.user("ann")
        await tell(ann, "berlin Москва 北京 مدينة", "한국 हिन्दी 2026")
        for _ in range(10_000 if request.config.getoption("--torture") else 2_000):
            await ann.search("".join(chance.choices(parts, k=chance.randint(0, 8))), limit=3)


async def test_bad_arguments_are_refused(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    with pytest.raises(InvalidInput, match="unknown arms"):
        await ann.search("x", arms="legs")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="time zone"):
        await ann.search("x", at=datetime(2026, 1, 1))  # noqa: DTZ001
    assert await ann.search("") == []


async def test_summaries_and_memories_are_hits_too(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    await tell(ann, "I adopted a greyhound called Comet.", "What a name!", "He sleeps all day.", "Lazy boy.")
    messages = await ann.history()
    store = memory.store
    await store.apply([AddMemory(MemoryDraft(ann.scope, "fact", "Ann has a greyhound called Comet.", sources=(1,)))])
    await store.apply([Archive(SummaryDraft(ann.scope, "Ann told about her dog Comet.", messages=(1, 2)))])
    await memory.upkeep()
    hits = await ann.search("Which greyhound is Comet?", at=NOON)
    assert {hit.kind for hit in hits} == {"message", "memory", "summary"}
    assert hits == sorted(hits, key=lambda hit: -hit.score)
    found = await ann.search("What is the greyhound called?", kinds=("memory",), at=NOON)
    assert {hit.text for hit in found} <= {"Ann has a greyhound called Comet.", "ann: Pet: greyhound Comet"}
    assert {hit.sources for hit in found} == {(messages[0].id,)}
    remembered = next(hit for hit in found if hit.text == "Ann has a greyhound called Comet.")
    assert remembered.message is None
    assert "greyhound" in remembered.explain()
    # By its meaning alone, in another language.
    (summary,) = await ann.search("der Hund", kinds=("summary",), at=NOON, min_score=0)
    assert summary.text == "Ann told about her dog Comet."
    assert {hit.kind for hit in await ann.search("Comet", within="thread", at=NOON)} == {"message"}


async def test_whole_sessions_are_found(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    await tell(ann, "The roof leaks.", "Since when?", "Since the storm, the roof leaks badly.")
    await tell(ann, "Let us talk about cakes.", "Gladly.", at=NOON + timedelta(days=3))
    await memory.upkeep()
    first, *_ = await ann.search("leaking roof", kinds=("session",), at=NOON)
    assert first.message is not None
    assert first.id == first.message.session
    assert len(first.sources) == 3
    sessions = await ann.search("roof cakes", kinds=("session",), at=NOON)
    assert sorted(hit.id for hit in sessions) == sorted(session.id for session in await ann.sessions())


async def test_neighbours_come_with_a_hit_a_third_before_and_two_thirds_after(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    await tell(ann, *[f"filler number {number}" for number in range(6)], "The password is swordfish.", *"abcdef")
    await tell(ann, "Another day.", at=NOON + timedelta(days=1))
    (hit, *_) = await ann.search("swordfish", around=6)
    assert [message.text for message in hit.around] == ["filler number 4", "filler number 5", "a", "b", "c", "d"]
    (hit, *_) = await ann.search("swordfish", around=100)
    assert len(hit.around) == 12
    (hit, *_) = await ann.search("filler number 0", around=3)
    assert [message.text for message in hit.around] == ["filler number 1", "filler number 2", "filler number 3"]


@pytest.mark.req("A10")
async def test_search_drops_stop_words_prefers_newer_repeats_nothing_and_keeps_its_budget(
    memory: aforesaid.Memory,
) -> None:
    ann = memory.user("ann")
    await tell(ann, "My sister moved to Oslo.", "The cat is on the roof.", "I met my sister in Oslo.")
    hits = await ann.search("the sister of my in Oslo", arms="keyword")
    assert {hit.text for hit in hits} == {"My sister moved to Oslo.", "I met my sister in Oslo."}
    assert all(set(hit.terms) == {"sister", "oslo"} for hit in hits)
    await ann.add("user", "My sister moved to Oslo.", at=NOON + timedelta(days=1))
    newest, *_ = await ann.search("sister moved Oslo", arms="keyword")
    assert newest.at == NOON + timedelta(days=1)
    found = await ann.search("sister moved Oslo")
    assert [hit.text for hit in found].count("My sister moved to Oslo.") == 1
    shown = {found[0].id, *found[0].sources}
    assert not shown.intersection(hit.id for hit in await ann.search("sister moved Oslo", without=shown))
    few = await ann.search("sister moved Oslo", tokens=8)
    assert 1 <= len(few) < len(found)


@pytest.mark.req("D1")
async def test_the_semantic_layer_is_a_few_conversations_that_are_near_enough(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    subjects = ["I love hiking in the mountains.", "I really love to hike in the mountains.", "Taxes are due in June."]
    for number, text in enumerate(
        [*subjects, "Hiking in the mountains is what I love most.", "We love mountain hikes."]
    ):
        await tell(ann, text, "I see.", at=NOON + timedelta(days=number))
    await memory.upkeep()
    near = await ann.search("I love hiking in the mountains", 3, kinds=("session",), similarity=0.7)
    assert 1 <= len(near) <= 3
    assert all(hit.similarity is not None and hit.similarity >= 0.7 for hit in near)
    assert all("Taxes" not in hit.text for hit in near)
    assert await ann.search("completely different matter", 3, kinds=("session",), similarity=0.7) == []


async def test_messages_that_are_shown_already_take_no_place_among_the_hits(memory: aforesaid.Memory) -> None:
    ann, recall = memory.user("ann"), memory._services.recall
    await tell(ann, "My sister moved to Oslo.", "The cat is on the roof.", "Oslo is far away, she says, and very cold.")
    await memory.upkeep()
    request = SearchRequest("sister moved Oslo", limit=1, kinds=("message",))
    [best] = await recall.search(ann.scope, request)
    assert best.message is not None
    [next_best] = await recall.search(ann.scope, replace(request, beside=frozenset({best.message.seq})))
    assert next_best.text == "Oslo is far away, she says, and very cold."


async def test_a_session_is_found_by_a_message_that_is_shown_already(memory: aforesaid.Memory) -> None:
    ann, recall = memory.user("ann"), memory._services.recall
    await tell(ann, "My sister moved to Oslo.")
    await memory.upkeep()
    request = SearchRequest("sister moved Oslo", limit=1, kinds=("session",))
    [found] = await recall.search(ann.scope, request)
    assert found.message is not None
    [again] = await recall.search(ann.scope, replace(request, beside=frozenset({found.message.seq})))
    assert again.id == found.id


async def test_a_search_that_began_and_is_not_wanted_any_more_stops_reading(memory: aforesaid.Memory) -> None:
    ann = memory.user("ann")
    await tell(ann, "My sister moved to Oslo.")
    begun = memory._services.recall.begin(ann.scope, "Oslo", "user", NOON)
    begun.cancel()
    with pytest.raises(asyncio.CancelledError):
        await begun.matches


async def test_the_names_of_somebody_who_was_purged_are_not_kept_for_later_searches(memory: aforesaid.Memory) -> None:
    ann, gatherer = memory.user("ann"), memory._services.recall._finder
    await ann.add("user", "I live in Bern.", name="Quillonbrax")
    await ann.search("Bern")
    assert "Quillonbrax" in str(gatherer._speakers), "otherwise this test shows nothing"
    await memory.purge("ann")
    assert "Quillonbrax" not in str(gatherer._speakers)


async def test_a_search_during_a_purge_does_not_bring_names_back_into_the_cache(memory: aforesaid.Memory) -> None:
    async def purge_after(read: Read, question: MatchText) -> object:
        found = await read(question)
        await memory.purge("ann")
        return found

    ann, gatherer = memory.user("ann"), memory._services.recall._finder
    await ann.add("user", "I live in Bern.", name="Quillonbrax")
    end = intercept(memory.store, MatchText, purge_after)
    assert await ann.search("Bern") == []
    end()
    assert "Quillonbrax" not in str(gatherer._speakers)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kinds": ("letter",)}, "unknown kinds 'letter'"),
        ({"around": -1}, "around"),
        ({"similarity": float("nan")}, "the similarity must be a finite number"),
        ({"tokens": 0}, "tokens"),
        ({"without": [1.5]}, "without"),
    ],
)
async def test_what_cannot_be_asked_for_is_refused(memory: aforesaid.Memory, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        await memory.user("ann").search("anything", **wrong)


@pytest.mark.defect("Q7")
@pytest.mark.parametrize("embedder", [USE, "none"], ids=["encoder", "none"])
@pytest.mark.parametrize(
    "question",
    [
        "What happened on 7 January 2024?",
        "What happened in the first week of 2024?",
        "Was war am 7. Januar 2024?",
        "¿Qué hicimos el 7 de enero de 2024?",
        "Que s'est-il passé le 7 janvier 2024 ?",
        "Cosa è successo il 7 gennaio 2024?",
        "O que aconteceu em 7 de janeiro de 2024?",
        "Wat is er gebeurd op 7 januari 2024?",
        "Что было 7 января 2024?",
    ],
)
async def test_a_date_alone_finds_what_was_said_then(embedder: Any, question: str) -> None:  # noqa: ANN401 - a name, too
    async with aforesaid.connect(":memory:", embedder=embedder) as memory:
        ann = memory.user("ann")
        for month, day, text in (
            (1, 7, "We buried grandpa, it rained."),
            (1, 19, "Back at work."),
            (5, 4, "A market."),
        ):
            await ann.add("user", text, at=datetime(2024, month, day, 10, tzinfo=UTC))
        await memory.upkeep()
        found = await ann.search(question)
        assert [hit.text for hit in found][:1] == ["We buried grandpa, it rained."]


@pytest.mark.defect("Q7")
async def test_the_last_weekend_is_found_and_not_another_one() -> None:
    async with aforesaid.connect(":memory:", embedder=USE) as memory:
        ann = memory.user("ann")
        await ann.add("user", "On the weekend in May we were at the lake.", at=datetime(2026, 5, 2, 10, tzinfo=UTC))
        await ann.add("user", "Flea market with Lena, bought a lamp.", at=datetime(2026, 11, 14, 10, tzinfo=UTC))
        await memory.upkeep()
        asked = datetime(2026, 11, 19, 12, tzinfo=UTC)
        found = await ann.search("What did we do last weekend?", at=asked)
        assert found[0].text == "Flea market with Lena, bought a lamp."
        # What else is named decides first.
        assert (await ann.search("Where was the lake, last weekend?", at=asked))[0].text.endswith("the lake.")
