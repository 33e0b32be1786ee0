"""Numbers with their nouns, as people read them: `1 message`, `2 messages`, `0 memories`."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or plural. `noun` is a regular English noun in the singular."""
    if number == 1:
        return f"{number:,} {noun}"
    plural = f"{noun.removesuffix('y')}ies" if noun.endswith("y") and noun[-2:-1] not in set("aeiou") else f"{noun}s"
    return f"{number:,} {plural}"
