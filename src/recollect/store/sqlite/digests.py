"""Carrying out changes to summaries and to the agenda."""

from __future__ import annotations

from recollect.domain.receipt import Result
from recollect.domain.summary_change import AddView, Revise, Settle, SummaryChange, Walk
from recollect.store.sqlite import agenda, views
from recollect.store.sqlite.unit import Unit


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
