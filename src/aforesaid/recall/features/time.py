"""Feature: whether the message was said in a period that the question names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aforesaid.domain.checks import microseconds
from aforesaid.recall.candidates import Candidates

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers

_DAY: Final = 24 * 60 * 60 * 1_000_000
_NEAR: Final = 0.5
_FARTHER: Final = 0.25
"""Values of messages near the period, and a little farther away, since people misremember dates."""


def period(candidates: Candidates) -> Numbers:
    """Return 1 inside a period that the question names, and less near it.

    Near means within the length of the period, at least a day; a little farther away means within two days.
    """
    import numpy as np  # noqa: PLC0415

    said = candidates.columns.at[candidates.rows]
    best = np.zeros(len(said))
    for named in candidates.question.periods:
        start, end = microseconds(named.start, "the period"), microseconds(named.end, "the period")
        distance = np.maximum(np.maximum(start - said, said - end + 1), 0)
        length = max(end - start, _DAY)
        near = np.where(distance <= length, _NEAR, np.where(distance <= 2 * _DAY, _FARTHER, 0.0))
        best = np.maximum(best, np.where(distance == 0, 1.0, near))
    return best
