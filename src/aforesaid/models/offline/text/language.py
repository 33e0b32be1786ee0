"""Guesses the language of a text, among the languages of the word lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final
from unicodedata import normalize

from aforesaid.models.offline.text.vocabulary import UNSPACED, vocabulary
from aforesaid.text.languages import ENGLISH, stems, stop_words
from aforesaid.text.terms import fold, words_of

_SCRIPTS: Final = (
    ("japanese", re.compile("[\u3040-\u30ff]"), 3),
    ("korean", re.compile("[\uac00-\ud7af]"), 3),
    ("chinese", re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"), 3),
    ("russian", re.compile("[\u0400-\u052f]"), 1),
    ("arabic", re.compile("[\u0600-\u06ff]"), 1),
    ("hindi", re.compile("[\u0900-\u097f]"), 1),
)
"""Language, characters, and weight: a character of the first three languages counts as three letters."""
_LETTERS: Final = re.compile("[A-Za-z\u00c0-\u024f]")
_LATIN: Final = ("english", "german", "spanish", "french", "italian", "portuguese", "dutch")
_ACCENTS: Final = {
    "german": "äöüß", "spanish": "ñ¿¡áéíóú", "french": "àâçéèêëîïôœù", "italian": "àèéìòù", "portuguese": "ãõáâàçéêíóú",
    "dutch": "ëï",
}  # fmt: skip
_ENOUGH: Final = 20_000
"""Maximum characters examined."""


def guess_language(text: str, usual: str = ENGLISH) -> str:
    """Return the language of a text by its script and common words; `usual` if they do not decide."""
    beginning = text[:_ENOUGH]
    if not text.isascii():
        counts = {name: weight * len(pattern.findall(beginning)) for name, pattern, weight in _SCRIPTS}
        # Japanese uses Chinese characters too.
        if counts["japanese"]:
            counts["japanese"] += counts["chinese"]
        most = max(counts, key=lambda name: counts[name])
        if counts[most] > len(_LETTERS.findall(beginning)):
            return most
    speakers = _languages_by_word()
    counts = dict.fromkeys(_LATIN, 0)
    for word in speakers.keys() & words_of(beginning):
        for language in speakers[word]:
            counts[language] += 1
    letters = set(beginning.casefold())
    for language, accents in _ACCENTS.items():
        counts[language] += not letters.isdisjoint(accents)
    best = max(_LATIN, key=lambda language: counts[language])
    return usual if counts.get(usual, 0) == counts[best] and usual in counts else best


def stems_of(words: Iterable[str], language: str) -> list[str]:
    """Return the stems of folded words. The script selects the stemmer of words that are not Latin."""
    return stems(words, language if language in _LATIN else ENGLISH)


def as_matched(text: str, language: str) -> str:
    """Return a text as the patterns of its language expect it: without case and accents.

    English keeps its capitals, which mark names. Kana keep their voicing marks, and Russian its й.
    """
    plain = text.replace("’", "'")
    if language == ENGLISH:
        return plain
    if language in UNSPACED:
        return normalize("NFKC", plain)
    return plain.casefold().replace("ё", "е") if language == "russian" else fold(plain)


@cache
def _languages_by_word() -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for language in _LATIN:
        lists = vocabulary(language)
        everyday = (lists.small_talk, lists.joints, lists.first_person, lists.second_person, lists.times, lists.dull)
        for word in stop_words(language).union(*everyday):
            found.setdefault(word, []).append(language)
    return {word: tuple(languages) for word, languages in found.items()}
