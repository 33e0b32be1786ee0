"""Folding that keeps the positions of characters, so that a match can be cut out of the original text."""

from __future__ import annotations

from functools import lru_cache

from aforesaid.text.terms import fold


def fold_aligned(text: str) -> str:
    """Fold a text character by character: the result has the same length. "ß" becomes "s"."""
    return "".join(map(_folded, text))


@lru_cache(maxsize=65_536)
def _folded(character: str) -> str:
    return "'" if character == "’" else (fold(character) or character)[:1]
