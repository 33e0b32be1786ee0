"""Character ranges of scripts, as parts of patterns."""

from __future__ import annotations

from typing import Final

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
