"""Plain statements in messages that ask for something, by the vectors of the built-in encoder, without a model."""

from __future__ import annotations

import pytest

from aforesaid.facts.salience_extraction import parts_of
from aforesaid.models.embed import LocalEmbedder
from facts.plain_held_out import FLEETING, PLAIN
from facts.talking import connect, say, texts

ASKS = {
    "en": "What should I cook tonight?",
    "de": "Was soll ich heute kochen?",
    "fr": "Que dois-je cuisiner ce soir ?",
    "es": "¿Qué cocino hoy?",
    "it": "Cosa cucino stasera?",
    "ru": "Что мне сегодня приготовить?",
    "ja": "今夜は何を作ればいい？",
}


@pytest.fixture
async def encoder() -> LocalEmbedder:
    return LocalEmbedder(ranker=False)


@pytest.mark.parametrize(
    ("said", "remembered"),
    [
        ("I am allergic to wool, please no wool products.", "Ann is allergic to wool."),
        ("Hi, I live in Vienna. Where is my parcel?", "Ann lives in Vienna."),
        ("Hi, I live at 9 Elm Road, Hull. Where is my parcel?", "Ann lives at 9 Elm Road, Hull."),
        ("I use a wheelchair, so please no stairs.", "Ann uses a wheelchair."),
        ("I have diabetes. What should I eat for breakfast?", "Ann has diabetes."),
        ("I'm vegetarian, what can I cook tonight?", "Ann is vegetarian."),
        ("My son is called Tim. Can you suggest a present?", "Ann's son is called Tim."),
        ("Ich bin allergisch gegen Nüsse, bitte nichts mit Nüssen.", 'Ann: "Ich bin allergisch gegen Nüsse."'),
        ("Soy alérgico a los frutos secos, ¿qué postre me recomiendas?", 'Ann: "Soy alérgico a los frutos secos."'),
    ],
)
async def test_what_is_told_beside_a_request_is_remembered(encoder: LocalEmbedder, said: str, remembered: str) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, said, reply="Let me see.", name="Ann")
        await memory.upkeep()
        assert await texts(user) == [remembered]


async def test_most_plain_statements_beside_a_question_are_remembered_and_hardly_any_others(
    encoder: LocalEmbedder,
) -> None:
    async with connect(embedder=encoder) as memory:
        found = {}
        for kind, sentences in (("plain", PLAIN), ("fleeting", FLEETING)):
            said = [f"{each} {ask}" for language, ask in ASKS.items() for each in sentences[language]]
            users = [memory.user(f"{kind} {number}") for number in range(len(said))]
            for user, text in zip(users, said, strict=True):
                await say(user, text)
            await memory.upkeep()
            found[kind] = sum([bool(await texts(user)) for user in users]) / len(said)
    assert found["plain"] > 0.6
    assert found["fleeting"] < 0.1


async def test_what_people_ask_one_another_is_judged_as_a_whole(encoder: LocalEmbedder) -> None:
    async with connect(embedder=encoder) as memory:
        ann, bob = (memory.user(name, thread="club") for name in ("ann", "bob"))
        await say(bob, "Nobody has the key again.")
        await say(ann, "I have diabetes. Who of you brings the cake for the party?")
        await memory.upkeep()
        assert await texts(ann) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("My phone number is 040 1234.", "My new phone number is 089 9876."),
        ("I live at 9 Elm Road, Hull.", "My new address is 5 Oak Lane, Leeds."),
        ("My address is 9 Elm Road, Hull.", "We moved to Leeds."),
    ],
)
async def test_a_newer_statement_about_the_same_matter_supersedes_the_old_one(
    encoder: LocalEmbedder, before: str, after: str
) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, before, after)
        await memory.upkeep()
        assert (len(await texts(user)), len(await texts(user, state="superseded"))) == (1, 1)


async def test_a_shorter_statement_about_a_home_does_not_hide_the_address(encoder: LocalEmbedder) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, "My address is 5 Oak Lane, Leeds.", "I live in Leeds.")
        await memory.upkeep()
        assert "ann's address is 5 Oak Lane, Leeds." in await texts(user)


async def test_a_sentence_that_rules_read_in_pieces_is_not_quoted_again(encoder: LocalEmbedder) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, "Hello, my name is Ann Keller and I live at 9 Elm Road, Hull.", "I moved to Leeds.", name="Ann")
        await memory.upkeep()
        assert set(await texts(user)) == {"Ann moved to Leeds.", "Ann's name is Ann Keller."}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("I have diabetes. What should I eat?", ["I have diabetes."]),
        ("I'm vegetarian, what can I cook?", ["I'm vegetarian."]),
        ("我对花生过敏，请不要放花生。", ["我对花生过敏。"]),
        ("I have diabetes.", []),
        ("What should I eat?", []),
        ("It hurts. What should I do?", []),
        ("I have diabetes " + "and this and that " * 20 + "what should I eat?", []),
        ("", []),
        ("\ud800? \0, \U0001f600?", []),
    ],
)
def test_parts_are_sentences_and_clauses_of_messages_that_ask(text: str, parts: list[str]) -> None:
    assert parts_of(text) == parts
