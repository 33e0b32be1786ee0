"""Writes Devanagari in Latin letters, roughly as people type Hindi who have no other keyboard."""

from __future__ import annotations

from typing import Final, NamedTuple

from aforesaid.extras import re

_CONSONANTS: Final = dict(
    zip(
        "कखगघङचछजझञटठडढणतथदधनपफबभमयरलवशषसह",
        "k kh g gh n ch chh j jh n t th d dh n t th d dh n p ph b bh m y r l v sh sh s h".split(),  # noqa: SIM905
        strict=True,
    )
)
_WITH_DOT: Final = {"क": "q", "ख": "kh", "ग": "g", "ज": "z", "फ": "f", "ड": "d", "ढ": "dh"}
_VOWELS: Final = dict(zip("अआइईउऊएऐओऔऋऑऍ", "a aa i ee u oo e ai o au ri o e".split(), strict=True))  # noqa: SIM905
_SIGNS: Final = dict(zip("ािीुूेैोौृॉॅ", "a i ee u oo e ai o au ri o e".split(), strict=True))  # noqa: SIM905
_OTHERS: Final = {"ं": "n", "ँ": "n", "ः": "h", "।": ".", "ॐ": "om", **dict(zip("०१२३४५६७८९", "0123456789", strict=True))}
_DOT, _MUTE = "\u093c", "\u094d"
_DEVANAGARI: Final = re.compile("[\u0900-\u097f]")
_COMBINING: Final = re.compile("[\u0900-\u0903\u093a-\u094f]")


class Romanised(NamedTuple):
    text: str
    origin: list[int]
    """Where each of its characters comes from."""

    def place(self, start: int, end: int, whole: str) -> tuple[int, int]:
        """Return where a part of it stands in the text that it was made of, with the signs that belong to it."""
        first, last = self.origin[start], self.origin[end - 1] + 1
        while last < len(whole) and _COMBINING.match(whole[last]):
            last += 1
        return first, last


def romanised(text: str) -> Romanised | None:
    """Return a text (NFC) with Latin letters instead of Devanagari; None if it has none."""
    if _DEVANAGARI.search(text) is None:
        return None
    made: list[str] = []
    origin: list[int] = []

    def put(letters: str, place: int) -> None:
        made.extend(letters)
        origin.extend([place] * len(letters))

    for place, character in enumerate(text):
        if character in _CONSONANTS:
            dotted = text[place + 1 : place + 2] == _DOT
            put(_WITH_DOT.get(character, _CONSONANTS[character]) if dotted else _CONSONANTS[character], place)
            if _has_vowel(text, place, place + 1 + dotted):
                put("a", place)
        elif character in _VOWELS:
            put(_VOWELS[character], place)
        elif character in _SIGNS:
            put(_SIGNS[character], place)
        elif character in _OTHERS:
            put(_OTHERS[character], place)
        elif character not in (_DOT, _MUTE):
            put(character, place)
    return Romanised("".join(made), origin)


def _has_vowel(text: str, place: int, after: int) -> bool:
    """Return whether the short a after a consonant is spoken: not at the end of a word, nor before an open syllable."""
    following = text[after : after + 1]
    if following in _SIGNS or following == _MUTE:
        return False
    first = place == 0 or _DEVANAGARI.match(text[place - 1]) is None
    if following not in _CONSONANTS:
        return first or following in {"ं", "ँ", "ः"}
    return first or text[after + 1 : after + 2] not in _SIGNS
