"""Whether it was said at the time that the question names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aforesaid.domain.checks import microseconds
from aforesaid.recall.candidates import Candidates

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers

_DAY: Final = 24 * 60 * 60 * 1_000_000


def period(candidates: Candidates) -> Numbers:
    """One inside a period that the question names, one half near it."""
    import numpy as np  # noqa: PLC0415

    said = candidates.columns.at[candidates.rows]
    best = np.zeros(len(said))
    for named in candidates.question.periods:
        start, end = microseconds(named.start, "the period"), microseconds(named.end, "the period")
        # Outside, it is near when it is no farther away than the period is long (a day at least).
        margin = max(end - start, _DAY)
        inside = (start <= said) & (said < end)
        near = (start - margin <= said) & (said < end + margin)
        best = np.maximum(best, np.where(inside, 1.0, np.where(near, 0.5, 0.0)))
    return best
