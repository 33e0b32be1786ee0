"""The people whom a text mentions."""

from __future__ import annotations

import pytest

from aforesaid.text.relations import mentioned_people, relation_called


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("My brother Levin moved back in with our parents.", [("Levin", "brother"), (None, "parents")]),
        ("Ann's sister Carol is a nurse.", [("Carol", "sister")]),
        ("Carol is my sister.", [("Carol", "sister")]),
        ("Carol, my best friend, is here.", [("Carol", "friend")]),
        ("My sister is called Carol.", [("Carol", "sister")]),
        ("My sister Mia lives in Rome.", [("Mia", "sister")]),
        ("Mia is my sister.", [("Mia", "sister")]),
        ("Una said that I met Mia.", [("Una", None), ("Mia", None)]),
        ("Mia sorella Anna vive a Roma.", [("Anna", "sister")]),
        ("My boss Karen told me off.", [("Karen", "boss")]),
        ("My mother-in-law Ruth visits.", [("Ruth", "mother-in-law")]),
        ("I met Tom at the gym.", [("Tom", None)]),
        ("Tom said he will come.", [("Tom", None)]),
        ("I called Senhor Tavares yesterday.", [("Senhor Tavares", None)]),
        ("Mr. Brown told me so.", [("Mr Brown", None)]),
        ("I met Carol Smith at the gym on Friday.", [("Carol Smith", None)]),
        ("Luckily Tavares said no.", [("Tavares", None)]),
        ("Herr Müller sagte nichts.", [("Herr Müller", None)]),
        ("Meine Chefin Carla Urlaub hat.", [("Carla", "boss")]),
        ("It's Carol's birthday tomorrow.", [("Carol", None)]),
        ("Dad can only walk with a stick.", [(None, "father")]),
        ("My husband and I moved to Oslo.", [(None, "husband")]),
        ("Meine Schwester Gesa wohnt in Bremen.", [("Gesa", "sister")]),
        ("Gesa sagt, sie kommt.", [("Gesa", None)]),
        ("Mi hija Lucía es alérgica a los cacahuetes.", [("Lucía", "daughter")]),
        ("Ma sœur Claire habite à Lyon.", [("Claire", "sister")]),
        ("Mia sorella si chiama Chiara.", [("Chiara", "sister")]),
        ("Minha irmã Joana mora em Lisboa.", [("Joana", "sister")]),
        ("Моя сестра Ольга живёт в Туле.", [("Ольга", "sister")]),
        ("أختي ليلى تعيش في القاهرة", [(None, "sister")]),
        ("我姐姐住在上海。", [(None, "sister")]),
        ("妹は東京に住んでいます。", [(None, "sister")]),
    ],
)
def test_people_are_recognised_by_what_stands_beside_their_names(
    text: str, people: list[tuple[str | None, str | None]]
) -> None:
    assert [(mention.name, mention.relation) for mention in mentioned_people(text, ["Ann"])] == people


@pytest.mark.parametrize(
    "text",
    [
        "Berlin is great.",
        "Monday works for me.",
        "The doctor said so.",
        "Der Arzt sagt, es wird besser.",
        "Her sister moved.",
        "Tom's sister moved.",
        "Netflix has a new series.",
        "大丈夫です。",
        "",
        "!!!",
    ],
)
def test_places_days_things_and_other_peoples_relatives_are_no_people_of_the_speaker(text: str) -> None:
    assert mentioned_people(text, ["Ann"]) == []


def test_the_speaker_is_nobody_they_mention() -> None:
    assert mentioned_people("Ann said that Ann's birthday is tomorrow.", ["Ann"]) == []


def test_a_word_for_a_relation_is_known_in_many_languages() -> None:
    words = ["Sister", "Schwester", "hermana", "SŒUR", "сестра", "姐姐", "stranger"]
    assert [relation_called(word) for word in words] == [*["sister"] * 6, None]
