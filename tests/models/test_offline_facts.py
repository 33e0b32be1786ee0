"""Facts as a text: adding, replacing and forgetting without a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.models.offline import forget_fact, merge_fact
from aforesaid.text.words import words_of

BLOB = "Software engineer at TechCorp, lives in Berlin, enjoys hiking."


def test_a_new_fact_is_added_as_it_was_stated() -> None:
    facts = merge_fact("", "that gruzilkin is Sergey")
    assert facts == "gruzilkin is Sergey."
    assert merge_fact(facts, "he likes pizza") == "gruzilkin is Sergey.\nHe likes pizza."


@pytest.mark.parametrize("again", ["gruzilkin is Sergey", "Gruzilkin is Sergey!", "that gruzilkin is Sergey."])
def test_what_is_known_is_not_added_again(again: str) -> None:
    assert merge_fact("gruzilkin is Sergey.", again) == "gruzilkin is Sergey."


def test_a_fuller_statement_takes_the_place_of_the_shorter_one() -> None:
    assert merge_fact("Ann has a dog.", "Ann has a dog called Rex") == "Ann has a dog called Rex."


@pytest.mark.parametrize(
    ("facts", "fact", "merged"),
    [
        ("Sergey lives in Berlin.", "he moved to Munich", "He moved to Munich."),
        ("Sergey hates pizza.", "Sergey likes pizza", "Sergey likes pizza."),
        ("Sergey prefers tea over coffee.", "Sergey prefers coffee to tea", "Sergey prefers coffee to tea."),
        ("His name is Serge.", "his name is Sergey", "His name is Sergey."),
        ("Сергей живет в Берлине.", "Сергей живет в Мюнхене", "Сергей живет в Мюнхене."),
        (BLOB, "he lives in Hamburg", "Software engineer at TechCorp, enjoys hiking.\nHe lives in Hamburg."),
        (
            "Sergey lives in Berlin and likes pizza.",
            "Sergey lives in Rome",
            "Sergey likes pizza.\nSergey lives in Rome.",
        ),
        (
            "Ann lives at 12 Elm Road, 20095 Hull, England.",
            "Ann lives at 5 Oak Lane, Leeds",
            "Ann lives at 5 Oak Lane, Leeds.",
        ),
        (
            "Ann's address is 12 Elm Road, Hull.",
            "Ann's address is 5 Oak Lane, Leeds",
            "Ann's address is 5 Oak Lane, Leeds.",
        ),
        (
            "Ann lives at 12 Elm Road, Hull.",
            "Ann's new address is 5 Oak Lane, Leeds",
            "Ann's new address is 5 Oak Lane, Leeds.",
        ),
        (
            "Ann's address is 12 Elm Road, Hull, and likes tea.",
            "Ann moved to Leeds",
            "Ann likes tea.\nAnn moved to Leeds.",
        ),
        (
            "Ann lives at 12 Elm Road, Hull, and likes tea.",
            "Ann moved to Leeds",
            "Ann likes tea.\nAnn moved to Leeds.",
        ),
        (
            "Ann's favourite dishes are pizza, pasta and sushi.",
            "Ann's favourite dishes are curry and rice",
            "Ann's favourite dishes are curry and rice.",
        ),
    ],
)
def test_the_newer_fact_wins_and_nothing_else_is_lost(facts: str, fact: str, merged: str) -> None:
    assert merge_fact(facts, fact) == merged


@pytest.mark.parametrize(
    ("facts", "fact"),
    [
        ("His sister lives in Paris.", "he lives in Rome"),
        ("Ann likes pizza.", "Ann likes sushi"),
        ("Ann used to live in Rome.", "Ann lives in Berlin"),
        ("Ann works at Siemens.", "Ann works as a nurse"),
        ("Ann's address is 5 Oak Lane, Leeds.", "Ann lives in Leeds"),
        ("Ann lives in Hull.", "Ann's e-mail address is ann@example.org"),
    ],
)
def test_what_can_both_be_true_stays(facts: str, fact: str) -> None:
    assert merge_fact(facts, fact).splitlines()[0] == facts


def test_the_first_person_becomes_the_third() -> None:
    assert merge_fact("", "I live in Berlin with my cat", "Ann") == "Ann lives in Berlin with their cat."
    assert merge_fact("", "I told you", "Ann") == 'Ann: "I told you".'
    assert merge_fact("", "ich wohne in Berlin", "Ann") == 'Ann: "ich wohne in Berlin".'


def test_a_fact_without_words_changes_nothing() -> None:
    assert merge_fact(BLOB, " … ") == BLOB


@pytest.mark.parametrize(
    ("facts", "what", "left"),
    [
        ("gruzilkin is Sergey.\nHe likes pizza.", "that gruzilkin likes pizza", "gruzilkin is Sergey."),
        ("gruzilkin is Sergey.\nHe likes pizza.", "pizza", "gruzilkin is Sergey."),
        (BLOB, "hiking", "Software engineer at TechCorp, lives in Berlin."),
        (BLOB, "he lives in Berlin", "Software engineer at TechCorp, enjoys hiking."),
        ("Sergey lives in Berlin and likes pizza.", "lives in Berlin", "Sergey likes pizza."),
        ("Ann likes pizza.\nOlga likes pizza.", "Olga likes pizza", "Ann likes pizza."),
        ("Сергей любит пиццу.\nСергей живет в Москве.", "пицца", "Сергей живет в Москве."),
        ("小明喜欢披萨。\n小明住在北京。", "披萨", "小明住在北京。"),
    ],
)
def test_only_what_is_to_be_forgotten_goes(facts: str, what: str, left: str) -> None:
    assert forget_fact(facts, what) == (left, True)


@pytest.mark.parametrize(
    ("facts", "what"),
    [
        ("Sergey hates pizza.", "Sergey likes pizza"),
        ("Sergey works at Pizza Hut.", "Sergey likes pizza"),
        ("Sergey likes pizza.", "sushi"),
        ("Sergey likes pizza.", ""),
        ("", "pizza"),
    ],
)
def test_what_is_not_there_is_not_found_and_nothing_goes(facts: str, what: str) -> None:
    assert forget_fact(facts, what) == (facts, False)


@pytest.mark.parametrize(
    ("facts", "topic"),
    [
        ("Sergey hates cilantro.", "cilantro"),
        ("Sergey hates Mondays.", "Mondays"),
        ("Sergey doesn't like coffee.", "the coffee"),
        ("Sergey doesn't like red wine.", "red wine"),
        ("Sergey dislikes jazz.", "jazz"),
        ("Sergey does not eat meat.", "meat"),
        ("Sergey is not married.", "married"),
        ("Sergey has no car.", "my car"),
        ("Sergey has no red car.", "red car"),
        ("Sergey never drinks beer.", "beer"),
        ("No me gusta el café.", "café"),
        ("No me gusta el vino tinto.", "el vino tinto"),
        ("Je n'aime pas le café.", "le café"),
        ("Ich mag Kaffee nicht.", "Kaffee"),
        ("Non mi piace il caffè.", "caffè"),
        ("Сергей не любит кофе.", "кофе"),
        ("小明不喜欢披萨。", "披萨"),
        ("小明讨厌香菜。", "香菜"),
        ("コーヒーは好きじゃない。", "コーヒー"),
    ],
)
def test_a_topic_is_forgotten_whether_it_is_denied_or_not(facts: str, topic: str) -> None:
    assert forget_fact(facts, topic) == ("", True)


@pytest.mark.parametrize(
    ("facts", "what"),
    [
        ("Sergey hates cilantro.", "that I like cilantro"),
        ("Sergey does not eat meat.", "that Sergey eats meat"),
        ("Sergey does not eat meat.", "eats meat"),
        ("Sergey never drinks beer.", "drinks beer"),
        ("Sergey is not married.", "he is married"),
        ("Sergey has no car.", "I have a car"),
        ("Sergey no come carne.", "come carne"),
        ("Сергей не ест мясо.", "ест мясо"),
        ("小明不吃披萨。", "吃披萨"),
        ("コーヒーが好きじゃない。", "コーヒーが好き"),
    ],
)
def test_the_opposite_of_a_claim_is_not_forgotten_with_it(facts: str, what: str) -> None:
    assert forget_fact(facts, what) == (facts, False)


def test_names_of_the_person_need_not_be_there() -> None:
    assert forget_fact("He has a red bicycle.", "Sergey's red bicycle", names=["Sergey"]).found


STATEMENTS = st.lists(
    st.sampled_from(
        ["Ann", "he", "likes", "hates", "pizza", "lives", "in", "Berlin", "and", ",", ".", "我", "喜欢", "茶", "。"]
    ),
    max_size=15,
).map(" ".join)
TEXT = st.one_of(STATEMENTS, st.text(max_size=60))


@given(TEXT, TEXT)
def test_nothing_is_made_up(facts: str, fact: str) -> None:
    merged = merge_fact(facts, fact)
    assert set(words_of(merged)) <= set(words_of(f"{facts}\n{fact}"))
    assert merge_fact(merged, fact) == merged
    left = forget_fact(facts, fact)
    assert set(words_of(left.text)) <= set(words_of(facts))
    assert left.found or left.text == facts


@pytest.mark.parametrize(
    ("facts", "forgotten", "left"),
    [
        ("Ann lives at 12 Elm Road, Hull, and likes tea.", "Elm Road", "Ann likes tea."),
        ("Ann's favourite dishes are pizza, pasta and sushi.", "sushi", "Ann's favourite dishes are pizza, pasta."),
    ],
)
def test_what_continues_a_forgotten_fact_is_forgotten_with_it(facts: str, forgotten: str, left: str) -> None:
    assert forget_fact(facts, forgotten).text == left
