"""Plain statements in messages that ask for something, by the vectors of the built-in encoder, without a model."""

from __future__ import annotations

import pytest

from aforesaid.domain.checks import MemoryState
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
        ("I am allergic to wool, please no wool products.", "Ann: Allergic to wool"),
        ("Hi, I live in Vienna. Where is my parcel?", "Ann: Lives in Vienna"),
        ("Hi, I live at 9 Elm Road, Hull. Where is my parcel?", "Ann: Address: 9 Elm Road, Hull"),
        ("I use a wheelchair, so please no stairs.", "Ann uses a wheelchair."),
        ("I have diabetes. What should I eat for breakfast?", "Ann: Health: diabetes"),
        ("I'm vegetarian, what can I cook tonight?", "Ann: Diet: vegetarian"),
        ("My son is called Tim. Can you suggest a present?", "Ann: Child: son Tim"),
        ("Ich bin allergisch gegen Nüsse, bitte nichts mit Nüssen.", "Ann: Allergie: Nüsse"),
        ("Soy alérgico a los frutos secos, ¿qué postre me recomiendas?", "Ann: Alergia: frutos secos"),
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


async def test_what_people_ask_one_another_is_no_memory_but_what_they_tell_beside_it_is(encoder: LocalEmbedder) -> None:
    async with connect(embedder=encoder) as memory:
        ann, bob = (memory.user(name, thread="club") for name in ("ann", "bob"))
        await say(bob, "Nobody has the key again.")
        await say(ann, "I have diabetes. Who of you brings the cake for the party?")
        await memory.upkeep()
        assert await texts(ann) == ["ann: Health: diabetes"]


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        ("My phone number is 040 1234.", "My new phone number is 089 9876.", "superseded"),
        ("I live at 9 Elm Road, Hull.", "My new address is 5 Oak Lane, Leeds.", "superseded"),
        ("My address is 9 Elm Road, Hull.", "We moved to Leeds.", "expired"),
    ],
)
async def test_a_newer_statement_about_the_same_matter_supersedes_the_old_one(
    encoder: LocalEmbedder, before: str, after: str, state: MemoryState
) -> None:
    """An address is over where only another town is known."""
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, before, after)
        await memory.upkeep()
        assert (len(await texts(user)), len(await texts(user, state=state))) == (1, 1)


async def test_a_shorter_statement_about_a_home_does_not_hide_the_address(encoder: LocalEmbedder) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, "My address is 5 Oak Lane, Leeds.", "I live in Leeds.")
        await memory.upkeep()
        assert "ann: Address: 5 Oak Lane, Leeds" in await texts(user)


async def test_a_sentence_that_is_read_in_pieces_is_not_quoted_again(encoder: LocalEmbedder) -> None:
    async with connect(embedder=encoder) as memory:
        user = memory.user("ann")
        await say(user, "Hello, my name is Ann Keller and I live at 9 Elm Road, Hull.", "I moved to Leeds.", name="Ann")
        await memory.upkeep()
        assert set(await texts(user)) == {"Ann: Lives in Leeds", "Ann: Name: Ann Keller"}


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
