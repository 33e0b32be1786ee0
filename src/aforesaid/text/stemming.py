"""Stems of words.

A stored text is stemmed in its own language. A query is too short to be sure of its language, so its words are looked
up under the stems of every language of its script.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from aforesaid.domain.text_caches import holds_texts
from aforesaid.text.languages import ENGLISH, LATIN_LANGUAGES, language_by_script

if TYPE_CHECKING:
    from Stemmer import Stemmer

_MOST_CACHED: Final = 200_000
"""Maximum words per language whose stems are cached."""


def stems(words: Iterable[str], language: str) -> list[str]:
    """Return the stems of the folded words of one text.

    The script of a word selects its stemmer. `language` counts for words in Latin letters; if it is not written in
    Latin letters itself, they are taken as English, as a Latin word in a Chinese text most likely is.
    """
    cached = _stem_cache(language)
    return [*map(cached.__getitem__, words)]


@holds_texts
@lru_cache(maxsize=10_000)
def all_stems(word: str) -> tuple[str, ...]:
    """Return the stems that a word of a query may have been stored under."""
    by_script = language_by_script(word)
    languages = LATIN_LANGUAGES if by_script is None else (by_script,)
    return tuple(dict.fromkeys(str(_stemmer(language).stemWord(word)) for language in languages))


def _stem(word: str, language: str) -> str:
    latin = language if language in LATIN_LANGUAGES else ENGLISH
    return str(_stemmer(language_by_script(word) or latin).stemWord(word))


class _Stems(dict[str, str]):
    """The stems of words of one language, computed when they are first asked for."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self._language = language

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_CACHED:
            self.clear()
        self[word] = found = _stem(word, self._language)
        return found


@holds_texts
@cache
def _stem_cache(language: str) -> _Stems:
    return _Stems(language)


@cache
def _stemmer(language: str) -> Stemmer:
    from Stemmer import Stemmer  # noqa: PLC0415 - loaded with the first word

    return Stemmer(language, 0)
