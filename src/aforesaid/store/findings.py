"""What a check of a store found, in a few words."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from aforesaid.domain.report import Check

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
