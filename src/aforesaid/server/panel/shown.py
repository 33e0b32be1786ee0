"""How values are written on pages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final

from aforesaid.domain.counting import counted
from aforesaid.domain.memory import band

_UNITS: Final = ((60, "second"), (60, "minute"), (24, "hour"), (7, "day"), (5, "week"), (12, "month"))
_HUES: Final = 12
_SHORT: Final = 1.0


def thousands(value: int) -> str:
    """Write a number with marks between its thousands."""
    return f"{value:,}"


def share(value: float) -> str:
    """Write a part of a whole."""
    return f"{value * 100:.0f} %"


def size(value: float) -> str:
    """Write a number of bytes."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000:  # noqa: PLR2004
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def duration(seconds: float | None) -> str:
    """Write how long something took."""
    if seconds is None or math.isinf(seconds):
        return "over a minute"
    return f"{seconds * 1000:.3g} ms" if seconds < _SHORT else f"{seconds:.3g} s"


def moment(value: datetime) -> str:
    """Write a moment in UTC. A script writes the time where the reader is in its place."""
    return f"{value.astimezone(UTC):%-d %b %Y, %H:%M} UTC"


def ago(value: datetime | None, now: datetime | None = None) -> str:
    """Write how long ago, or how soon, something is."""
    if value is None:
        return "never"
    away = ((now or datetime.now(UTC)) - value).total_seconds()
    number, name = abs(away), "year"
    for most, unit in _UNITS:
        if number < most:
            name = unit
            break
        number /= most
    if name == "second":
        return "just now" if away >= 0 else "in a moment"
    whole = int(number)
    said = f"{whole} {name}{'' if whole == 1 else 's'}"
    return f"{said} ago" if away >= 0 else f"in {said}"


def hue(name: str) -> int:
    """Return the colour of somebody's picture: always the same for one name."""
    return blake2b(name.encode(errors="replace"), digest_size=1).digest()[0] % _HUES


def initial(name: str) -> str:
    """Return the letter on somebody's picture."""
    return next((letter.upper() for letter in name if letter.isalnum()), "·")


def bars(counts: Mapping[str, int] | Sequence[tuple[str, int]]) -> list[tuple[str, int, float]]:
    """Return names with counts, and how long their bars are, up to 100."""
    pairs = list(counts.items()) if isinstance(counts, Mapping) else list(counts)
    most = max((number for _, number in pairs), default=0)
    return [(name, number, round(100 * number / most, 2) if most else 0.0) for name, number in pairs]


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "counted": counted,
    "thousands": thousands,
    "share": share,
    "size": size,
    "duration": duration,
    "moment": moment,
    "ago": ago,
    "hue": hue,
    "initial": initial,
    "bars": bars,
    "band": band,
}
