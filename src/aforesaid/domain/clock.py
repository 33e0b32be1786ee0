"""The system clock."""

from __future__ import annotations

import time
from datetime import datetime, tzinfo


def now() -> int:
    """Return the time in microseconds since 1970, in UTC."""
    return time.time_ns() // 1000


def to_zone(at: datetime, zone: tzinfo | None) -> datetime:
    """Return a time in a time zone; unchanged if the calendar (years 1 to 9999) has no name for it there."""
    try:
        return at.astimezone(zone)
    except OverflowError:
        return at
