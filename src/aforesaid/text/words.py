"""Words of a text as the keyword index stores them: tokens, folding, stems, terms."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, Final
from unicodedata import combining, normalize

from aforesaid.domain.caches import holds_texts
from aforesaid.extras import re

UNSPACED_LETTERS: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3040-\u30ff\u31f0-\u31ff"
    "\uac00-\ud7af"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Scripts without spaces (Thai, Lao, Burmese, Khmer; kana; Chinese), and Hangul, whose words end in particles.

A run of them is indexed as its characters and its pairs of characters.
"""
UNSPACED_LANGUAGES: Final = frozenset({"chinese", "japanese", "korean"})
"""The known languages in these scripts. Their words are matched as substrings."""
SIGNS: Final = "\u0900-\u0963\u0966-\u0dff"
"""Vowel signs and the like of the scripts of India, without their full stops. Python does not count them as letters."""


_IS_SIGN: Final = re.compile(f"[{SIGNS}]")
_CACHED_CHARACTERS: Final = 1_000
"""Maximum characters of a text whose folded form is cached: one message passes through many rules."""
_MOST_FOLDED: Final = 2_048


def fold(text: str) -> str:
    """Remove what people leave out when they type: case, accents, width. "Café" becomes "cafe"."""
    if text.isascii():
        return text.lower()
    return _fold(text) if len(text) <= _CACHED_CHARACTERS else _fold.__wrapped__(text)


@holds_texts
@lru_cache(_MOST_FOLDED)
def _fold(text: str) -> str:
    # Composing again keeps Korean syllables whole.
    folded = normalize("NFKD", text.casefold())
    for character in filter(combining, set(folded)):
        if not _IS_SIGN.match(character):
            folded = folded.replace(character, "")
    return normalize("NFC", folded).casefold()


def fold_aligned(text: str) -> str:
    """Fold a text character by character, so that positions in the result are positions in the text.

    A character that folds to several keeps the first: "ß" becomes "s".
    """
    return "".join(map(_folded, text))


def fold_for_patterns(text: str, language: str) -> str:
    """Return a text as the patterns of its language expect it: without case and accents.

    English keeps its capitals, which mark names. Kana keep their voicing marks, and Russian its й.
    """
    plain = text.replace("’", "'")
    if language == "english":
        return plain
    if language in UNSPACED_LANGUAGES:
        return normalize("NFKC", plain)
    return plain.casefold().replace("ё", "е") if language == "russian" else fold(plain)


@lru_cache(maxsize=65_536)
def _folded(character: str) -> str:
    return "'" if character == "’" else (fold(character) or character)[:1]


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


_FILES: Final = (
    *("english", "german", "spanish", "french", "italian", "portuguese", "dutch", "polish", "turkish", "russian"),
    *("arabic", "hindi", "chinese", "japanese", "korean"),
)


@cache
def by_language() -> dict[str, dict[str, Any]]:
    """Return the words and patterns of each language that has a file in the folder `by_language`."""
    folder = files("aforesaid.text") / "by_language"
    return {name: tomllib.loads((folder / f"{name}.toml").read_text(encoding="utf-8")) for name in _FILES}


def listed_words(language: str, name: str) -> frozenset[str]:
    """Return a list in the file of a language, folded; empty where there is none."""
    return frozenset(fold(by_language().get(language, {}).get(name, "")).split())


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def any_of(patterns: Iterable[str]) -> str:
    """Return a pattern that is found wherever one of some is. Those that begin with a word are tried only at words."""
    ordered = sorted(patterns, key=lambda pattern: not pattern.startswith(r"\b"))
    at_words = sum(pattern.startswith(r"\b") for pattern in ordered)
    # In a group of their own, because only what all alternatives begin with is tried before them.
    return "|".join([f"(?:{'|'.join(ordered[:at_words])})", *ordered[at_words:]] if at_words else ordered)


def alternatives(text: str) -> str:
    """Return a pattern that matches any word of a list."""
    return "(?:" + "|".join(text.split()) + ")"
