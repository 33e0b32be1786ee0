"""Tokenising: splits a text into words, as the keyword index stores them before stemming."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

from aforesaid.domain.text_caches import holds_texts
from aforesaid.text.folding import fold
from aforesaid.text.scripts import SIGNS, UNSPACED_LETTERS

LONGEST_WORD: Final = 64
"""Maximum characters of a word. Longer runs, such as encoded files and hashes, are cut and found by their beginning."""

_CACHED_CHUNK: Final = 24
"""Maximum characters of a chunk of text, with its punctuation, whose words are cached."""
_MOST_CACHED: Final = 100_000
"""Maximum chunks whose words are cached. People use the same words again and again."""
_CACHED_TEXT: Final = 1_000
"""Maximum characters of a text whose words are cached: one message passes through many rules."""
_MOST_TEXTS: Final = 2_048

# For plain ASCII, one pass that lowers letters and turns all that is not a letter, a digit or _ into a space.
_ASCII_FOLD: Final = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(128)
).ljust(256)
_RUN: Final = re.compile(rf"([{UNSPACED_LETTERS}]+)|((?:[^\W{UNSPACED_LETTERS}]|[{SIGNS}])+)")


def split(text: str) -> tuple[list[str], list[str]]:
    """Return the folded words of a text, and the characters and pairs of characters of its runs without spaces."""
    if text.isascii():
        words = text.encode().translate(_ASCII_FOLD).decode().split()
        if max(map(len, words), default=0) > LONGEST_WORD:
            words = [word[:LONGEST_WORD] for word in words]
        return words, []
    words = []
    characters: list[str] = []
    for chunk in text.split():
        # Chunks in a script with spaces are words that come again; others are whole sentences, which do not.
        some, more = _split_chunk(chunk) if len(chunk) <= _CACHED_CHUNK else _split_chunk.__wrapped__(chunk)
        words += some
        characters += more
    return words, characters


@holds_texts
@lru_cache(_MOST_CACHED)
def _split_chunk(chunk: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split what is between two spaces. Folding does not reach across a space."""
    words, characters = [], []
    for unspaced, word in _RUN.findall(fold(chunk)):
        if word:
            words.append(word[:LONGEST_WORD])
        else:
            characters.extend(unspaced)
            characters.extend(map("".join, pairwise(unspaced)))
    return tuple(words), tuple(characters)


def words_of(text: str) -> list[str]:
    """Return the folded words of a text, not stemmed; scripts without spaces give their characters and pairs."""
    if len(text) <= _CACHED_TEXT:
        return list(_words(text))
    words, characters = split(text)
    return words + characters


@holds_texts
@lru_cache(_MOST_TEXTS)
def _words(text: str) -> tuple[str, ...]:
    words, characters = split(text)
    return (*words, *characters)


def word_key(text: str) -> str:
    """Return a key that is equal for texts of the same words; the text itself if it contains none."""
    words = text.encode().translate(_ASCII_FOLD).decode().split() if text.isascii() else words_of(text)
    return " ".join(words) or text
