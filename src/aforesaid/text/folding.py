"""Folding: makes texts comparable by removing case, accents and width."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final
from unicodedata import combining, normalize

from aforesaid.domain.text_caches import holds_texts
from aforesaid.text.scripts import SIGNS, UNSPACED_LANGUAGES

_IS_SIGN: Final = re.compile(f"[{SIGNS}]")
_CACHED_CHARACTERS: Final = 1_000
"""Maximum characters of a text whose folded form is cached: one message passes through many rules."""
_MOST_CACHED: Final = 2_048


def fold(text: str) -> str:
    """Remove what people leave out when they type: case, accents, width. "Café" becomes "cafe"."""
    if text.isascii():
        return text.lower()
    return _fold(text) if len(text) <= _CACHED_CHARACTERS else _fold.__wrapped__(text)


@holds_texts
@lru_cache(_MOST_CACHED)
def _fold(text: str) -> str:
    # Composing again keeps Korean syllables whole.
    folded = normalize("NFKD", text.casefold())
    bare = "".join([character for character in folded if not combining(character) or _IS_SIGN.match(character)])
    return normalize("NFC", bare).casefold()


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
