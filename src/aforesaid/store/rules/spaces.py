"""The spaces that a change writes to."""

from __future__ import annotations

from aforesaid.domain.change import AddMessage, AddNoteVectors, AddVectors, Archive, Change, Discard, PutMark, Spend
from aforesaid.domain.memory import AddMemory, ChangeMemory
from aforesaid.domain.summary import AddView, Advance, FinishEntry
from aforesaid.domain.transfer import MemoryRow, Restore, Row, SessionRow, SummaryRow
from aforesaid.store.rules.agenda import processed_space

OF_NONE = ""
"""Stands for what belongs to no space."""


def spaces_of(change: Change) -> set[str]:
    """Return the spaces that a change writes to. A `Discard` does not know its own before it looks for it."""
    match change:
        case AddMessage() | Archive() | AddView() | AddMemory():
            return {change.draft.scope.space}
        case Discard() | PutMark():
            return {OF_NONE}
        case Restore():
            return {_space_of(change.row)}
        case AddVectors() | AddNoteVectors():
            return {row.space for row in change.rows}
        case Advance():
            return {processed_space(change), *(touch.subject.space for touch in change.touched)}
        case FinishEntry():
            return {change.subject.space}
        case ChangeMemory():
            return {change.memory.space}
        case Spend():
            return {OF_NONE if change.scope is None else change.scope.space}
        case _:
            return {change.scope.space}


def _space_of(row: Row) -> str:
    match row:
        case SessionRow():
            return row.session.space
        case SummaryRow():
            return row.summary.space
        case MemoryRow():
            return row.memory.space
        case _:
            return row.space
