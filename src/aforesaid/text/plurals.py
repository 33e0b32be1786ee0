"""Plural forms by language family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final


def _few_or_many(number: int) -> int:
    return 1 if number % 10 in {2, 3, 4} and number % 100 not in {12, 13, 14} else 2


def _arabic(number: int) -> int:
    if number <= 2:  # noqa: PLR2004 - none, one and two have forms of their own
        return number
    return 3 if 3 <= number % 100 <= 10 else 4 if number % 100 >= 11 else 5  # noqa: PLR2004


PLURALS: Final[Mapping[str, tuple[int, Callable[[int], int]]]] = {
    "one-other": (2, lambda number: 0 if number == 1 else 1),
    "french": (2, lambda number: 0 if number in {0, 1} else 1),
    "single": (1, lambda _: 0),
    "czech": (3, lambda number: 0 if number == 1 else 1 if number in {2, 3, 4} else 2),
    "polish": (3, lambda number: 0 if number == 1 else _few_or_many(number)),
    "russian": (3, lambda number: 0 if number % 10 == 1 and number % 100 != 11 else _few_or_many(number)),  # noqa: PLR2004
    "arabic": (6, _arabic),
}
"""Plural rules by name: how many forms there are, and the form for a number."""
