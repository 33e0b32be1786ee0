"""What people type into forms, as values."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from aforesaid.errors import InvalidInput

_MOST_DIGITS: Final = 18


def text(value: str) -> str:
    """Return a text as it was typed: browsers send the ends of lines in another way."""
    return value.replace("\r\n", "\n")


def whole(value: str, what: str) -> int:
    """Return a whole number."""
    digits = value.strip()
    if not digits.lstrip("-").isdecimal() or len(digits) > _MOST_DIGITS:
        raise InvalidInput(f"{what} must be a whole number, not {value!r}")
    return int(digits)


def number(value: str, what: str) -> float:
    """Return a number."""
    try:
        return float(value.strip().replace(",", "."))
    except ValueError:
        raise InvalidInput(f"{what} must be a number, not {value!r}") from None


def moment(value: str, what: str) -> datetime | None:
    """Return what was chosen as a date and a time, in UTC; None where nothing was."""
    if not value.strip():
        return None
    try:
        found = datetime.fromisoformat(value.strip())
    except ValueError:
        raise InvalidInput(f"{what} must be a date and a time such as 2026-03-01T09:00, not {value!r}") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def words(value: str) -> tuple[str, ...]:
    """Return words that are separated by commas."""
    return tuple(word for each in value.split(",") if (word := each.strip()))
