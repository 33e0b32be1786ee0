"""What the two arms say of a message itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aforesaid.recall.candidates import Candidates

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers


def keyword(candidates: Candidates) -> Numbers:
    """How well its words match."""
    return candidates.keyword[candidates.rows]


def coverage(candidates: Candidates) -> Numbers:
    """Return the weighted share of query terms each candidate contains, whatever its length."""
    return candidates.coverage()[candidates.rows]


def dense(candidates: Candidates) -> Numbers:
    """How near its meaning is."""
    return candidates.dense[candidates.rows]
