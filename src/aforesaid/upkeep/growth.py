"""Growth of a store: its size is recorded once a day and compared with the current one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from aforesaid.domain.change import PutMark
from aforesaid.domain.checks import moment
from aforesaid.domain.report import Storage
from aforesaid.store import questions

if TYPE_CHECKING:
    from aforesaid.store import Store

_NAME: Final = "size "
"""Prefix of the mark of a day."""
_DAYS: Final = 30
"""Number of days over which growth is measured."""
_DAY: Final = 24 * 3600.0


class Size(NamedTuple):
    """The size of a store at a time."""

    at: datetime
    bytes: int
    messages: int


async def note_size(store: Store, storage: Storage, at: int) -> None:
    """Record the size once a day, and delete records that are too old."""
    today = moment(at).date()
    marks = await store.read(questions.Marks())
    if _NAME + today.isoformat() in marks:
        return
    value = json.dumps({"at": at, "bytes": storage.bytes, "messages": storage.messages})
    old = [name for name in marks if name.startswith(_NAME) and not _recent(name, today)]
    await store.apply([PutMark(_NAME + today.isoformat(), value), *(PutMark(name, None) for name in old)])


async def grown(store: Store, storage: Storage, at: int) -> Storage:
    """Add the growth since the oldest recorded size, if it is long enough ago."""
    first = oldest(await store.read(questions.Marks()), moment(at).date())
    if first is None:
        return storage
    days = (moment(at) - first.at).total_seconds() / _DAY
    # Less than an hour is too short for an estimate per day.
    if days * _DAY < 3600:  # noqa: PLR2004
        return storage
    return replace(
        storage,
        since=first.at,
        bytes_per_day=(storage.bytes - first.bytes) / days,
        messages_per_day=(storage.messages - first.messages) / days,
    )


def oldest(marks: Mapping[str, str], today: date) -> Size | None:
    """Return the oldest recorded size."""
    sizes = [json.loads(value) for name, value in marks.items() if name.startswith(_NAME) and _recent(name, today)]
    found = [Size(moment(size["at"]), size["bytes"], size["messages"]) for size in sizes]
    return min(found, default=None)


def _recent(name: str, today: date) -> bool:
    return timedelta() <= today - date.fromisoformat(name.removeprefix(_NAME)) <= timedelta(days=_DAYS)
