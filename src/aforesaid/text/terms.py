"""Terms of the keyword index, for stored texts and for queries. Stored indexes depend on them."""

from __future__ import annotations

from typing import Final, NamedTuple

from aforesaid.text.languages import index_language
from aforesaid.text.stemming import all_stems, stems
from aforesaid.text.stop_words import stop_words
from aforesaid.text.words import split

MOST_TERMS: Final = 512
"""Maximum distinct words of a query that are looked up: its first ones."""


class QueryWord(NamedTuple):
    """A word of a query, and the terms that it may have been stored as."""

    word: str
    terms: tuple[str, ...]


def terms(text: str) -> list[str]:
    """Split a text into index terms, in order and with repetitions: stems of words, characters and pairs of them."""
    words, characters = split(text)
    return stems(words, index_language(words)) + characters


def query_words(text: str) -> list[QueryWord]:
    """Return the different words of a query, in order, without stop words where others remain."""
    words, characters = split(text)
    ignored = stop_words(index_language(words))
    distinct = dict.fromkeys(words)
    content = [word for word in distinct if word not in ignored]
    found = [QueryWord(word, all_stems(word)) for word in content or distinct]
    found += [QueryWord(character, (character,)) for character in dict.fromkeys(characters)]
    return found[:MOST_TERMS]
