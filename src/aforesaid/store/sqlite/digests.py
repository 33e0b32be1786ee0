"""Carrying out changes to summaries and to the agenda."""

from __future__ import annotations

from aforesaid.domain.receipt import Result
from aforesaid.domain.summary_change import AddView, Revise, Settle, SummaryChange, Walk
from aforesaid.store.sqlite import agenda, views
from aforesaid.store.sqlite.unit import Unit


def carry_out(unit: Unit, step: SummaryChange) -> Result:
    """Carry out one change."""
    match step:
        case AddView():
            return views.add(unit, step)
        case Revise():
            return views.revise(unit, step)
        case Walk():
            agenda.walk(unit, step)
        case Settle():
            agenda.settle(unit, step)
    return None
