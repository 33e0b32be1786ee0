"""How text becomes the terms of the keyword index, the same for what is stored and what is asked."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final
from unicodedata import combining, normalize

LONGEST_TERM: Final = 64
"""Longer runs (encoded files, hashes) are cut; they are found by their beginning."""

MOST_TERMS: Final = 64
"""So many different terms of a query are looked up."""

# Scripts that write without spaces. A run of them is indexed as its characters and its pairs of characters.
# Thai, Lao, Burmese, Khmer; kana; the Chinese characters of all planes.
_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u31f0-\u31ff"
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


def terms(text: str) -> list[str]:
    """Split a text into index terms, in order and with repetitions."""
    if text.isascii():
        words = text.encode().translate(_ASCII_FOLD).decode().split()
        if max(map(len, words), default=0) > LONGEST_TERM:
            return [word[:LONGEST_TERM] for word in words]
        return words
    found: list[str] = []
    for unspaced, word in _RUN.findall(_fold(text)):
        if word:
            found.append(word[:LONGEST_TERM])
        else:
            found.extend(unspaced)
            found.extend(map("".join, pairwise(unspaced)))
    return found


def query_terms(words: str) -> list[str]:
    """Return the different terms of a query, in order. Of a pasted page, the first ones count."""
    return list(dict.fromkeys(terms(words)))[:MOST_TERMS]


def _fold(text: str) -> str:
    """Take away what people leave out when they type: case, accents, width."""
    # Accents go, so that "cafe" finds "café"; composing again keeps Korean syllables whole.
    folded = normalize("NFKD", text.casefold())
    bare = "".join([character for character in folded if not combining(character) or _IS_SIGN.match(character)])
    return normalize("NFC", bare).casefold()
