"""Feature: whether the question is about what the assistant said, or about what people said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aforesaid.recall.candidates import Candidates

if TYPE_CHECKING:
    from aforesaid.recall.candidates import Numbers


def asked_role(candidates: Candidates) -> Numbers:
    """Return, for messages of the assistant, the log-odds that the question is about them; 0 for those of people."""
    return candidates.columns.assistant[candidates.rows].astype(float) * candidates.asks_assistant
