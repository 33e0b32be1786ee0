"""What of an answer is read aloud. Code, addresses and long lists are for the eyes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

LONGEST: Final = 600
"""Characters that are read aloud: about forty seconds."""
PIECE: Final = 200
"""A service is given about so many characters at a time: the first words are heard while the next ones are made."""
_REST: Final = "The rest is written."
_WRITTEN: Final = "I have written the answer."
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_ADDRESS: Final = re.compile(r"https?://\S+")
_LINK: Final = re.compile(r"\[([^\]\n]*)\]\([^)\s]*\)")
_MARKS: Final = re.compile(r"[*_`#>|]+|^\s*[-•]\s+", re.MULTILINE)
_SENTENCES: Final = re.compile(r"(?<=[.!?…。！？])['\")\]]*\s+|\n+")


class Spoken(NamedTuple):
    """What is read aloud, piece by piece, and whether that is all of it."""

    pieces: tuple[str, ...]
    whole: bool


def speech_text(text: str) -> Spoken:
    """Return what to read aloud of an answer. What is left out has to be written."""
    bare = _ADDRESS.sub(" ", _LINK.sub(r"\1", _FENCE.sub("\n", text)))
    whole = not _FENCE.search(text) and not _ADDRESS.search(text)
    sentences = [" ".join(part.split()) for part in _SENTENCES.split(_MARKS.sub(" ", bare))]
    chosen, left = _beginning([sentence for sentence in sentences if sentence])
    whole = whole and not left
    if not whole:
        chosen.append(_REST if chosen else _WRITTEN)
    return Spoken(tuple(_joined(chosen)), whole)


def _beginning(sentences: list[str]) -> tuple[list[str], bool]:
    """Return as many sentences as are read aloud, and whether any are left. A first one without an end is cut."""
    length = 0
    for number, sentence in enumerate(sentences):
        length += len(sentence)
        if length > LONGEST:
            first = sentence[: sentence.rfind(" ", 1, LONGEST) + 1 or LONGEST].strip()
            return (sentences[:number] or [first]), True
    return sentences, False


def _joined(sentences: list[str]) -> Iterator[str]:
    """Return sentences in pieces: short ones together."""
    piece = ""
    for sentence in sentences:
        if piece and len(piece) + 1 + len(sentence) > PIECE:
            yield piece
            piece = ""
        piece = f"{piece} {sentence}".strip()
    if piece:
        yield piece
