"""Guesses the language of a text by its script, its common words and its accents."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache, lru_cache
from typing import Final

from aforesaid.domain.text_caches import holds_texts
from aforesaid.text.scripts import UNSPACED_LANGUAGES
from aforesaid.text.stop_words import stop_words
from aforesaid.text.words import words_of

ENGLISH: Final = "english"
LATIN_LANGUAGES: Final = ("english", "german", "spanish", "french", "italian", "portuguese", "dutch")
"""The known languages that are written in Latin letters. In a tie, the first one is guessed."""
ROMANCE: Final = ("spanish", "portuguese", "italian", "french")
"""Languages that are so alike that a few words may be taken for another one of them."""
_SCRIPTS: Final = {
    "japanese": "[\u3040-\u30ff]",
    "korean": "[\uac00-\ud7af]",
    "chinese": "[\u3400-\u4dbf\u4e00-\u9fff]",
    "russian": "[\u0400-\u052f]",
    "arabic": "[\u0600-\u06ff]",
    "greek": "[\u0370-\u03ff]",
    "hindi": "[\u0900-\u097f]",
    "tamil": "[\u0b80-\u0bff]",
    "armenian": "[\u0530-\u058f]",
}
"""Characters that show a language by themselves."""
LANGUAGES: Final = (*LATIN_LANGUAGES, *_SCRIPTS)
"""All languages that are guessed."""
_LETTERS_PER_UNSPACED: Final = 3
"""A character of an unspaced language counts as three letters, since it carries about as much text."""
_STEMMED: Final = {
    language: re.compile(script) for language, script in _SCRIPTS.items() if language not in UNSPACED_LANGUAGES
}
_LATIN_LETTERS: Final = "[A-Za-z\u00c0-\u024f]"
_BEYOND_LATIN: Final = re.compile("[^\x00-\u036f]")
_BEYOND_PUNCTUATION: Final = re.compile("[^\x00-\u036f\u1e00-\u1eff\u2000-\u27ff\U0001f000-\U0001ffff]")
"""Neither Latin letters nor the quotation marks, dashes, arrows, signs and emoji that are typed with them."""
_ACCENTS: Final = {
    "german": "äöüß", "spanish": "ñ¿¡áéíóú", "french": "àâçéèêëîïôœù", "italian": "àèéìòù", "portuguese": "ãõáâàçéêíóú",
    "dutch": "ëï",
}  # fmt: skip
_SHIFTS: Final = range(0, 16 * len(LATIN_LANGUAGES), 16)
"""Where the count of each language begins, in bits. No language has more stop words than fit into 16 bits."""
_FIELD: Final = (1 << 16) - 1
_MOST_CHARACTERS: Final = 20_000
"""Maximum characters of a text that are examined."""
_CACHED_CHARACTERS: Final = 1_000
"""Maximum characters of a text whose language is cached: one message passes through many rules."""
_MOST_CACHED: Final = 2_048
_MOST_NAMES: Final = 256
"""Sets of names whose pattern is cached."""


def guess_language(text: str, usual: str = ENGLISH, names: Collection[str] = ()) -> str:
    """Return the language of a text by its script, common words and accents; `usual` if they do not decide.

    `names` of people in the text are not looked at: "Mei Lin is vegetarian" is not Dutch.
    """
    if names and (pattern := _name_pattern(tuple(names))) is not None:
        text = pattern.sub(" ", text)
    if len(text) <= _CACHED_CHARACTERS:
        return _guess(text, usual)
    return _guess.__wrapped__(text[:_MOST_CHARACTERS], usual)


@holds_texts
@lru_cache(_MOST_NAMES)
def _name_pattern(names: tuple[str, ...]) -> re.Pattern[str] | None:
    known = sorted({re.escape(name) for name in names if name.strip()}, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(known)})(?!\w)") if known else None


@holds_texts
@lru_cache(_MOST_CACHED)
def _guess(beginning: str, usual: str) -> str:
    if not beginning.isascii() and (by_script := _main_script(beginning)) is not None:
        return by_script
    counts = dict.fromkeys(LATIN_LANGUAGES, 0) | _count(words_of(beginning), _common_words())
    letters = set(beginning.casefold())
    for language, accents in _ACCENTS.items():
        counts[language] += not letters.isdisjoint(accents)
    best = max(LATIN_LANGUAGES, key=lambda language: counts[language])
    return usual if counts.get(usual) == counts[best] else best


def index_language(words: Iterable[str]) -> str:
    """Return the language whose stemmer the keyword index uses for the Latin words of a text.

    It is guessed by stop words alone. Stored stems depend on it, so evidence that `guess_language` gains must not
    change it: that would need a rebuild of every index.
    """
    known = _index_words()
    total = sum(map(known.__getitem__, known.keys() & words))
    return _most_frequent(total) if total else ENGLISH


def language_by_script(word: str) -> str | None:
    """Return the language whose stemmer fits the script of a word; None for Latin letters and unspaced scripts."""
    if _BEYOND_LATIN.search(word) is None:
        return None
    return next((language for language, pattern in _STEMMED.items() if pattern.search(word)), None)


def _main_script(text: str) -> str | None:
    """Return the language of the script that most of a text is written in; None for Latin."""
    if _BEYOND_PUNCTUATION.search(text) is None:
        return None
    counts = {
        language: len(re.findall(script, text)) * (_LETTERS_PER_UNSPACED if language in UNSPACED_LANGUAGES else 1)
        for language, script in _SCRIPTS.items()
    }
    # Japanese uses Chinese characters too.
    if counts["japanese"]:
        counts["japanese"] += counts["chinese"]
    most = max(counts, key=lambda language: counts[language])
    return most if counts[most] > len(re.findall(_LATIN_LETTERS, text)) else None


def _count(words: Iterable[str], languages_by_word: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Return how many different words each language has in common with a text."""
    counts: dict[str, int] = {}
    for word in languages_by_word.keys() & words:
        for language in languages_by_word[word]:
            counts[language] = counts.get(language, 0) + 1
    return counts


@lru_cache(100_000)
def _most_frequent(total: int) -> str:
    """Return the language with the most words in a sum of `_index_words`; of several, the first."""
    counts = [total >> shift & _FIELD for shift in _SHIFTS]
    return LATIN_LANGUAGES[counts.index(max(counts))]


@cache
def _index_words() -> dict[str, int]:
    """Return the stop words, each with a number that has a one in the field of each of its languages.

    The sum of these numbers is how many words of each language a text has. Every stored message is counted this way.
    """
    return {
        word: sum(1 << _SHIFTS[LATIN_LANGUAGES.index(language)] for language in languages)
        for word, languages in _languages_by_word(
            {language: stop_words(language) for language in LATIN_LANGUAGES}
        ).items()
    }


@cache
def _common_words() -> dict[str, tuple[str, ...]]:
    from aforesaid.text.vocabulary import vocabulary  # noqa: PLC0415 - the keyword index does without these lists

    found = {}
    for language in LATIN_LANGUAGES:
        lists = vocabulary(language)
        everyday = (lists.small_talk, lists.joints, lists.first_person, lists.second_person, lists.times, lists.dull)
        found[language] = stop_words(language).union(*everyday)
    return _languages_by_word(found)


def _languages_by_word(words: Mapping[str, frozenset[str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for language, listed in words.items():
        for word in listed:
            found.setdefault(word, []).append(language)
    return {word: tuple(languages) for word, languages in found.items()}
