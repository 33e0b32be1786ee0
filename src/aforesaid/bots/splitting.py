"""Splits a long text into messages at paragraphs, lines, sentences or words, without breaking code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from unicodedata import category

_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n`]*)$", re.MULTILINE)
_LEAST: Final = 64
"""Minimum message length, in UTF-16 code units. Every platform allows more."""
_PAUSES: Final = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"[.!?…。！？]['\")\]]*\s"), re.compile(r"\s"))
"""Patterns after which a text may be cut, best first: paragraph, line, sentence, word."""
_JOINER: Final = "\u200d"


def units(text: str) -> int:
    """Return the length of a text in UTF-16 code units, as platforms count it."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def split(text: str, longest: int) -> list[str]:
    """Return a text in non-empty parts of at most `longest` units.

    A code block that has to be cut is closed at the end of its part and reopened at the start of the next.
    """
    if longest < _LEAST:
        raise ValueError(f"a text cannot be cut into messages of {longest} units; at least {_LEAST} are needed")
    return [part for part in _parts(text.strip("\n"), longest) if part.strip()]


def _parts(text: str, longest: int) -> Iterator[str]:
    opening = ""
    while units(opening + text) > longest:
        whole = opening + text
        end = _cut(whole, longest, len(opening))
        fence = _open_fence(whole[:end])
        if fence is not None:
            # Room for the line that closes the block.
            end = _cut(whole, longest - len(fence[0]) - 1, len(opening))
            fence = _open_fence(whole[:end])
        part, text = whole[:end].rstrip(), whole[end:].lstrip("\n")
        opening = ""
        if fence is not None:
            mark, language = fence
            part += f"\n{mark}"
            opening = f"{mark}{language}\n"
        else:
            text = text.lstrip()
        yield part
    if text.strip():
        yield (opening + text).rstrip()


def _cut(text: str, longest: int, least: int) -> int:
    """Return where to cut: after the last pattern that fits and is not in the first half, else at the limit."""
    limit = _reach(text, longest)
    middle = max(least + 1, limit // 2)
    for pause in _PAUSES:
        ends = [found.end() for found in pause.finditer(text, 0, limit) if found.end() >= middle]
        if ends:
            return ends[-1]
    end = limit
    while end > middle and _belongs_together(text, end):
        end -= 1
    return end if end > middle else limit


def _reach(text: str, longest: int) -> int:
    """Return how many characters of a text fit into `longest` units."""
    if units(text[:longest]) <= longest:
        return min(longest, len(text))
    total = 0
    for place, character in enumerate(text):
        total += 2 if ord(character) > 0xFFFF else 1  # noqa: PLR2004 - beyond the first plane
        if total > longest:
            return place
    return len(text)


def _belongs_together(text: str, end: int) -> bool:
    """Return whether a cut would split what is displayed as one character."""
    if end >= len(text):
        return False
    after, before = text[end], text[end - 1]
    return category(after) in {"Mn", "Me", "Mc"} or _JOINER in (after, before) or "🏻" <= after <= "🏿"


def _open_fence(text: str) -> tuple[str, str] | None:
    """Return the fence and the language of a code block that is open at the end of a text."""
    current: tuple[str, str] | None = None
    for found in _FENCE.finditer(text):
        mark, language = found[1], found[2].strip()
        if current is None:
            current = (mark, language)
        elif mark[0] == current[0][0] and len(mark) >= len(current[0]) and not language:
            current = None
    return current
