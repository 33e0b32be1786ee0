"""How text becomes the terms of the keyword index, the same for what is stored and what is asked."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final, NamedTuple
from unicodedata import combining, normalize

from aforesaid.text.languages import all_stems, language_of, stems, stop_words

LONGEST_TERM: Final = 64
"""Longer runs (encoded files, hashes) are cut; they are found by their beginning."""

MOST_TERMS: Final = 512
"""Maximum distinct words of a query that are looked up, the rarest first."""

# Scripts that write without spaces, and Korean, whose words end in particles. A run of them is indexed as its
# characters and its pairs of characters: Thai, Lao, Burmese, Khmer; kana; Hangul; the Chinese characters of all planes.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u31f0-\u31ff"
    "\uac00-\ud7af"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
# For plain ASCII, one pass that lowers letters and turns all that is not a letter, a digit or _ into a space.
_ASCII_FOLD: Final = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() or byte == ord("_") else ord(" ") for byte in range(128)
).ljust(256)
# Vowel signs and the like, which Python does not count as word characters: the scripts of India, without their stops.
_SIGNS: Final = "\u0900-\u0963\u0966-\u0dff"
_RUN: Final = re.compile(rf"([{_UNSPACED}]+)|((?:[^\W{_UNSPACED}]|[{_SIGNS}])+)")
_IS_SIGN: Final = re.compile(f"[{_SIGNS}]")


class QueryWord(NamedTuple):
    """A word of a query, and the terms that it may have been stored as."""

    word: str
    terms: tuple[str, ...]


def terms(text: str) -> list[str]:
    """Split a text into index terms, in order and with repetitions: stems of words, characters and pairs of them."""
    words, characters = _split(text)
    return stems(words, language_of(words)) + characters


def words_of(text: str) -> list[str]:
    """Return the folded words of a text as they stand, without stems; scripts without spaces give their characters."""
    words, characters = _split(text)
    return words + characters


def same_words(text: str) -> str:
    """Return what is equal for texts that say the same words; the text itself where it has none."""
    words = text.encode().translate(_ASCII_FOLD).decode().split() if text.isascii() else words_of(text)
    return " ".join(words) or text


def query_words(text: str) -> list[QueryWord]:
    """Return the different words of a query, in order, without stop words where others remain."""
    words, characters = _split(text)
    dull = stop_words(language_of(words))
    wanted = dict.fromkeys(words)
    telling = [word for word in wanted if word not in dull]
    found = [QueryWord(word, all_stems(word)) for word in telling or wanted]
    found += [QueryWord(character, (character,)) for character in dict.fromkeys(characters)]
    return found[:MOST_TERMS]


def fold(text: str) -> str:
    """Take away what people leave out when they type: case, accents, width."""
    # Accents go, so that "cafe" finds "café"; composing again keeps Korean syllables whole.
    folded = normalize("NFKD", text.casefold())
    bare = "".join([character for character in folded if not combining(character) or _IS_SIGN.match(character)])
    return normalize("NFC", bare).casefold()


def _split(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a text, and the characters and pairs of its runs without spaces."""
    if text.isascii():
        words = text.encode().translate(_ASCII_FOLD).decode().split()
        if max(map(len, words), default=0) > LONGEST_TERM:
            words = [word[:LONGEST_TERM] for word in words]
        return words, []
    words, characters = [], []
    for unspaced, word in _RUN.findall(fold(text)):
        if word:
            words.append(word[:LONGEST_TERM])
        else:
            characters.extend(unspaced)
            characters.extend(map("".join, pairwise(unspaced)))
    return words, characters
