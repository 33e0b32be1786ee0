"""Assembles a context inside its budget, and renders it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Final

from aforesaid.context.context import Item, LeftOut, SectionReport
from aforesaid.domain.chat_message import ChatMessage, answered_calls, chat_tool_calls, content_parts
from aforesaid.models.prompts import Fenced, load_prompt
from aforesaid.models.tokens import TokenCounter
from aforesaid.profiles.recipe import Layout, Recipe, SectionName, Wording

Overhead = Callable[[SectionName], int]
"""Tokens of a section without its items."""
DayCost = Callable[[Item], int]
"""Tokens of the heading of an item's day."""
Count = Callable[[Sequence[Item]], int]
"""Tokens of a whole context, as it will be sent."""

_MARK: Final = " […]"
_REQUIRED: Final[tuple[SectionName, ...]] = ("current", "system")
"""Sections that are cut rather than left out."""
_FIRST: Final[frozenset[SectionName]] = frozenset({*_REQUIRED, "date"})
"""Sections that are filled before all others and never dropped."""
_CONTIGUOUS: Final[tuple[SectionName, ...]] = ("recent",)
"""Sections without gaps, which would mislead: they end at the first item that does not fit."""
_CUT: Final[tuple[SectionName, ...]] = ("snippets",)
"""Sections whose first item is cut rather than left out."""
_LEAST_EXCHANGE: Final = 2
_MOST_EXCHANGE: Final = 4
"""Minimum and maximum messages of the last exchange, which reaches back to the user's last message."""
_NAMES: Final[Mapping[SectionName, str]] = {"system": "a system prompt", "recent": "the last exchange"}
_COVERED: Final = "every message that it covers is shown in full"
_MUCH_ROOM: Final = 100
"""Minimum free tokens that are filled with a part of a message; fewer stay unused."""
_PLACE: Final = attrgetter("place")
_LEAST_CUT: Final = 12
"""Minimum tokens of a text that is cut. Less of it would say nothing."""


@dataclass(slots=True)
class _Section:
    """A section that is being filled."""

    share: int
    overhead: int
    day_cost: DayCost
    kept: list[Item] = field(default_factory=list)
    waiting: list[Item] = field(default_factory=list)
    """Items that have not fitted so far, in the order of preference."""
    days: dict[str, int] = field(default_factory=dict)
    """Number of kept items per day, without days that have none."""
    used: int = 0

    def headings(self, item: Item) -> int:
        """Return the tokens of the headings that an item needs and that are not there yet."""
        heading = self.day_cost(item) if item.day and item.day not in self.days else 0
        return heading if self.kept else heading + self.overhead

    def cost(self, item: Item) -> int:
        # Fast path: the heading exists already.
        return item.tokens if item.day in self.days and self.kept else item.tokens + self.headings(item)

    def take(self, item: Item, cost: int) -> None:
        """Keep an item that costs `tokens`."""
        self.used += cost
        self.kept.append(item)
        self.days[item.day] = self.days.get(item.day, 0) + 1

    def drop(self, place: int) -> tuple[Item, int]:
        """Remove an item; return it and the tokens that this frees."""
        item = self.kept.pop(place)
        self.days[item.day] -= 1
        if not self.days[item.day]:
            del self.days[item.day]
        freed = self.cost(item)
        self.used -= freed
        return item, freed


@dataclass(frozen=True, slots=True)
class Assembled:
    """The chosen items in order, and those left out."""

    items: tuple[Item, ...]
    tokens: int
    """Tokens of all items together, as they will be sent."""
    left_out: tuple[LeftOut, ...]
    reports: tuple[SectionReport, ...]


class Assembler:
    def __init__(
        self,
        recipe: Recipe,
        budget: int,
        counter: TokenCounter,
        *,
        now: datetime,
        overhead: Overhead,
        count: Count,
        day_cost: DayCost = lambda _: 0,
    ) -> None:
        self._recipe = recipe
        self._budget = budget
        self._counter = counter
        self._now = now
        self._count = count
        self._sections = {name: _Section(recipe.share(name, budget), overhead(name), day_cost) for name in recipe.order}
        self._filling = recipe.filling()
        self._left_out: list[LeftOut] = []
        self._spent = 0
        self._shown: set[int] = set()
        """Sequence numbers of messages that are shown verbatim."""
        self._keys: set[str] = set()
        self._whole: dict[str, Item] = {}
        """The full versions of items that were cut, by key."""
        self._exchange: frozenset[str] = frozenset()
        """Keys of the last exchange."""

    def assemble(self, offers: Mapping[SectionName, Sequence[Item]]) -> Assembled:
        filling = self._filling
        for name in (name for name in filling if name in _FIRST):
            self._fill(name, offers.get(name, ()))
        recent = self._take_exchange(offers.get("recent", ())) if "recent" in filling else ()
        for name in (name for name in filling if name not in _FIRST):
            self._fill(name, recent if name == "recent" else offers.get(name, ()))
        self._lend()
        # Drop summaries and memories whose messages are all shown now.
        sections = self._sections.values()
        whole = frozenset().union(*(item.shows for each in sections for item in each.kept if not item.cut))
        for section in sections:
            self._drop(section, lambda each: bool(each.covers) and each.covers <= whole, _COVERED)
        tokens = self._trim()
        # Tokens are free now: the whole may have fewer than the sum of its parts, and something may have been dropped.
        self._spent = tokens
        if self._lend():
            tokens = self._trim()
        for name, section in self._sections.items():
            self._left_out += [LeftOut(item, f"no room left for {name}") for item in section.waiting]
        left_out = Counter(left.item.section for left in self._left_out)
        reports = [
            SectionReport(name, section.share, section.used, len(section.kept), left_out[name])
            for name, section in self._sections.items()
        ]
        return Assembled(self._in_order(), tokens, tuple(self._left_out), tuple(reports))

    def _take_exchange(self, recent: Sequence[Item]) -> Sequence[Item]:
        """Take the last exchange, cut to the share of recent messages; return the messages before it."""
        section = self._sections["recent"]
        if not self._recipe.tokens.get("recent", 1):
            return recent
        newest = recent[:_MOST_EXCHANGE]
        last = next((place for place, item in enumerate(newest) if item.role == "user"), len(newest) - 1)
        size = min(max(last + 1, _LEAST_EXCHANGE), len(newest))
        wanted, older = self._wanted(recent[:size]), recent[size:]
        self._exchange = frozenset(item.key for item in wanted)
        room = min(self._recipe.full_share("recent", self._budget), self._room())
        # The shortest first: what they leave of an equal share goes to the longer ones.
        for number, item in enumerate(sorted(wanted, key=lambda item: item.tokens)):
            part = room // (len(wanted) - number)
            shorter = self._cut_to(item, part - section.headings(item))
            cost = section.cost(shorter)
            if cost > self._room():
                section.waiting.append(item)
            else:
                self._take(section, shorter, cost)
                room -= cost
        return older

    def _fill(self, name: SectionName, offered: Sequence[Item]) -> None:
        section = self._sections[name]
        # The date has the same length at every budget. A share of 0 switches it off.
        share = self._budget if name == "date" and section.share else section.share
        in_a_row, cut, cut_first = name in _CONTIGUOUS, name in _REQUIRED, name in _CUT
        for item in self._wanted(offered):
            room = min(share - section.used, self._budget - self._spent)
            taken = item
            if cut or cut_first:
                taken = self._cut_to(item, room - section.headings(item))
                cut_first = False
            cost = section.cost(taken)
            if cost > room or (in_a_row and section.waiting):
                section.waiting.append(item)
            else:
                self._take(section, taken, cost)

    def _lend(self) -> bool:
        """Give unused tokens to sections as long as something fits. Return whether anything was added."""
        added = False
        again = True
        while again:
            again = False
            for name in self._filling:
                section = self._sections[name]
                if self._whole:
                    again |= self._lengthen(section)
                if section.waiting and self._recipe.tokens.get(name, 1):
                    waiting, section.waiting = section.waiting, []
                    before = len(section.kept)
                    for place, item in enumerate(waiting):
                        if name not in _CONTIGUOUS and item.shows and item.shows <= self._shown:
                            self._left_out.append(LeftOut(item, "it is already included"))
                        elif (cost := section.cost(item)) <= self._budget - self._spent + self._tokens_found(item):
                            self._take(section, item, cost)
                        elif name in _CONTIGUOUS:
                            section.waiting += waiting[place:]
                            break
                        else:
                            section.waiting.append(item)
                    again |= len(section.kept) > before
            added |= again
        return self._fill_up() or added

    def _fill_up(self) -> bool:
        """Show the beginning of the next older message, if many tokens are free and it does not fit whole."""
        section = self._sections.get("recent")
        if section is None or not section.waiting or self._room() < _MUCH_ROOM:
            return False
        item = section.waiting[0]
        shorter = self._cut_to(item, self._room() - section.headings(item))
        cost = section.cost(shorter)
        if cost > self._room():
            return False
        section.waiting.pop(0)
        self._take(section, shorter, cost)
        return True

    def _lengthen(self, section: _Section) -> bool:
        """Show more of items that were cut."""
        longer = False
        for place, item in enumerate(section.kept):
            whole, room = self._whole.get(item.key), self._room()
            if whole is None or not item.cut or room < _LEAST_CUT:
                continue
            changed = self._cut_to(whole, item.tokens + room)
            if changed.tokens > item.tokens:
                section.kept[place] = changed
                section.used += changed.tokens - item.tokens
                self._spent += changed.tokens - item.tokens
                longer = True
        return longer

    def _take(self, section: _Section, item: Item, cost: int) -> None:
        section.take(item, cost)
        self._spent += cost
        self._keys.add(item.key)
        if item.section == "recent" and not item.shows.isdisjoint(self._shown):
            # It is also a search hit. It is shown once, among the recent messages.
            snippets = self._sections.get("snippets")
            if snippets is not None:
                self._drop(snippets, lambda each: each.shows <= item.shows, "it is already included")
        self._shown.update(item.shows)

    def _tokens_found(self, item: Item) -> int:
        """Return the tokens of a recent message as a search hit, which are free when it is shown as recent."""
        found = self._sections.get("snippets") if item.section == "recent" else None
        if found is None or item.shows.isdisjoint(self._shown):
            return 0
        return sum(each.tokens for each in found.kept if each.shows <= item.shows)

    def _drop(self, section: _Section, unwanted: Callable[[Item], bool], reason: str) -> None:
        for place in reversed(range(len(section.kept))):
            if unwanted(section.kept[place]):
                item, freed = section.drop(place)
                self._spent -= freed
                self._left_out.append(LeftOut(item, reason))

    def _room(self) -> int:
        return self._budget - self._spent

    def _wanted(self, offered: Sequence[Item]) -> list[Item]:
        """Leave out items that have expired, are already shown, or cover only messages that are all shown."""
        wanted, keys = [], set(self._keys)
        for item in offered:
            if item.expires is not None and item.expires <= self._now:
                self._left_out.append(LeftOut(item, "it has expired"))
            elif item.section != "recent" and (item.shows <= self._shown if item.shows else item.key in keys):
                self._left_out.append(LeftOut(item, "it is already included"))
            elif item.covers and item.covers <= self._shown:
                self._left_out.append(LeftOut(item, _COVERED))
            else:
                keys.add(item.key)
                wanted.append(item)
        return wanted

    def _cut_to(self, item: Item, room: int) -> Item:
        """Shorten an item, with a mark at its end. An item below the minimum length is returned unchanged."""
        frame = item.tokens - self._counter.count(item.text)
        left = room - frame - self._counter.count(_MARK) - 1
        if item.tokens <= room or left < min(_LEAST_CUT, room):
            return item
        shorter = f"{self._counter.cut(item.text, left).rstrip()}{_MARK}"
        self._whole.setdefault(item.key, item)
        return replace(item, text=shorter, tokens=self._counter.count(shorter) + frame, cut=True)

    def _trim(self) -> int:
        """Trim until the context, counted as it will be sent, is within the budget. Return its tokens."""
        while (tokens := self._count(self._in_order())) > self._budget:
            if not self._drop_one():
                self._shorten(tokens - self._budget)
        return tokens

    def _drop_one(self) -> bool:
        for name in (*self._recipe.trim, *self._recipe.order):
            section = self._sections.get(name)
            if section is None or name in _FIRST:
                continue
            places = [place for place, item in enumerate(section.kept) if item.key not in self._exchange]
            if places:
                weakest = min(places, key=lambda place: (section.kept[place].priority, -place))
                item, freed = section.drop(weakest if name not in _CONTIGUOUS else places[-1])
                self._spent -= freed
                self._left_out.append(LeftOut(item, f"{name} was trimmed to keep the budget"))
                return True
        return False

    def _shorten(self, excess: int) -> None:
        """Cut required items: the longest message of the last exchange, then the system prompt, then the question."""
        names: tuple[SectionName, ...] = ("recent", *reversed(_REQUIRED))
        for name in names:
            section = self._sections.get(name)
            if section is None or not section.kept:
                continue
            place = max(range(len(section.kept)), key=lambda place: section.kept[place].tokens)
            item, freed = section.drop(place)
            self._spent -= freed
            shorter = self._cut_to(self._whole.get(item.key, item), item.tokens - excess - 1)
            if shorter.tokens < item.tokens:
                cost = section.cost(shorter)
                section.take(shorter, cost)
                self._spent += cost
                return
            if name != "current":
                self._left_out.append(LeftOut(item, f"there is no room for {_NAMES[name]}"))
                return
        raise ValueError("the budget is too small for anything")

    def _in_order(self) -> tuple[Item, ...]:
        return tuple(chain.from_iterable(sorted(section.kept, key=_PLACE) for section in self._sections.values()))


TODAY: Final = "Today"
"""Day of messages of the current day. The date line gives its date."""
_TURNS: Final[tuple[SectionName, ...]] = ("recent", "current")
_IN_PROMPT: Final[Mapping[SectionName, str]] = {
    "instructions": "instructions",
    "portrait": "portrait",
    "habits": "habits",
    "memories": "saved",
    "summaries": "summary",
    "snippets": "background",
}
"""The sections that have words around them, and what the prompt `chat` calls these words, and the place inside."""
_WORDED: Final[tuple[SectionName, ...]] = ("memories", "snippets")
"""Sections that have other words for a companion."""
_SEPARATOR: Final = "\n\n"
FURTHER_LINE: Final = "\n    "
"""Break between the lines of a message that is shown below or after another one."""


def block(section: SectionName, items: Sequence[Item], user: str, wording: Wording = "plain") -> str:
    """Return a section other than the turns of the conversation, with its heading and tags."""
    rows = Fenced(
        "\n".join([row for day, item in _dated(items, "") for row in ((day, item.text) if day else (item.text,))])
    )
    if section not in _IN_PROMPT:
        return rows
    name = _IN_PROMPT[section]
    more = {"name": user} if section == "portrait" else {}
    worded = f"companion{name}" if wording == "companion" and section in _WORDED else name
    return load_prompt("chat").section(worded, **{name: rows}, **more)


def as_messages(
    items: Sequence[Item], user: str, wording: Wording = "plain", *, tools: bool = True, parts: bool = False
) -> list[ChatMessage]:
    """Return messages for a chat API: at most one system message, then `user` and `assistant` in alternation.

    Strict chat templates accept nothing else. Sections before the turns are the system message. Sections between the
    turns and the question are in the question's message, above it, and so is the date. Consecutive turns of one role
    are one message. An assistant's message with tool calls is followed by a `tool` message for each: calls without a
    result, and results without their call, are only described in words, because providers refuse them.

    Without `tools`, all of them are described in words. With `parts`, people's images, sounds and files are content
    parts too, where the API takes them; otherwise words such as `[image: a cat]` stand for them.
    """
    messages: list[ChatMessage] = []
    groups, talking = dict(_grouped(items)), False
    for section, group in groups.items():
        if section == "date":
            continue
        if section not in _TURNS:
            started = messages and messages[-1]["role"] != "system"
            _append(messages, "user" if started else "system", block(section, group, user, wording))
            talking = False
            continue
        if section == "current":
            talking = False
            if "date" in groups:
                _append(messages, "user", block("date", groups["date"], user, wording))
        called = _answered(group) if tools else {}
        for role, text, item in _marked(group, {result.key for results in called.values() for result in results}):
            separator = "\n" if talking else _SEPARATOR
            if item is not None and item.key in called:
                if messages and messages[-1]["role"] == "assistant":
                    _append(messages, "assistant", item.said, separator if item.said else "")
                else:
                    messages.append({"role": "assistant", "content": item.said or None})
                messages[-1]["tool_calls"] = chat_tool_calls(item.calls)
                messages += [
                    {"role": "tool", "tool_call_id": call.id, "content": result.text}
                    for call, result in zip(item.calls, called[item.key], strict=True)
                ]
            else:
                _append(messages, role, text, separator)
                if parts and item is not None and item.parts and not item.cut:
                    # Add the images, sounds and files of a turn to the message that it is in.
                    message = messages[-1]
                    shown = [part for part in content_parts("", item.parts) if part["type"] != "text"]
                    if shown and isinstance(message["content"], str):
                        message["content"] = [{"type": "text", "text": message["content"]}]
                    if shown:
                        message["content"] += shown
            talking = True
    return messages


def _answered(turns: Sequence[Item]) -> dict[str, list[Item]]:
    """Return the results of each turn with tool calls that has all of them right behind it, in the order of the calls.

    A turn that was cut off to make it fit is shown as a text.
    """
    calls = [[call.id for call in turn.calls if not turn.cut] for turn in turns]
    answers = [None if turn.cut else turn.answers for turn in turns]
    found = answered_calls(calls, answers)
    return {turns[place].key: [turns[each] for each in results] for place, results in found.items()}


def _append(messages: list[ChatMessage], role: str, text: str, separator: str = _SEPARATOR) -> None:
    if not messages or messages[-1]["role"] != role:
        messages.append({"role": role, "content": text})
    elif isinstance(messages[-1]["content"], str):
        messages[-1]["content"] += f"{separator}{text}"
    elif messages[-1]["content"][-1]["type"] == "text":
        messages[-1]["content"][-1]["text"] += f"{separator}{text}"
    else:
        messages[-1]["content"].append({"type": "text", "text": text})


def _marked(turns: Sequence[Item], without: Collection[str]) -> Iterator[tuple[str, str, Item | None]]:
    """Yield roles and texts of turns, and the turns themselves, except some (by their keys).

    The first turn of a person on a day begins with the day.
    Turns of the assistant have no day, since a model would imitate it. A conversation that begins with one of them
    gets the day as a turn of the person, because chat templates want a person to begin.
    """
    mark = ""
    for place, (day, item) in enumerate(_dated(turns)):
        mark = f"[{day}]" if day else mark
        if item.key in without:
            continue
        if item.role != "assistant":
            yield "user", f"{mark}\n{_named(item)}" if mark else _named(item), item
            mark = ""
            continue
        if place == 0:
            yield "user", mark or f"[{TODAY}]", None
            mark = ""
        yield "assistant", item.text, item


def _named(item: Item) -> str:
    """Return a turn with its speaker, where several people talk. Further lines are indented: none passes for a turn."""
    name = item.name if item.role == "user" else item.role
    return f"{name}: {item.text.replace(chr(10), FURTHER_LINE)}" if name else item.text


def as_text(items: Sequence[Item], user: str, layout: Layout, wording: Wording = "plain") -> str:
    """Return one text for a model that completes texts."""
    parts: list[str] = []
    for section, group in _grouped(items):
        if section == "recent":
            lines = [line for day, item in _dated(group) for line in (day and f"[{day}]", _spoken(item, user)) if line]
            parts.append("\n".join(["Current conversation:", *lines]))
        elif section == "current":
            parts.append("\n".join([*(_spoken(item, user) for item in group), "You:"]))
        else:
            parts.append(block(section, group, user, wording))
    text = _SEPARATOR.join(parts)
    return f"<context>\n{text}\n</context>" if layout == "portrait" else text


def _grouped(items: Sequence[Item]) -> list[tuple[SectionName, list[Item]]]:
    groups: dict[SectionName, list[Item]] = {}
    for item in items:
        groups.setdefault(item.section, []).append(item)
    return list(groups.items())


def _dated(items: Sequence[Item], today: str = TODAY) -> Iterator[tuple[str, Item]]:
    """Yield items with their day where it changes, otherwise with an empty text. The year is given where it changes."""
    last, last_year = today, ""
    for item in items:
        heading = ""
        if item.day and item.day != last:
            last = item.day
            day, _, year = last.rpartition(" ")
            heading = day if day and year == last_year else last
            last_year = year if day else last_year
        yield heading, item


def _spoken(item: Item, user: str) -> str:
    speaker = "You" if item.role == "assistant" else item.name or user
    return f"{speaker}: {item.text}"
