"""What people type into forms, as values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aforesaid.errors import InvalidInput, quoted
from aforesaid.server.languages import translate

_MOST_DIGITS: Final = 18


def text(value: str) -> str:
    """Return a text as it was typed: browsers send the ends of lines in another way."""
    return value.replace("\r\n", "\n")


def whole(value: str, what: str, field: str) -> int:
    """Return a whole number. Raises InvalidInput for the field."""
    digits = value.strip()
    if not digits.lstrip("-").isdecimal() or len(digits) > _MOST_DIGITS:
        raise InvalidInput(
            translate("{what} must be a whole number, not {value}", what=what, value=quoted(value)), field
        )
    return int(digits)


def number(value: str, what: str, field: str) -> float:
    """Return a number. Raises InvalidInput for the field."""
    try:
        return float(value.strip().replace(",", "."))
    except ValueError:
        raise InvalidInput(
            translate("{what} must be a number, not {value}", what=what, value=quoted(value)), field
        ) from None


def words(value: str) -> tuple[str, ...]:
    """Return words that are separated by commas."""
    return tuple(word for each in value.split(",") if (word := each.strip()))


def unknown(value: str, known: Iterable[str]) -> str:
    """Return what is wrong with a value that is not one of those offered."""
    offered = ", ".join(each for each in known if each)
    return translate("unknown value {value}; use one of {offered}", value=quoted(value), offered=offered)


def not_a_day(value: str) -> str:
    """Return what is wrong with a value that is not a day."""
    return translate("{value} is not a date; write one like 2027-12-31", value=quoted(value))
