"""What a profile does: its summary policy, and the sections of its contexts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Final, Literal, TypeAlias, get_args

from aforesaid.domain import checks
from aforesaid.domain.summary import SUMMARY_KINDS, SummaryKind
from aforesaid.errors import InvalidInput, quoted

SectionName: TypeAlias = Literal[
    "system",
    "rules",
    "persona",
    "instructions",
    "portrait",
    "habits",
    "memories",
    "summaries",
    "snippets",
    "recent",
    "date",
    "current",
]
SECTIONS: Final[tuple[SectionName, ...]] = get_args(SectionName)

Layout: TypeAlias = Literal["messages", "portrait"]
"""How `context.text` is laid out: plain, or as XML around the portrait."""
Wording: TypeAlias = Literal["plain", "companion"]
"""Headings of the sections `memories` and `snippets`: plain, or those of a companion."""

LEAST_BUDGET: Final = 256
"""Smallest budget of a context, in tokens. Less would not hold a question and the last exchange."""
MOST_TOKENS: Final = 10_000_000

_ALWAYS: Final[tuple[SectionName, ...]] = ("current", "system")
"""Filled first, and cut rather than dropped."""
_GENERAL: Final[frozenset[SectionName]] = frozenset({"portrait", "habits", "summaries", "recent"})
"""Sections that are chosen without regard to the question. In small budgets they get less than their share."""
_WITH_PORTRAIT: Final = 500
"""Budget from which a portrait has at least so many tokens:"""
_LEAST_PORTRAIT: Final = 80
_BEFORE_KNOWLEDGE: Final[frozenset[SectionName]] = frozenset({"system", "rules", "persona"})
_LONGEST_RULES: Final = 4_000
"""Characters of a recipe's rules."""
_COUNTS: Final = {
    "budget": (LEAST_BUDGET, MOST_TOKENS),
    "recent": (1, 1_000),
    "snippets": (0, 1_000),
    "window": (0, 10_000),
    "around": (0, 100),
    "followed": (0, 100),
    "memories": (0, 1_000),
}


_CHOICES: Final = {"layout": get_args(Layout), "wording": get_args(Wording)}


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a context is made. The keys of the table `context` in a profile are the fields of this class."""

    budget: int
    """Default budget in tokens, where a caller names none."""
    order: tuple[SectionName, ...]
    """The sections, in the order in which they are sent."""
    tokens: Mapping[SectionName, int]
    """Share of each section of `budget`, in tokens; 0 switches it off. Other sections may use what is left of it."""
    trim: tuple[SectionName, ...]
    """Sections in the order in which they are trimmed when the context is too long. The last is filled first."""
    rules: str
    """Text of the section `rules`; empty for none."""
    recent: int
    """Maximum number of recent messages."""
    uncovered: bool
    """Whether the recent messages are those that no summary covers."""
    snippets: int
    """Maximum number of search hits."""
    similarity: float
    """Minimum similarity of hits to the question, 0 to 1; 0 for no minimum."""
    window: int
    """Only hits among this many of the newest messages; 0 for all messages."""
    whole_sessions: bool
    """Whether hits are past conversations instead of single messages; without `around`, their best exchanges."""
    around: int
    """Number of messages shown around each hit."""
    followed: int
    """Number of best hits whose next messages may be shown too; not used with `around`."""
    memories: int
    """Maximum number of memories."""
    kinds: tuple[SummaryKind, ...]
    """The kinds of summaries that are shown; empty for all kinds."""
    layout: Layout
    """How the text is laid out: messages or portrait."""
    wording: Wording
    """Headings of `memories` and `snippets`: plain or companion."""

    @property
    def searches(self) -> bool:
        return "snippets" in self.order and self.snippets > 0

    @property
    def shows_memories(self) -> bool:
        return "memories" in self.order and self.memories > 0

    def share(self, name: SectionName, budget: int) -> int:
        """Return how many tokens of a budget a section may use.

        Shares shrink with the budget. Those of sections that do not depend on the question shrink with its square:
        where there is little room, what was found for the question comes first.
        """
        share = self.full_share(name, budget)
        if name in _GENERAL and budget < self.budget:
            share = share * budget // self.budget
        # The few lines about a person that always matter have room in all but the smallest contexts.
        return max(share, _LEAST_PORTRAIT) if name == "portrait" and share and budget >= _WITH_PORTRAIT else share

    def full_share(self, name: SectionName, budget: int) -> int:
        """Return the share of a section, in proportion to the budget."""
        return self.tokens.get(name, self.budget) * budget // self.budget

    def without(self, names: Collection[str]) -> Recipe:
        """Return the recipe without some sections. Raises InvalidInput for an unknown one, and for the question."""
        if not names:
            return self
        left = _sections(list(names), "without")
        if "current" in left:
            raise InvalidInput("without must not name 'current': a context always has the question", "without")
        return replace(self, order=tuple(name for name in self.order if name not in left))

    def filling(self) -> tuple[SectionName, ...]:
        """Return the sections in the order in which they are filled: those that are trimmed first come last."""
        rest = [name for name in self.order if name not in _ALWAYS and name not in self.trim]
        last = [name for name in reversed(self.trim) if name in self.order and name not in _ALWAYS]
        return (*(name for name in _ALWAYS if name in self.order), *rest, *last)


def read_recipe(keys: object, start: Recipe | None, where: str) -> Recipe:
    """Read the table `context` of a profile. What it does not name is as in `start`."""
    if isinstance(keys, Recipe):
        return keys
    if not isinstance(keys, Mapping):
        raise InvalidInput(f"{where} must be a table, not {quoted(keys)}")
    names = [field.name for field in fields(Recipe)]
    for key in keys:
        if key not in names:
            raise InvalidInput(f"{where} has the unknown key {quoted(key)}" + checks.did_you_mean(key, names))
    values = {} if start is None else {name: getattr(start, name) for name in names}
    for key, value in keys.items():
        values[key] = _checked(key, value, f"{where}.{key}", start)
    recipe = Recipe(**values)
    if len(set(recipe.order)) != len(recipe.order) or "current" not in recipe.order:
        raise InvalidInput(f"{where}.order must name each section once, and 'current' among them")
    return replace(recipe, order=_with_required(recipe.order))


def _with_required(order: tuple[SectionName, ...]) -> tuple[SectionName, ...]:
    """Add the sections that every context has: the date before the question, requests before what is known.

    A persona comes before both. Without one, its section is empty.
    """
    names = list(order)
    if "date" not in names:
        names.insert(names.index("current"), "date")
    for needed in ("persona", "instructions"):
        if needed not in names:
            first = next(place for place, name in enumerate(names) if name not in _BEFORE_KNOWLEDGE)
            names.insert(first, needed)
    return tuple(names)


def _checked(key: str, value: object, what: str, start: Recipe | None) -> Any:  # noqa: ANN401 - as many types as keys
    if key in _COUNTS:
        least, most = _COUNTS[key]
        return checks.at_most(checks.at_least(value, least, what), most, what)
    if key in _CHOICES:
        if value not in _CHOICES[key]:
            raise InvalidInput(f"{what} must be one of {', '.join(_CHOICES[key])}, not {quoted(value)}")
        return value
    if key == "tokens":
        if not isinstance(value, Mapping):
            raise InvalidInput(f"{what} must have a number for each section, not {quoted(value)}")
        named = _sections(list(value), what)
        return {
            **({} if start is None else start.tokens),
            **{name: checks.at_most(checks.at_least(value[name], 0, what), MOST_TOKENS, what) for name in named},
        }
    if key in ("order", "trim"):
        return _sections(value, what)
    if key == "kinds":
        return _names(value, what, "kind of summary", SUMMARY_KINDS)
    if key == "rules":
        text = checks.storable(value, what).strip()
        if len(text) > _LONGEST_RULES:
            raise InvalidInput(f"{what} has {len(text):,} characters; at most {_LONGEST_RULES:,} are allowed")
        return text
    if key == "similarity":
        return share(value, what)
    if not isinstance(value, bool):
        raise InvalidInput(f"{what} must be true or false, not {quoted(value)}")
    return value


def share(value: object, what: str) -> float:
    """Return a number between 0 and 1. Raises InvalidInput."""
    number = checks.number(value, what)
    if not 0 <= number <= 1:
        raise InvalidInput(f"{what} must be between 0 and 1, not {quoted(value)}")
    return number


def _names(value: object, what: str, noun: str, known: Sequence[str]) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidInput(f"{what} must be a list, not {quoted(value)}")
    for name in value:
        if name not in known:
            raise InvalidInput(
                f"{what} names the unknown {noun} {quoted(name)}; there are {', '.join(known)}"
                + checks.did_you_mean(name, known)
            )
    return tuple(value)


_sections: Final = partial(_names, noun="section", known=SECTIONS)


Policy: TypeAlias = Literal["tree", "rolling", "calendar", "tiers", "none"]
"""The policy of automatic summaries."""


@dataclass(frozen=True, slots=True)
class SummaryPolicy:
    """What a policy makes, of what, and when."""

    kinds: tuple[SummaryKind, ...]
    """The kinds of summaries that it makes."""
    subject: Literal["user", "thread", "day"]
    """What an entry of the agenda is about: a user, a user in one thread, or a day of a whole space."""


POLICIES: Final[Mapping[str, SummaryPolicy]] = {
    "tree": SummaryPolicy(("tree",), "user"),
    "rolling": SummaryPolicy(("rolling",), "thread"),
    "calendar": SummaryPolicy(("day", "week"), "day"),
    "tiers": SummaryPolicy(("history",), "user"),
    "none": SummaryPolicy((), "user"),
}
"""Every policy. How it works is in `digest/steps`."""
