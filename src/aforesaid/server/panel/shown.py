"""How values are written on pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo
from hashlib import blake2b
from typing import Any, Final

from aforesaid.domain.checks import counted, to_zone
from aforesaid.domain.memory import band
from aforesaid.server.languages import current, plural, translate

_UNITS: Final = ((60, "second"), (60, "minute"), (24, "hour"), (7, "day"), (5, "week"), (12, "month"))
"""How many of a unit make the next one."""
_HUES: Final = 12
_SHORT: Final = 1.0


def thousands(value: int) -> str:
    """Write a number with separators between thousands."""
    return current().number(value)


def decimal(value: float, decimals: int = 2) -> str:
    """Write a number with decimals."""
    return current().number(value, decimals)


def signed(value: float, decimals: int = 2) -> str:
    """Write a number with decimals and its sign, also if it is positive."""
    return f"{'+' if value >= 0 else '-'}{decimal(abs(value), decimals)}"


def share(value: float) -> str:
    """Write a part of a whole in percent."""
    return f"{value * 100:.0f} %"


def size(value: float) -> str:
    """Write a number of bytes."""
    if value < 1000:  # noqa: PLR2004
        return plural("{count} byte", "{count} bytes", round(value))
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 1000:  # noqa: PLR2004
            return f"{decimal(value, 1)} {unit}"
    return f"{decimal(value / 1000, 1)} TB"


def duration(seconds: float | None) -> str:
    """Write how long something took."""
    if seconds is None or math.isinf(seconds):
        return translate("over a minute")
    text = f"{seconds * 1000:.3g} ms" if seconds < _SHORT else f"{seconds:.3g} s"
    return text.replace(".", current().decimal)


def moment(value: datetime) -> str:
    """Write a moment in UTC. A script replaces it by the reader's local time."""
    return current().time(value)


def day(value: date) -> str:
    """Write a day."""
    return current().date(value)


def ago(value: datetime | None, now: datetime | None = None) -> str:
    """Write how long ago, or how soon, something is."""
    if value is None:
        return translate("never")
    away = ((now or datetime.now(UTC)) - value).total_seconds()
    number, name = abs(away), "year"
    for most, unit in _UNITS:
        if number < most:
            name = unit
            break
        number /= most
    if name == "second":
        return translate("just now") if away >= 0 else translate("in a moment")
    return (_PAST if away >= 0 else _FUTURE)[name](int(number))


_PAST: Final[Mapping[str, Callable[[int], str]]] = {
    "minute": lambda count: plural("{count} minute ago", "{count} minutes ago", count),
    "hour": lambda count: plural("{count} hour ago", "{count} hours ago", count),
    "day": lambda count: plural("{count} day ago", "{count} days ago", count),
    "week": lambda count: plural("{count} week ago", "{count} weeks ago", count),
    "month": lambda count: plural("{count} month ago", "{count} months ago", count),
    "year": lambda count: plural("{count} year ago", "{count} years ago", count),
}
_FUTURE: Final[Mapping[str, Callable[[int], str]]] = {
    "minute": lambda count: plural("in {count} minute", "in {count} minutes", count),
    "hour": lambda count: plural("in {count} hour", "in {count} hours", count),
    "day": lambda count: plural("in {count} day", "in {count} days", count),
    "week": lambda count: plural("in {count} week", "in {count} weeks", count),
    "month": lambda count: plural("in {count} month", "in {count} months", count),
    "year": lambda count: plural("in {count} year", "in {count} years", count),
}
"""Whole sentences: words between a number and its unit differ by language."""


_SUSPICIOUS: Final = "the message that it comes from is suspicious: "


def reason(value: str) -> str:
    """Write why a memory waits or is over."""
    if value.startswith(_SUSPICIOUS):
        return translate(
            "the message that it comes from is suspicious: {reason}", reason=reason(value[len(_SUSPICIOUS) :])
        )
    return translate(value)


def hue(user: str) -> int:
    """Return the colour of somebody's picture: always the same for one id."""
    return blake2b(user.encode(errors="replace"), digest_size=1).digest()[0] % _HUES


def initials(name: str) -> str:
    """Return the letters on somebody's picture: of the first word of a name, and of the last one."""
    found = [letter for word in name.split() if (letter := next(filter(str.isalnum, word), ""))]
    shown = found[:1] + found[1:][-1:]
    return "".join(shown).upper()[:2] or "·"


def clock(value: datetime) -> str:
    """Write the time of day, in the time zone that the moment has."""
    return f"{value:%H:%M}"


def day_in_zone(value: datetime, zone: tzinfo) -> str:
    """Write the day that a moment is on in a time zone."""
    return day(to_zone(value, zone).date())


def moment_in_zone(value: datetime) -> str:
    """Write a moment in the time zone that it has."""
    return f"{day(value.date())}, {clock(value)}"


def bars(counts: Mapping[str, int] | Sequence[tuple[str, int]]) -> list[tuple[str, int, float]]:
    """Return names with counts, and how long their bars are, up to 100."""
    pairs = list(counts.items()) if isinstance(counts, Mapping) else list(counts)
    most = max((number for _, number in pairs), default=0)
    return [(name, number, round(100 * number / most, 2) if most else 0.0) for name, number in pairs]


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "counted": counted,
    "decimal": decimal,
    "signed": signed,
    "day": day,
    "thousands": thousands,
    "share": share,
    "size": size,
    "duration": duration,
    "moment": moment,
    "ago": ago,
    "reason": reason,
    "translated": translate,
    "hue": hue,
    "initials": initials,
    "clock": clock,
    "day_in_zone": day_in_zone,
    "moment_in_zone": moment_in_zone,
    "bars": bars,
    "band": band,
}
