"""Removes interjections at the beginning of sentences: "Wow, Ann, …", "Well, …", "And …"."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from aforesaid.text.folding import fold
from aforesaid.text.vocabulary import Vocabulary

_OPENER: Final = re.compile(r"([^\W\d_]+(?:[’'][^\W\d_]+)?)(\s*[,!.:;…–—-]+\s*|\s+)")
_HESITATION: Final = {
    language: re.compile(rf"(?<![\w'’-])(?:{sounds})(?![\w'’-])(?:\s*,)?\s*", re.IGNORECASE)
    for language, sounds in (("english", "uh|um|erm|uhm|mm|hmm"), ("german", "äh|ähm|öhm|hm"), ("french", "euh|heu"))
}
_GAP: Final = re.compile(r"\s+([,.!?;:])|(?<=\s)\s+")
_LEAST_REST: Final = 3
"""Minimum words that must remain."""


def without_hesitation(text: str, language: str) -> str:
    """Remove filler sounds, such as "um", which transcripts contain."""
    pattern = _HESITATION.get(language)
    if pattern is None:
        return text
    return _GAP.sub(r"\1", pattern.sub(" ", text)).strip() or text


def without_opener(text: str, words: Vocabulary, names: Collection[str]) -> str:
    """Remove interjections and the addressed name from the beginning of a sentence.

    A word that could be part of the statement ("No dogs are allowed") is removed only before a comma or similar.
    """
    start = 0
    while (match := _OPENER.match(text, start)) is not None:
        word = fold(match[1])
        light = word in words.small_talk or word in names
        if not (word in words.joints or (light and not match[2].isspace())):
            break
        start = match.end()
    rest = text[start:]
    if not start or len(rest.split()) < _LEAST_REST:
        return text
    first = rest[0].upper()
    return (first if len(first) == 1 else rest[0]) + rest[1:]
