"""Numbers with their nouns, as people read them: `1 message`, `2 messages`, `0 memories`."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun in the singular or plural. `noun` is in the singular, and regular if no plural."""
    if number == 1:
        return f"{number:,} {noun}"
    if plural is not None:
        return f"{number:,} {plural}"
    plural = f"{noun.removesuffix('y')}ies" if noun.endswith("y") and noun[-2:-1] not in set("aeiou") else f"{noun}s"
    return f"{number:,} {plural}"
