"""Acknowledgements of alerts: who has seen one. They are stored, so that they outlast the process that raised it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from aforesaid.domain.change import PutMark
from aforesaid.domain.report import Alert
from aforesaid.store import questions

if TYPE_CHECKING:
    from aforesaid.store import Store

_PREFIX: Final = "panel/acknowledged/"
"""The beginning of the names of their marks."""


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An alert, and who has seen it when."""

    alert: Alert
    by: str
    at: datetime


async def acknowledge(store: Store, acknowledgement: Acknowledgement) -> None:
    """Store that somebody has seen an alert."""
    alert = acknowledgement.alert
    value = {
        "kind": alert.kind,
        "about": alert.about,
        "text": alert.text,
        "since": alert.since.isoformat(),
        "by": acknowledgement.by,
        "at": acknowledgement.at.isoformat(),
    }
    await store.apply([PutMark(_name(alert), json.dumps(value))])


async def acknowledgements(store: Store) -> list[Acknowledgement]:
    """Return all that are stored. Those of earlier versions, which do not say of what, are left out."""
    found = []
    for name, value in (await store.read(questions.Marks())).items():
        if name.startswith(_PREFIX) and "text" in (seen := json.loads(value)):
            alert = Alert(seen["kind"], seen["about"], seen["text"], datetime.fromisoformat(seen["since"]))
            found.append(Acknowledgement(alert, seen["by"], datetime.fromisoformat(seen["at"])))
    return found


async def drop_acknowledgements(store: Store, cleared: Sequence[Alert]) -> None:
    """Delete the acknowledgements of alerts that are over. Those of the same alerts, raised anew since, stay."""
    over = set(cleared)
    known = [each.alert for each in await acknowledgements(store)] if over else []
    if marks := [PutMark(_name(alert), None) for alert in known if alert in over]:
        await store.apply(marks)


def _name(alert: Alert) -> str:
    return f"{_PREFIX}{alert.kind}/{alert.about}"
