"""The calendar policy: summaries of a space's days for each participant, and of the six days before today."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

from aforesaid.digest.plan import NOTHING, Decision, MakeDay
from aforesaid.domain.checks import EARLIEST, LATEST, microseconds, moment, to_zone
from aforesaid.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class CalendarLedger:
    """The input of the calendar policy for one day of a space. Times are in microseconds."""

    ends_at: int
    """The end of the day."""
    now: int
    last_seq: int
    """The newest message of the day."""
    done_seq: int
    """The newest message of the day when it was last summarised; 0 if it was not."""
    done_at: int | None


@dataclass(frozen=True, slots=True)
class CalendarRules:
    """How often a day is summarised."""

    refresh: int = 3_600_000_000
    """Minimum microseconds between two summaries of today. A past day is summarised once."""


def decide(ledger: CalendarLedger, rules: CalendarRules) -> Decision:
    """Decide whether to summarise the day. Without new messages it is not summarised again."""
    over = ledger.now >= ledger.ends_at
    if ledger.last_seq <= ledger.done_seq:
        return NOTHING if over else Decision(None, ledger.ends_at)
    if over or ledger.done_at is None or ledger.now >= ledger.done_at + rules.refresh:
        return Decision(MakeDay())
    return Decision(None, min(ledger.done_at + rules.refresh, ledger.ends_at))


def day_of(at: int, zone: tzinfo) -> date:
    """Return the day of a time in a time zone."""
    return to_zone(moment(at), zone).date()


def bounds(day: date, zone: tzinfo) -> tuple[int, int]:
    """Return the start of a day and of the next one. Days with a clock change are longer or shorter."""
    begin = EARLIEST if day == date.min else _midnight(day, zone)
    return begin, LATEST + 1 if day == date.max else _midnight(day + timedelta(days=1), zone)


def _midnight(day: date, zone: tzinfo) -> int:
    try:
        return microseconds(datetime(day.year, day.month, day.day, tzinfo=zone), "the day")
    except (InvalidInput, OverflowError):  # so near to the end of the calendar that UTC has no name for it
        return microseconds(datetime(day.year, day.month, day.day, tzinfo=UTC), "the day")


def history_days(today: date, window: int = 7) -> tuple[date, ...]:
    """Return the days of a window before today, oldest first: days 2 to 7, today being day 1."""
    return tuple(today - timedelta(days=back) for back in range(window - 1, 0, -1))
