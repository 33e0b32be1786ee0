"""A summary must be supported by its sources, in any language, or it counts as failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from aforesaid.digest.quality import is_supported, told_in_another_language
from aforesaid.domain.scope import Scope
from aforesaid.models.chat import Reply, Said
from aforesaid.models.embed import Embedder, LocalEmbedder
from aforesaid.settings import Operation, Settings
from digesting import Scribe, remembering, talk

MOVING = (
    "We finally got the keys on Friday! The place is on the third floor in Kreuzberg.",
    "Congratulations! How is the cat taking it?",
    "Momo hid in the bathroom for two days, but she eats again.",
    "And the new job?",
    "I start at the hospital on Monday, night shifts at first. A bit scared to be honest.",
    "You will be fine. Shall I help to paint the kitchen on Saturday?",
    "Yes please, bring the ladder.",
)
UMZUG = (
    "Wir haben am Freitag endlich die Schlüssel bekommen! Die Wohnung liegt im dritten Stock in Kreuzberg.",
    "Glückwunsch! Wie nimmt es die Katze auf?",
    "Momo hat sich zwei Tage im Bad versteckt, aber sie frisst wieder.",
    "Ich fange am Montag im Krankenhaus an, erst einmal Nachtschichten. Ich habe etwas Angst.",
)
HIKKOSHI = (
    "金曜日にやっと鍵をもらいました。三階の部屋です。",
    "おめでとう！猫は元気？",
    "モモは二日間お風呂場に隠れていたけど、また食べるようになりました。",
    "月曜日から病院で働きます。最初は夜勤です。",
)
NAMES = ("Lena", "Tom", "2026-03-06")


@pytest.fixture(scope="module")
def local() -> Embedder:
    return LocalEmbedder()


@pytest.mark.defect("F2")
@pytest.mark.parametrize("sources", [MOVING, UMZUG, HIKKOSHI], ids=["en", "de", "ja"])
@pytest.mark.parametrize(
    "junk",
    [
        "{{{ not json ]]",
        "null",
        "S1",
        "undefined undefined undefined",
        "asdf qwer zxcv uiop hjkl",
        "I'm sorry, I can't help with that.",
        "Sure! Here is the summary you requested:",
        "As an AI language model, I cannot summarise private conversations.",
        "The quarterly earnings of the company exceeded expectations and its shares rose by 4%.",
        "Das Konzert wurde wegen des Streiks der Lokführer um eine Woche verschoben.",
        '```json\n{"summary": ""}\n```',
    ],
)
async def test_junk_and_summaries_of_something_else_are_not_supported(
    local: Embedder, sources: Sequence[str], junk: str
) -> None:
    assert not await is_supported(junk, sources, NAMES, local)


@pytest.mark.defect("F2")
@pytest.mark.parametrize("sources", [MOVING, UMZUG, HIKKOSHI], ids=["en", "de", "ja"])
@pytest.mark.parametrize(
    "summary",
    [
        "Lena moved into a new flat in Berlin and begins to work as a nurse. Her cat was frightened by the move.",
        "Lena has received her apartment keys; she will begin working nights in a clinic next week and feels nervous.",
        "Lena ist umgezogen. Ihre Katze hat sich anfangs versteckt. Sie beginnt eine Stelle in einer Klinik.",
        "Lena a emménagé dans un nouvel appartement. Son chat s'est caché. Elle commence à travailler à l'hôpital.",
        "Лена получила ключи от новой квартиры. Её кошка пряталась в ванной. Она начинает работать в больнице.",
        "レナは新しいアパートに引っ越し、猫は最初お風呂に隠れていた。月曜日から病院で働く。",
    ],
    ids=["en", "en, other words", "de", "fr", "ru", "ja"],
)
async def test_a_good_summary_is_supported_in_other_words_and_in_other_languages(
    local: Embedder, sources: Sequence[str], summary: str
) -> None:
    assert await is_supported(summary, sources, NAMES, local)


@pytest.mark.parametrize(
    ("summary", "supported"),
    [
        ("Lena got the keys of a flat in Kreuzberg and starts at the hospital on Monday.", True),
        ("Lena has moved to Kreuzberg. Momo, her cat, was afraid at first.", True),
        ("Lena ist umgezogen und beginnt im Krankenhaus zu arbeiten.", True),
        ("{{{ not json ]]", False),
        ("null", False),
        ("The company exceeded expectations and its shares rose by 4%.", False),
    ],
)
async def test_without_an_embedder_words_decide_where_they_can(summary: str, supported: bool) -> None:  # noqa: FBT001
    assert await is_supported(summary, MOVING, NAMES, None) is supported


class Babbler(Scribe):
    """A model that writes junk, or an apology, until it is cured."""

    junk: str | None = "{{{ not json ]]"

    async def text(
        self,
        operation: Operation,
        messages: Sequence[Said],
        *,
        scope: Scope | None = None,
        characters: int | None = None,
    ) -> Reply:
        good = await super().text(operation, messages, scope=scope, characters=characters)
        return good if self.junk is None else replace(good, text=self.junk)


@pytest.mark.defect("F2")
@pytest.mark.req("A13")
@pytest.mark.parametrize(
    "junk",
    [
        "{{{ not json ]]",
        "null",
        "I'm sorry, I can't help with that.",
        "Es tut mir leid, dabei kann ich nicht helfen.",
        "apples apples apples apples apples apples",
        "The committee approved a new budget for the orchestra.",
    ],
)
async def test_junk_archives_nothing_shows_in_health_and_the_summary_is_made_later(junk: str) -> None:
    babbler = Babbler()
    babbler.junk = junk
    async with remembering(":memory:", "archive", chat=babbler, settings=Settings(background=False)) as memory:
        ann = memory.user("ann")
        await talk(ann, 20)
        report = await memory.upkeep()
        why = "test:scribe wrote a summary that its sources do not support"
        assert (report.summarised, report.error) == (0, why)
        assert all(message.active for message in await ann.history())
        assert (await memory.health()).component("summaries").issues == (why,)
        babbler.junk = None
        assert (await memory.upkeep()).summarised >= 1
        assert (await memory.health()).component("summaries").status == "active"


@pytest.mark.defect("F2")
async def test_junk_does_not_become_a_rolling_summary() -> None:
    async with remembering(":memory:", "session", chat=Babbler(), settings=Settings(background=False)) as memory:
        ann = memory.user("ann")
        await talk(ann, 20)
        await memory.upkeep()
        assert await ann.summaries() == []


@pytest.mark.defect("F2")
async def test_junk_does_not_become_a_history_context() -> None:
    babbler = Babbler()
    empty = {"topics": [], "preferences": [], "style": "", "items": []}
    babbler.answers[:] = [{"summary": "I'm sorry, I can't help with that.", **empty}] * 2
    async with remembering(":memory:", "account", chat=babbler, settings=Settings(background=False)) as memory:
        ann = memory.user("ann")
        await talk(ann, 30)
        await memory.upkeep()
        assert (await ann.history_context()).covers == 0


@pytest.mark.defect("F2")
async def test_of_a_day_only_the_summaries_that_the_messages_support_come_from_the_model() -> None:
    babbler = Babbler()
    babbler.answers[:] = [
        {"summaries": [{"id": "1", "summary": "{{{ not json ]]"}, {"id": "2", "summary": "Bob has bought a boat."}]}
    ]
    async with remembering(":memory:", "community", chat=babbler, settings=Settings(background=False)) as memory:
        ann, bob = memory.user("ann", thread="general"), memory.user("bob", thread="general")
        at = datetime(2026, 3, 1, 8, tzinfo=UTC)
        await ann.add("user", "My garden is full of tulips this spring.", at=at)
        await bob.add("user", "I bought a boat yesterday, a small one.", at=at)
        ours, his = await ann.day(), await bob.day()
        assert ours is not None
        assert (ours.model, "tulips" in ours.text) == (None, True)
        assert his is not None
        assert his.text == "Bob has bought a boat."


@pytest.mark.parametrize(
    ("sources", "text", "language"),
    [
        (UMZUG, "Lena has received the keys of her flat and will begin to work in a hospital.", "english"),
        (UMZUG, "Lena hat die Schlüssel zu ihrer Wohnung bekommen und fängt im Krankenhaus an.", None),
        (HIKKOSHI, "Lena has received the keys of her flat and will begin to work in a hospital.", "english"),
        (MOVING, "Лена получила ключи от новой квартиры и начинает работать в больнице.", "russian"),
        (MOVING, "Lena Kreuzberg Momo", None),
        ((*UMZUG, MOVING[0]), "Lena has received the keys of her flat and will begin to work in a hospital.", None),
        (("Você viu o jogo?", "Sim, foi ótimo, ganhamos!"), "O jogo foi ótimo para eles.", None),
    ],
)
def test_a_summary_in_another_language_than_its_sources_is_noticed(
    sources: Sequence[str], text: str, language: str | None
) -> None:
    assert told_in_another_language(text, sources) == language
