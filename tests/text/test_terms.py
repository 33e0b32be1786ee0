"""Words, languages, terms of the keyword index, and words that announce a change."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from aforesaid.text.languages import MOST_COUNTED, count_change_words, guess_language, index_language, terms
from aforesaid.text.words import word_key, words_of


@given(st.text(), st.text())
@example("Happy birthday!", "happy BIRTHDAY")
@example("Ünï çode", "uni code")
@example("?!", "!?")
def test_texts_that_say_the_same_words_are_told_by_one_key(one: str, other: str) -> None:
    alike = words_of(one) == words_of(other) if words_of(one) else one == other
    assert (word_key(one) == word_key(other)) is alike
    assert word_key(one) == word_key(f" {one} \n") or not words_of(one)


def test_terms_keep_what_people_search_for() -> None:
    assert terms("Hello, WORLD! It's 3.5°C") == ["hello", "world", "it", "s", "3", "5", "c"]
    assert terms("北京大学") == ["北", "京", "大", "学", "北京", "京大", "大学"]
    assert terms("日本語とEnglish") == ["english", "日", "本", "語", "と", "日本", "本語", "語と"]
    assert terms("한국어") == ["한", "국", "어", "한국", "국어"]
    assert len(terms("हिन्दी में।")) == 2
    assert len(terms("தமிழ்")) == 1
    assert terms("x" * 100) == ["x" * 64]
    assert terms("🙂 !?") == []
    assert words_of("Die Häuser und 北京") == ["die", "hauser", "und", "北", "京", "北京"]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("We moved to the house of my sister", "english"),
        ("Ich wohne jetzt in der Stadt", "german"),
        ("Mi hermana deja las maletas en la estación", "spanish"),
        ("Je suis dans la maison avec mon frère", "french"),
        ("Non ho ancora visto la nuova casa", "italian"),
        ("Eu não tenho mais o livro dela", "portuguese"),
        ("Ik heb het boek niet gelezen", "dutch"),
        ("Berlin", "english"),
        ("", "english"),
    ],
)
def test_the_language_of_a_text_is_told_by_its_small_words(text: str, language: str) -> None:
    assert index_language(words_of(text)) == language


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("We adopted two puppies last winter", "we adopt two puppi last winter"),
        ("Ich wohne jetzt in den alten Häusern", "ich wohn jetzt in den alt haus"),
        ("Mi hermana deja las maletas en la estación", "mi herman dej las malet en la estacion"),
        ("Nous avons visité les musées de la ville", "nous avon visit le muse de la vill"),
        ("Non ho ancora visto le nuove case", "non ho ancor vist le nuov cas"),
        ("Eu não tenho mais os livros dela", "eu nao tenh mais os livr del"),
        ("Ik heb de boeken niet", "ik heb de boek niet"),
        ("Мы купили новую собаку", "мы куп нов собак"),
        ("قرأت الكتاب الجديد في المكتبة", "قرا كتاب جديد في مكتب"),
        ("नई किताबें", "न किताब"),
    ],
)
def test_stored_terms_stay_the_same(text: str, stored: str) -> None:
    """A term that changes is no longer found in existing stores: they would have to rebuild their indexes."""
    assert " ".join(terms(text)) == stored


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Ich wohne jetzt in der Stadt", "german"),
        ("¿Dónde?", "spanish"),
        ("Мы купили собаку в Berlin", "russian"),
        ("昨日、友達と映画館に行きました", "japanese"),
        ("我昨天在北京上课", "chinese"),
        ("도서관에서 책을 읽었어요", "korean"),
        ("قرأت الكتاب", "arabic"),
        ("नई किताबें", "hindi"),
        ("Πού είναι το σπίτι;", "greek"),
        ("நான் வீட்டில்", "tamil"),
        ("Ես տանն եմ", "armenian"),
        ("Berlin", "english"),
        ("", "english"),
    ],
)
def test_the_language_of_a_text_is_guessed_by_its_script_words_and_accents(text: str, language: str) -> None:
    assert guess_language(text) == language


def test_the_usual_language_is_returned_when_nothing_else_decides() -> None:
    assert guess_language("Berlin", "german") == "german"
    assert guess_language("the house of my sister", "german") == "english"


@pytest.mark.parametrize(
    "text",
    [
        "We sold the flat and moved to a house.",
        "Er nimmt kein Marcumar mehr, der Arzt hat umgestellt.",
        "Мы больше не живём в Туле.",
        "Artık Ankara'da oturuyorum.",
        "来月から大阪に引っ越します。",
        "الان نعيش في تونس",
    ],
)
def test_words_that_announce_a_change_are_found_in_any_language(text: str) -> None:
    assert count_change_words(text) > 0


def test_a_plain_statement_has_none() -> None:
    assert count_change_words("My sister Clara plays the cello.") == 0


def test_no_more_are_counted_than_tell_something() -> None:
    assert count_change_words("now " * 50) == MOST_COUNTED
