"""Memories found by rules: what becomes one, and what must never."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.domain.memory import CATEGORIES
from aforesaid.models.offline import ExtractedMemory, Spoken, extract, third_person

SAID = datetime(2026, 5, 6, 15, 0, tzinfo=UTC)


def found(text: str, speaker: str = "Ann") -> list[ExtractedMemory]:
    return extract([Spoken(speaker, text, SAID)])


@pytest.mark.parametrize(
    ("said", "category", "text"),
    [
        ("I live in New York City.", "fact", "Ann lives in New York City."),
        ("i'm living in Berlin now", "fact", "Ann is living in Berlin now."),
        ("I live in Berlin with my sister.", "fact", "Ann lives in Berlin with their sister."),
        ("I'm allergic to peanuts.", "fact", "Ann is allergic to peanuts."),
        ("I'm a software engineer at TechCorp.", "fact", "Ann is a software engineer at TechCorp."),
        ("My birthday is on May 3.", "fact", "Ann's birthday is on May 3."),
        ("My friend lives in Paris.", "fact", "Ann's friend lives in Paris."),
        ("I don't work at Google anymore.", "fact", "Ann doesn't work at Google anymore."),
        ("I prefer tea over coffee", "preference", "Ann prefers tea over coffee."),
        ("I really enjoy hiking with my dog.", "preference", "Ann really enjoys hiking with their dog."),
        ("I hate mushrooms", "preference", "Ann hates mushrooms."),
        ("I don't like loud music.", "preference", "Ann doesn't like loud music."),
        ("I need to buy milk.", "task", "Ann needs to buy milk."),
        ("I'll send the report by Friday.", "task", "Ann will send the report by Friday (2026-05-08)."),
        ("I went to Paris last week.", "other", "Ann went to Paris last week (2026-04-27 to 2026-05-03)."),
        ("I'm going to Rome tomorrow.", "schedule", "Ann is going to Rome tomorrow (2026-05-07)."),
        (
            "I have a dentist appointment next Monday at 9am.",
            "schedule",
            "Ann has a dentist appointment next Monday at 9am (2026-05-11 09:00).",
        ),
        (
            "Funeral at church on Monday at 9am",
            "schedule",
            'Ann: "Funeral at church on Monday at 9am" (2026-05-11 09:00).',
        ),
        (
            "Can you remind me to call mom tomorrow at 6pm?",
            "reminder",
            'Ann: "Can you remind me to call mom tomorrow at 6pm?" (2026-05-07 18:00).',
        ),
        ("We decided to adopt a dog.", "other", 'Ann: "We decided to adopt a dog."'),
        ("Ich wohne in Berlin.", "fact", 'Ann: "Ich wohne in Berlin."'),
        ("Vivo en Madrid.", "fact", 'Ann: "Vivo en Madrid."'),
        ("J'habite à Lyon.", "fact", 'Ann: "J\'habite à Lyon."'),
        ("Abito a Roma.", "fact", 'Ann: "Abito a Roma."'),
        ("Moro em Lisboa.", "fact", 'Ann: "Moro em Lisboa."'),
        ("Я живу в Москве.", "fact", 'Ann: "Я живу в Москве."'),
        ("Мой день рождения 5 мая.", "fact", 'Ann: "Мой день рождения 5 мая."'),
        ("我住在北京。", "fact", 'Ann: "我住在北京。"'),
        ("私は東京に住んでいます。", "fact", 'Ann: "私は東京に住んでいます。"'),
        ("أعيش في القاهرة.", "fact", 'Ann: "أعيش في القاهرة."'),
        ("Ich mag keinen Fisch, ich liebe Pizza.", "preference", 'Ann: "Ich mag keinen Fisch, ich liebe Pizza."'),
        ("Je préfère le thé.", "preference", 'Ann: "Je préfère le thé."'),
        (
            "Ich habe nächsten Montag um 9 Uhr einen Zahnarzttermin.",
            "schedule",
            'Ann: "Ich habe nächsten Montag um 9 Uhr einen Zahnarzttermin." (2026-05-11 09:00).',
        ),
        ("我明天下午3点有会议。", "schedule", 'Ann: "我明天下午3点有会议。" (2026-05-07 15:00).'),
    ],
)
def test_what_people_say_about_themselves_is_remembered(said: str, category: str, text: str) -> None:
    (memory,) = found(said)
    assert (memory.category, memory.text) == (category, text)
    assert memory.turn == 0
    assert memory.speaker == "Ann"


@pytest.mark.parametrize(
    "said",
    [
        "Do I live in Berlin?",
        "I don't live in Berlin.",
        "If I lived in Berlin, I'd be happy.",
        "I wish I lived in Berlin",
        "Maybe I'm moving to Berlin.",
        "I might move to Rome.",
        "I used to live in Rome.",
        "I live in Berlin, just kidding",
        'She said "I live in Paris".',
        "He told me I live in a dream.",
        "> I live in Paris",
        "You live in Berlin.",
        "My boss said I should quit.",
        "I can't remember where I live.",
        "I'm a bit tired.",
        "I love you",
        "I love it!",
        "I need to say something.",
        "She wants a dog.",
        "Will do!",
        "They remind me of my childhood.",
        "Ich wohne nicht in Berlin.",
        "Wenn ich in Berlin wohne, bin ich froh.",
        "No vivo en Madrid.",
        "Su trabajo de invierno es duro.",
        "Je n'habite pas à Lyon.",
        "Я не живу в Москве.",
        "我不住在北京。",
        "如果我住在北京就好了。",
        "東京に住んでいません。",
        "",
    ],
)
def test_what_is_not_a_fact_about_the_speaker_is_not_remembered(said: str) -> None:
    assert found(said) == []


def test_what_the_assistant_says_is_not_remembered() -> None:
    assert extract([Spoken("Bot", "I live in the cloud and I love tea.", SAID, role="assistant")]) == []


def test_each_statement_of_a_sentence_is_a_memory_of_its_own() -> None:
    assert [memory.text for memory in found("I live in Berlin and work at Siemens, but I hate the noise.")] == [
        "Ann lives in Berlin.",
        "Ann works at Siemens.",
        "Ann hates the noise.",
    ]


def test_a_memory_names_its_turn_and_its_time() -> None:
    turns = [Spoken("Bob", "Hello!", SAID), Spoken("Ann", "My flight leaves on 2026-07-01 at 14:00.", SAID)]
    (memory,) = extract(turns)
    assert (memory.turn, memory.category, memory.importance) == (1, "schedule", 10)
    assert memory.when is not None
    assert memory.when.start == datetime(2026, 7, 1, 14, 0, tzinfo=UTC)
    assert memory.quote == "My flight leaves on 2026-07-01 at 14:00."


def test_an_appointment_without_a_known_day_is_kept_without_one() -> None:
    (memory,) = extract([Spoken("Ann", "I have a dentist appointment on Friday.")])
    assert (memory.category, memory.when) == ("schedule", None)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("I live in Berlin.", "I moved to Munich last week."),
        ("I work at Siemens.", "I started a new job at Bosch."),
        ("My name is Ann.", "Call me Annie."),
        ("I prefer tea over coffee.", "I prefer coffee to tea."),
        ("I love mushrooms.", "I hate mushrooms."),
        ("My favorite colour is blue.", "My favourite colour is green."),
        ("My sister lives in Paris.", "My sister moved to Lyon."),
        ("Ich wohne in Berlin.", "Ich bin nach Köln umgezogen."),
        ("Vivo en Madrid.", "Me mudé a Sevilla."),
        ("Я живу в Москве.", "Я переехал в Казань."),
        ("我住在北京。", "我上周搬到了上海。"),
    ],
)
def test_a_later_contradiction_has_the_same_key(earlier: str, later: str) -> None:
    (first,), (second,) = found(earlier), found(later)
    assert first.key is not None
    assert first.key == second.key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I live in Berlin.", "My friend lives in Paris."),
        ("I love mushrooms.", "I love mountains."),
        ("I'm allergic to peanuts.", "I'm allergic to cats."),
        ("I work at Siemens.", "I work as a nurse."),
    ],
)
def test_what_can_both_be_true_has_different_keys(one: str, other: str) -> None:
    (first,), (second,) = found(one), found(other)
    assert None not in (first.key, second.key)
    assert first.key != second.key


@pytest.mark.parametrize(
    ("said", "turned"),
    [
        ("I study biology", "Ann studies biology"),
        ("I've moved", "Ann has moved"),
        ("I told you so", None),
        ("I think we won", None),
        ("I'd go", None),
        ("We moved", None),
        ("I xylophone", None),
    ],
)
def test_the_third_person_is_used_only_where_it_is_safe(said: str, turned: str | None) -> None:
    assert third_person(said, "Ann") == turned


SENTENCES = st.lists(
    st.sampled_from(
        [
            "I",
            "I'm",
            "my",
            "live",
            "in",
            "Berlin",
            "and",
            "love",
            "tea",
            "tomorrow",
            "at",
            "9am",
            "not",
            "if",
            "?",
            ".",
            "\n",
        ]
        + ["ich", "wohne", "我", "住在", "北京", "。", "я", "живу", "в", '"', "remind", "me", "to", "31", "February"]
    ),
    max_size=25,
).map(" ".join)


@given(st.lists(st.one_of(SENTENCES, st.text(max_size=80)), max_size=5), st.sampled_from([None, SAID]))
def test_every_memory_is_whole_and_comes_from_what_was_said(texts: list[str], said: datetime | None) -> None:
    for memory in extract([Spoken("Ann", text, said) for text in texts]):
        assert memory.category in CATEGORIES
        assert 1 <= memory.importance <= 10
        assert memory.text.strip()
        spoken = "".join(texts[memory.turn].replace("’", "'").split()).casefold()
        assert all(word.casefold() in spoken for word in memory.quote.replace("I'", "i'").split())


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Hi, I am Max", "Ann's name is Max."),
        ("I'm Max.", "Ann's name is Max."),
        ("I am Ahmed", "Ann's name is Ahmed."),
        ("Ich bin Max.", "Ann heißt Max."),
        ("Hallo, ich bin Jonas Weber!", "Ann heißt Jonas Weber."),
        ("Hola, soy Ana.", "Ann se llama Ana."),
        ("Je suis Luc.", "Ann s'appelle Luc."),
        ("Sono Anna.", "Ann si chiama Anna."),
        ("Sou o Pedro.", "Ann se chama Pedro."),
        ("Ik ben Jan.", "Ann heet Jan."),
    ],
)
def test_the_name_of_an_introduction_is_remembered(said: str, text: str) -> None:
    found = extract([Spoken("Ann", said)])
    assert [(each.text, each.key, each.quote) for each in found] == [(text, "name", said)]


def test_an_introduction_may_say_more() -> None:
    assert [each.key for each in extract([Spoken("Ann", "I'm Max and I live in Rome.")])] == ["name", "home"]
    assert [each.key for each in extract([Spoken("Ann", "Ich bin Max und wohne in Köln.")])] == ["name", "home"]


@pytest.mark.parametrize(
    "said",
    [
        "I am German",
        "I am Tired",
        "I am Catholic",
        "I am Here",
        "I am CEO",
        "I am Japanese",
        "I am Max?",
        "I am Max's brother",
        "Ich bin Lehrer",
        "Ich bin Koch",
        "Ich bin Vater",
        "Im Bett",
        "Soy Médico",
        "Je suis Français",
        "Ik ben Nederlander",
    ],
)
def test_what_follows_i_am_is_mostly_no_name(said: str) -> None:
    assert "name" not in [each.key for each in extract([Spoken("Ann", said)])]
