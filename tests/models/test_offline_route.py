"""Requests to remember, to forget and to tell, recognised by rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aforesaid.models.offline import RecognisedRequest, recognise_request


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Bot remember that gruzilkin is Sergey", ("remember", "gruzilkin", "gruzilkin is Sergey")),
        ("Bot, remember this about Florent", ("remember", "Florent", "")),
        ("Bot, remember this about Florent: he likes cats", ("remember", "Florent", "he likes cats")),
        ("Bot forget that gruzilkin likes pizza", ("forget", "gruzilkin", "gruzilkin likes pizza")),
        ("Bot what do you know about @user", ("recall", "@user", "")),
    ],
)
def test_the_documented_examples(text: str, expected: tuple[str, str, str]) -> None:
    assert recognise_request(text) == expected


@pytest.mark.parametrize(
    ("text", "about", "content"),
    [
        ("remember that I like tea", "me", "I like tea"),
        ("Please remember my dog is Rex.", "me", "my dog is Rex."),
        ("don't forget that I'm allergic to nuts", "me", "I'm allergic to nuts"),
        ("remember: I live in Berlin", "me", "I live in Berlin"),
        ("remember <@123> lives in Berlin", "<@123>", "<@123> lives in Berlin"),
        ("note that the meeting is at 5", None, "the meeting is at 5"),
        ("Merk dir, dass ich gern Fußball spiele", "me", "ich gern Fußball spiele"),
        ("Recuerda que vivo en Madrid", "me", "vivo en Madrid"),
        ("Souviens-toi que j'aime le thé", "me", "j'aime le thé"),
        ("Ricorda che mi piace il tè", "me", "mi piace il tè"),
        ("Запомни, что я люблю чай", "me", "я люблю чай"),
        ("记住我喜欢喝茶", "me", "我喜欢喝茶"),
        ("私はお茶が好きだと覚えておいて", "me", "私はお茶が好きだ"),
        ("تذكر أنني أحب الشاي", "me", "أنني أحب الشاي"),
    ],
)
def test_remember(text: str, about: str | None, content: str) -> None:
    assert recognise_request(text) == RecognisedRequest("remember", about, content)


@pytest.mark.parametrize(
    ("text", "about", "content"),
    [
        ("forget that Ann lives in Rome", "Ann", "Ann lives in Rome"),
        ("Forget everything about me", "me", ""),
        ("forget everything you know about <@42>", "<@42>", ""),
        ("Bot, vergiss, dass ich Pizza mag", "me", "ich Pizza mag"),
        ("Забудь, что я люблю пиццу", "me", "я люблю пиццу"),
        ("忘记我喜欢披萨", "me", "我喜欢披萨"),
    ],
)
def test_forget(text: str, about: str, content: str) -> None:
    assert recognise_request(text) == RecognisedRequest("forget", about, content)


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("what do you know about me?", "me"),
        ("Who am I?", "me"),
        ("What do you remember about Florent?", "Florent"),
        ("Was weißt du über mich?", "me"),
        ("¿Qué sabes de mí?", "me"),
        ("Que sais-tu de Paul ?", "Paul"),
        ("O que você sabe sobre mim?", "me"),
        ("Что ты знаешь обо мне?", "me"),
        ("你知道关于我的什么？", "me"),
        ("私について何を知っていますか？", "me"),
        ("ماذا تعرف عني؟", "me"),
    ],
)
def test_recall(text: str, about: str) -> None:
    assert recognise_request(text) == RecognisedRequest("recall", about)


@pytest.mark.parametrize(
    "text",
    [
        "Remember when we went to Rome?",
        "Remember the time we got lost",
        "I can't remember",
        "Do you remember my name?",
        "forget it",
        "Forget about it!",
        "don't forget to buy milk",
        "We will remember that day",
        "What do you know about the war in Ukraine?",
        "what do you know about it?",
        "The bot remembers that I like tea",
        "Bot",
        "remember that",
        "",
    ],
)
def test_what_only_might_be_a_request_is_none(text: str) -> None:
    assert recognise_request(text) == RecognisedRequest("none")


def test_names_decide_whom_it_is_about() -> None:
    assert recognise_request("remember that Mary Jane likes tea", names=["Mary", "Mary Jane"]).about == "Mary Jane"
    assert recognise_request("Robo, remember that I like tea", bots=["Robo"]) == RecognisedRequest(
        "remember", "me", "I like tea"
    )


@given(st.text(max_size=80))
def test_no_text_is_too_strange(text: str) -> None:
    asked = recognise_request(f"Bot, remember that {text}")
    assert asked.content in " ".join(text.replace("’", "'").split()) or asked.action != "remember"
