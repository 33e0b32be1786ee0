"""Choosing what fits.

Sections are filled in turn, each up to its share. What a section does not need goes to those that could use more, in
the same order. At the end the whole is counted as it will be sent; while it is too much, the recipe says what goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from aforesaid.context.items import Item, LeftOut, SectionReport
from aforesaid.models.tokens import TokenCounter
from aforesaid.profiles.recipe import Recipe, SectionName

Overhead = Callable[[SectionName], int]
Count = Callable[[Sequence[Item]], int]

_MARK: Final = " […]"
_REQUIRED: Final[tuple[SectionName, ...]] = ("current", "system")
_IN_A_ROW: Final[tuple[SectionName, ...]] = ("recent",)
"""Sections in which a hole would mislead: what does not fit ends them."""
_CUT: Final[tuple[SectionName, ...]] = ("recent", "portrait")
"""Sections whose first item is cut rather than left out."""


@dataclass(slots=True)
class _Filling:
    """A section that is being filled."""

    share: int
    overhead: int
    kept: list[Item] = field(default_factory=list)
    waiting: list[Item] = field(default_factory=list)
    used: int = 0

    def cost(self, item: Item) -> int:
        return item.tokens + (0 if self.kept else self.overhead)

    def take(self, item: Item) -> int:
        """Keep an item, and return what it costs."""
        cost = self.cost(item)
        self.used += cost
        self.kept.append(item)
        return cost

    def drop(self, place: int) -> Item:
        """Give an item up."""
        item = self.kept.pop(place)
        self.used -= self.cost(item)
        return item


@dataclass(frozen=True, slots=True)
class Assembled:
    """What got in, in order, and what did not."""

    items: tuple[Item, ...]
    tokens: int
    """As they will be sent, all together."""
    left_out: tuple[LeftOut, ...]
    reports: tuple[SectionReport, ...]


class Assembler:
    """One context in the making."""

    def __init__(
        self,
        recipe: Recipe,
        budget: int,
        counter: TokenCounter,
        *,
        now: datetime,
        overhead: Overhead,
        count: Count,
    ) -> None:
        self._recipe = recipe
        self._budget = budget
        self._counter = counter
        self._now = now
        self._count = count
        self._sections = {name: _Filling(recipe.share(name, budget), overhead(name)) for name in recipe.order}
        self._left_out: list[LeftOut] = []
        self._given = 0

    def assemble(self, offers: Mapping[SectionName, Sequence[Item]]) -> Assembled:
        """Fill all sections. Offers are in the order of preference."""
        # A message that is both recent and found stays where it was said.
        for name in sorted(self._recipe.filling(), key=lambda name: name == "snippets"):
            self._fill(name, offers.get(name, ()))
        for name in self._recipe.filling():
            self._lend(name)
        tokens = self._fit()
        for name, section in self._sections.items():
            self._left_out += [LeftOut(item, f"no room left for {name}") for item in section.waiting]
        return Assembled(self._in_order(), tokens, tuple(self._left_out), self._reports())

    def _fill(self, name: SectionName, offered: Sequence[Item]) -> None:
        section = self._sections[name]
        for offer in self._wanted(offered):
            room = min(section.share - section.used, self._room())
            first = name in _CUT and not section.kept and not section.waiting
            must = name in _REQUIRED or first
            item = self._cut_to(offer, room - (0 if section.kept else section.overhead)) if must else offer
            broken = name in _IN_A_ROW and section.waiting
            if section.cost(item) <= room and not broken:
                self._take(section, item)
            else:
                section.waiting.append(item)

    def _lend(self, name: SectionName) -> None:
        """Give a section what others did not need."""
        section = self._sections[name]
        if not section.share:
            return
        for item in list(section.waiting):
            if section.cost(item) <= self._room():
                section.waiting.remove(item)
                self._take(section, item)
            elif name in _IN_A_ROW:
                break

    def _take(self, section: _Filling, item: Item) -> None:
        self._given += section.take(item)

    def _room(self) -> int:
        return self._budget - self._given

    def _wanted(self, offered: Sequence[Item]) -> list[Item]:
        """Leave out what has expired, is shown already, or stands for messages that are all shown."""
        shown = {seq for section in self._sections.values() for item in section.kept for seq in item.shows}
        keys = {item.key for section in self._sections.values() for item in section.kept}
        wanted = []
        for item in offered:
            if item.expires is not None and item.expires <= self._now:
                self._left_out.append(LeftOut(item, "it has expired"))
            elif item.shows <= shown if item.shows else item.key in keys:
                self._left_out.append(LeftOut(item, "it is there already"))
            elif item.covers and item.covers <= shown:
                self._left_out.append(LeftOut(item, "all that it stands for is there word for word"))
            else:
                keys.add(item.key)
                wanted.append(item)
        return wanted

    def _cut_to(self, item: Item, room: int) -> Item:
        """Shorten an item that is too long, with a mark that says so."""
        if item.tokens <= room or room <= 0:
            return item
        kept = self._counter.cut(item.text, max(room - self._counter.count(_MARK) - 1, 0)).rstrip()
        shorter = f"{kept}{_MARK}"
        return replace(item, text=shorter, tokens=self._counter.count(shorter) + 1, cut=True)

    def _fit(self) -> int:
        """Trim until the whole, counted as it will be sent, is within the budget. Return what it counts."""
        while (tokens := self._count(self._in_order())) > self._budget:
            if not self._drop_one():
                self._shorten(tokens - self._budget)
        return tokens

    def _drop_one(self) -> bool:
        for name in (*self._recipe.trim, *self._recipe.order):
            section = self._sections.get(name)
            if section is not None and section.kept and name not in _REQUIRED:
                weakest = min(range(len(section.kept)), key=lambda place: (section.kept[place].priority, -place))
                item = section.drop(weakest if name not in _IN_A_ROW else -1)
                self._left_out.append(LeftOut(item, f"{name} was trimmed to keep the budget"))
                return True
        return False

    def _shorten(self, excess: int) -> None:
        """Cut what must be there: the system prompt first, then the message itself."""
        for name in reversed(_REQUIRED):
            section = self._sections.get(name)
            if section is None or not section.kept:
                continue
            item = section.kept[0]
            shorter = self._cut_to(item, item.tokens - excess - 1)
            if shorter.tokens < item.tokens:
                section.drop(0)
                section.take(shorter)
                return
            if name == "system":
                section.drop(0)
                self._left_out.append(LeftOut(item, "there is no room for a system prompt"))
                return
        raise ValueError("the budget is too small for anything")

    def _in_order(self) -> tuple[Item, ...]:
        return tuple(item for name in self._recipe.order for item in sorted(self._sections[name].kept, key=_order))

    def _reports(self) -> tuple[SectionReport, ...]:
        left_out = Counter(left.item.section for left in self._left_out)
        return tuple(
            SectionReport(name, section.share, section.used, len(section.kept), left_out[name])
            for name, section in self._sections.items()
        )


def _order(item: Item) -> tuple[float, int]:
    """Sort items by their place; single messages of one moment by sequence number."""
    return item.place, min(item.shows) if len(item.shows) == 1 else 0
