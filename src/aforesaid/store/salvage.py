"""What could be read of a damaged store."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from aforesaid.domain.transfer import Row

_MOST_NAMED: Final = 50
"""Maximum numbers of missing records that are named for each kind."""
_MOST_SCANNED: Final = 10_000_000
"""Numbers above this do not begin at 1: messages of a fallback store have very large ones."""


@dataclass(frozen=True, slots=True)
class Salvage:
    """Rows in the order of a dump, and what is missing."""

    rows: Sequence[Row]
    lost: tuple[str, ...]
    """What could not be read, one line each."""


def missing(what: str, there: Collection[int], given: int, named: Collection[int] = ()) -> list[str]:
    """Return a line that names the records whose numbers were given out and that are not there; none if all are.

    `given` is the highest number that was given out, as far as it is known. Records in `named` have a line already.
    """
    last = max([*there, given])
    first = 1 if last <= _MOST_SCANNED else min(there, default=last)
    gone = sorted(set(range(first, last + 1)).difference(there, named))
    return [f"{what} that are not there (erased before, or lost): {ranges(gone[:_MOST_NAMED])}"] if gone else []


def ranges(numbers: Sequence[int]) -> str:
    """Write numbers as people do: #3, #5 to #9."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(f"#{first}" if first == last else f"#{first} to #{last}" for first, last in parts)
