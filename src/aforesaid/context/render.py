"""Rendering a context: as messages for a chat API, or as one text.

What does not change from turn to turn comes first, so that a provider that caches the beginning of prompts can use it.
Whatever people wrote is escaped inside its tags; only the turns of the conversation itself are plain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from aforesaid.context.items import Item
from aforesaid.models.prompts import Fenced, load_prompt
from aforesaid.profiles.recipe import Layout, SectionName, Wording

Message: TypeAlias = dict[str, str]

TODAY: Final = "Today"
"""The day heading of messages of the current day. The date line gives its date."""
_TURNS: Final[tuple[SectionName, ...]] = ("recent", "current")
_SEPARATOR: Final = "\n\n"


def block(section: SectionName, items: Sequence[Item], user: str, wording: Wording = "plain") -> str:
    """Return a section other than the turns of the conversation, with its heading and tags."""
    rows = Fenced("\n".join(_rows(items)))
    return _BLOCKS[section](rows, user, wording)


def as_messages(items: Sequence[Item], user: str, wording: Wording = "plain") -> list[Message]:
    """Return messages for an OpenAI-style chat API."""
    messages: list[Message] = []
    blocks: list[str] = []
    for section, group in _grouped(items):
        if section not in _TURNS:
            blocks.append(block(section, group, user, wording))
            continue
        if blocks:
            messages.append({"role": "system", "content": _SEPARATOR.join(blocks)})
            blocks = []
        for day, item in _dated(group):
            if day:
                messages.append({"role": "system", "content": day})
            messages.append(_turn(item))
    return messages


def as_text(items: Sequence[Item], user: str, layout: Layout, wording: Wording = "plain") -> str:
    """Return one text for a model that completes texts."""
    parts: list[str] = []
    for section, group in _grouped(items):
        if section == "recent":
            lines = [line for day, item in _dated(group) for line in (day, _spoken(item, user)) if line]
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


def _rows(items: Sequence[Item]) -> Iterator[str]:
    day = ""
    for item in items:
        if item.day and item.day != day:
            day = item.day
            yield day
        yield item.text


def _dated(turns: Sequence[Item]) -> Iterator[tuple[str, Item]]:
    """Yield turns with the heading of their day where the day changes. Without a heading, a turn is of today."""
    day = TODAY
    for item in turns:
        changed = bool(item.day) and item.day != day
        day = item.day or day
        yield (f"[{day}]" if changed else ""), item


def _turn(item: Item) -> Message:
    turn = {"role": item.role if item.role in {"user", "assistant", "system"} else "user", "content": item.text}
    if item.name is not None and item.role == "user":
        turn["name"] = item.name
    return turn


def _spoken(item: Item, user: str) -> str:
    speaker = "You" if item.role == "assistant" else item.name or user
    return f"{speaker}: {item.text}"


def _verbatim(rows: Fenced, _: str, __: Wording) -> str:
    return rows


def _filled(place: str, plain: str, companion: str | None = None) -> Callable[[Fenced, str, Wording], str]:
    sections: Mapping[Wording, str] = {"plain": plain, "companion": companion or plain}
    return lambda rows, _, wording: load_prompt("chat").section(sections[wording], **{place: rows})


def _portrait(rows: Fenced, user: str, _: Wording) -> str:
    return load_prompt("chat").section("portrait", portrait=rows, name=user)


_BLOCKS: Final[Mapping[SectionName, Callable[[Fenced, str, Wording], str]]] = {
    "system": _verbatim,
    "rules": _verbatim,
    "persona": _verbatim,
    "instructions": _filled("instructions", "instructions"),
    "portrait": _portrait,
    "habits": _filled("habits", "habits"),
    "memories": _filled("saved", "saved", "companionsaved"),
    "summaries": _filled("summary", "summary"),
    "snippets": _filled("background", "background", "companionbackground"),
    "date": _verbatim,
}
