"""What could be read of a damaged store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aforesaid.domain.transfer import Row


@dataclass(frozen=True, slots=True)
class Salvage:
    """Rows in the order of a dump, and what is missing."""

    rows: Sequence[Row]
    lost: tuple[str, ...]
    """What could not be read, one line each."""


def ranges(numbers: Sequence[int]) -> str:
    """Write numbers as people do: #3, #5 to #9."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(f"#{first}" if first == last else f"#{first} to #{last}" for first, last in parts)
