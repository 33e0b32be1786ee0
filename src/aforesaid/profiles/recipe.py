"""Recipes: which sections a context has, in what order, with how much, and what goes first when it is too much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any, Final, Literal, TypeAlias, get_args

from aforesaid.domain import checks
from aforesaid.errors import InvalidInput

SectionName: TypeAlias = Literal[
    "system", "rules", "persona", "portrait", "habits", "memories", "summaries", "snippets", "recent", "current"
]
SECTIONS: Final[tuple[SectionName, ...]] = get_args(SectionName)

Layout: TypeAlias = Literal["messages", "portrait"]
"""How `context.text` is laid out: plain, or as XML around the portrait."""

LEAST_BUDGET: Final = 256
"""A context of fewer tokens would be no context."""
MOST_TOKENS: Final = 10_000_000

_ALWAYS: Final[tuple[SectionName, ...]] = ("current", "system")
"""These come first when the budget is given out, and are cut before they are dropped."""
_COUNTS: Final = {
    "budget": (LEAST_BUDGET, MOST_TOKENS),
    "recent": (1, 1_000),
    "snippets": (0, 1_000),
    "window": (0, 10_000),
    "around": (0, 100),
    "memories": (0, 1_000),
}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a context is made. The keys of the table `context` in a profile are the fields of this class."""

    budget: int
    """So many tokens in all, where nobody asks for another number."""
    order: tuple[SectionName, ...]
    """Where the sections stand, first to last."""
    tokens: Mapping[SectionName, int]
    """What each section may use. What one does not need, others may have."""
    trim: tuple[SectionName, ...]
    """What is trimmed first when it is too much."""
    recent: int
    """So many of the newest messages at most."""
    uncovered: bool
    """Whether the recent messages are those that no summary covers."""
    snippets: int
    """So many hits of the search at most."""
    similarity: float
    """Only hits that are at least as near in meaning, up to 1; 0 for all of them."""
    window: int
    """Only hits among so many of the newest messages; 0 for all of them."""
    whole_sessions: bool
    """Whether hits are past conversations instead of single messages."""
    around: int
    """So many messages around each hit."""
    memories: int
    """So many memories at most, the most important ones first."""
    kinds: tuple[str, ...]
    """The kinds of summaries that are shown; empty: those of any kind."""
    layout: Layout
    """How the text is laid out: messages or portrait."""

    def share(self, name: SectionName, budget: int) -> int:
        """Return what a section may use of a budget."""
        return self.tokens.get(name, self.budget) * budget // self.budget

    def filling(self) -> tuple[SectionName, ...]:
        """Return the order in which the budget is given out: first what must be there, last what is trimmed first."""
        rest = [name for name in self.order if name not in _ALWAYS and name not in self.trim]
        last = [name for name in reversed(self.trim) if name in self.order and name not in _ALWAYS]
        return (*(name for name in _ALWAYS if name in self.order), *rest, *last)


def read_recipe(keys: object, start: Recipe | None, where: str) -> Recipe:
    """Read the table `context` of a profile. What it does not name is as in `start`."""
    if isinstance(keys, Recipe):
        return keys
    if not isinstance(keys, Mapping):
        raise InvalidInput(f"{where} must be a table, not {keys!r}")
    names = [field.name for field in fields(Recipe)]
    for key in keys:
        if key not in names:
            close = get_close_matches(str(key), names, n=1)
            raise InvalidInput(
                f"{where} has the unknown key {key!r}" + (f"; did you mean {close[0]!r}?" if close else "")
            )
    values = {} if start is None else {name: getattr(start, name) for name in names}
    for key, value in keys.items():
        values[key] = _checked(key, value, f"{where}.{key}", start)
    recipe = Recipe(**values)
    if len(set(recipe.order)) != len(recipe.order) or "current" not in recipe.order:
        raise InvalidInput(f"{where}.order must name each section once, and 'current' among them")
    return recipe


def _checked(key: str, value: object, what: str, start: Recipe | None) -> Any:  # noqa: ANN401 - as many types as keys
    if key in _COUNTS:
        least, most = _COUNTS[key]
        return checks.at_most(checks.at_least(value, least, what), most, what)
    if key in {"order", "trim"}:
        return _sections(value, what)
    if key == "kinds":
        return tuple(checks.identifier(kind, what) for kind in _list(value, what))
    if key == "tokens":
        return _tokens(value, what, start)
    if key == "similarity":
        number = checks.number(value, what)
        if not 0 <= number <= 1:
            raise InvalidInput(f"{what} must be between 0 and 1, not {value!r}")
        return number
    if key == "layout":
        if value not in get_args(Layout):
            raise InvalidInput(f"{what} must be one of {', '.join(get_args(Layout))}, not {value!r}")
        return value
    if not isinstance(value, bool):
        raise InvalidInput(f"{what} must be true or false, not {value!r}")
    return value


def _sections(value: object, what: str) -> tuple[SectionName, ...]:
    names = _list(value, what)
    for name in names:
        if name not in SECTIONS:
            close = get_close_matches(str(name), SECTIONS, n=1)
            raise InvalidInput(
                f"{what} names the unknown section {name!r}; there are {', '.join(SECTIONS)}"
                + (f"; did you mean {close[0]!r}?" if close else "")
            )
    return tuple(names)


def _tokens(value: object, what: str, start: Recipe | None) -> dict[SectionName, int]:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{what} must have a number for each section, not {value!r}")
    named = _sections(list(value), what)
    return {
        **({} if start is None else start.tokens),
        **{name: checks.at_most(checks.at_least(value[name], 0, what), MOST_TOKENS, what) for name in named},
    }


def _list(value: object, what: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidInput(f"{what} must be a list, not {value!r}")
    return value
