"""The form of a rule that finds something worth remembering."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from aforesaid.domain.checks import Category
from aforesaid.text.times.days import Direction


class Rule(NamedTuple):
    """A pattern of sentences, the category of what they say and how important that is."""

    category: Category
    importance: int
    pattern: re.Pattern[str]
    timed: Literal["past", "future"] | None
    """In which direction there must be a time in the sentence."""
    towards: Direction
    """How a date that leaves it open is read."""
    questions: bool
    """Whether a question fits too, such as a request, and an "if"."""


def rule(
    category: Category,
    importance: int,
    *patterns: str,
    timed: Literal["past", "future"] | None = None,
    towards: Direction = "nearest",
    questions: bool = False,
) -> Rule:
    """Make a rule that one of several patterns is enough for."""
    ahead = category in {"schedule", "task", "reminder"}
    direction: Direction = timed or ("future" if ahead else towards)
    return Rule(category, importance, re.compile("|".join(patterns)), timed, direction, questions)
