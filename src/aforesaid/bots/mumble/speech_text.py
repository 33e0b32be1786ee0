"""Chooses the part of an answer that is read aloud: without code, links and the rest of long texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

LONGEST: Final = 600
"""Maximum characters read aloud: about forty seconds."""
PIECE: Final = 200
"""Characters per request to the speech service: the first piece is played while the next one is synthesised."""
_REST: Final = "The rest is written."
_WRITTEN: Final = "I have written the answer."
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_ADDRESS: Final = re.compile(r"https?://\S+")
_LINK: Final = re.compile(r"\[([^\]\n]*)\]\([^)\s]*\)")
_MARKS: Final = re.compile(r"[*_`#>|]+|^\s*[-•]\s+", re.MULTILINE)
_SENTENCES: Final = re.compile(r"(?<=[.!?…。！？])['\")\]]*\s+|\n+")


class Spoken(NamedTuple):
    """The pieces of text to read aloud, and whether they are the whole answer."""

    pieces: tuple[str, ...]
    whole: bool


def speech_text(text: str) -> Spoken:
    """Return what to read aloud of an answer. If it is not the whole answer, the answer must also be written."""
    bare = _ADDRESS.sub(" ", _LINK.sub(r"\1", _FENCE.sub("\n", text)))
    whole = not _FENCE.search(text) and not _ADDRESS.search(text)
    sentences = [" ".join(part.split()) for part in _SENTENCES.split(_MARKS.sub(" ", bare))]
    chosen, left = _beginning([sentence for sentence in sentences if sentence])
    whole = whole and not left
    if not whole:
        chosen.append(_REST if chosen else _WRITTEN)
    return Spoken(tuple(_joined(chosen)), whole)


def _beginning(sentences: list[str]) -> tuple[list[str], bool]:
    """Return the sentences to read aloud, and whether any are left. A first sentence that is too long is cut."""
    length = 0
    for number, sentence in enumerate(sentences):
        length += len(sentence)
        if length > LONGEST:
            first = sentence[: sentence.rfind(" ", 1, LONGEST) + 1 or LONGEST].strip()
            return (sentences[:number] or [first]), True
    return sentences, False


def _joined(sentences: list[str]) -> Iterator[str]:
    """Yield pieces, joining short sentences."""
    piece = ""
    for sentence in sentences:
        if piece and len(piece) + 1 + len(sentence) > PIECE:
            yield piece
            piece = ""
        piece = f"{piece} {sentence}".strip()
    if piece:
        yield piece
