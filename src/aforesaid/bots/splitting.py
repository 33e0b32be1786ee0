"""Cutting a long text into messages, at places where a reader would pause, without breaking blocks of code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from unicodedata import category

_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n`]*)$", re.MULTILINE)
_LEAST: Final = 64
"""A message that holds less than this is none of any platform."""
_PAUSES: Final = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"[.!?…。！？]['\")\]]*\s"), re.compile(r"\s"))
"""Where a text is cut, best first: after a paragraph, a line, a sentence, a word."""
_JOINER: Final = "\u200d"


def units(text: str) -> int:
    """Count a text as platforms do: in units of UTF-16."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def split(text: str, longest: int) -> list[str]:
    """Return a text in parts of at most `longest` units, none of them empty.

    A block of code that has to be cut is closed at the end of its part and opened again at the beginning of the next.
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
    """Return where to cut: at the last good pause that fits, not in the first half; else wherever it fits."""
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
    """Return how many characters have at most so many units."""
    if units(text[:longest]) <= longest:
        return min(longest, len(text))
    total = 0
    for place, character in enumerate(text):
        total += 2 if ord(character) > 0xFFFF else 1  # noqa: PLR2004 - beyond the first plane
        if total > longest:
            return place
    return len(text)


def _belongs_together(text: str, end: int) -> bool:
    """Tell whether a cut would tear apart what is seen as one character."""
    if end >= len(text):
        return False
    after, before = text[end], text[end - 1]
    return category(after) in {"Mn", "Me", "Mc"} or _JOINER in (after, before) or "🏻" <= after <= "🏿"


def _open_fence(text: str) -> tuple[str, str] | None:
    """Return the fence and the language of a block of code that is open at the end of a text."""
    current: tuple[str, str] | None = None
    for found in _FENCE.finditer(text):
        mark, language = found[1], found[2].strip()
        if current is None:
            current = (mark, language)
        elif mark[0] == current[0][0] and len(mark) >= len(current[0]) and not language:
            current = None
    return current
