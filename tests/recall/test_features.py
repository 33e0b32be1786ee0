"""What candidates gain from the messages and sessions around them, in conversations small enough to follow by hand."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from aforesaid.recall.candidates import Candidates, Question, candidates_of, neighbours
from aforesaid.recall.features import session_dense
from aforesaid.recall.queue import Background
from aforesaid.store.columns import ColumnRow, Columns, columns_of
from aforesaid.store.ranking import TextMatches

NOON = datetime(2026, 5, 10, 12, 0, tzinfo=UTC)
NOBODY = 5
"""Where a row points that has no neighbour: behind the last of five."""


def messages(sessions: Sequence[int]) -> Columns:
    """Return one message for each of these sessions."""
    return columns_of([ColumnRow(row + 1, row, 1, session, "Ann", "user", 3) for row, session in enumerate(sessions)])


def compared(columns: Columns, dense: Sequence[float]) -> Candidates:
    """Return all messages as candidates that are near in meaning, or not compared where the number is zero."""
    count = len(columns)
    matches = TextMatches(columns, (), average_length=3.0)
    nearness = np.array([*dense, 0.0])
    question = Question.of("Where is it?", NOON)
    return candidates_of(question, matches, np.arange(count), np.zeros(count + 1), nearness, Background())


def test_a_message_has_neighbours_in_its_own_session_only() -> None:
    columns = messages([1, 1, 2, 2, 2])
    before, after = neighbours(columns, np.arange(5))
    assert before.tolist() == [NOBODY, 0, NOBODY, 2, 3]
    assert after.tolist() == [1, NOBODY, 3, 4, NOBODY]


def test_a_single_message_has_no_neighbours() -> None:
    before, after = neighbours(messages([1]), np.arange(1))
    assert (before.tolist(), after.tolist()) == ([1], [1])


def test_the_newest_message_lifts_its_session_too() -> None:
    candidates = compared(messages([1, 1, 2, 2]), [0.5, 0.0, 1.0, 3.0])
    # Half, because there are only two sessions.
    assert session_dense(candidates).tolist() == [0.25, 0.25, 1.5, 1.5]
