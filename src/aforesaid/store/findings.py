"""What checks and repairs of a store found."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from aforesaid.domain.report import Check
from aforesaid.domain.transfer import Row

_SHOWN: Final = 5
"""Maximum examples named of each kind of damage."""


def run(name: str, findings: Callable[[], Iterable[str]]) -> Check:
    """Run one check. A store too damaged to be checked has failed it."""
    started = time.monotonic()
    found: list[str] = []
    try:
        found.extend(findings())
    except Exception as error:
        # Whatever damage does to a check, the others still say what they find.
        found.append(f"the check could not finish: {error}")
    return told(name, found, started)


def told(name: str, found: Sequence[str], started: float) -> Check:
    """Say what a check found that started then, by the monotonic clock."""
    detail = "; ".join(found[:_SHOWN])
    if len(found) > _SHOWN:
        detail += f"; and {len(found) - _SHOWN} more"
    return Check(name=name, ok=not found, detail=detail or "ok", seconds=time.monotonic() - started)


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
