"""Writing a context down: as messages for a chat API, or as one text.

What does not change from turn to turn comes first, so that a provider that caches the beginning of prompts can use it.
Whatever people wrote is escaped inside its tags; only the turns of the conversation itself are plain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from aforesaid.context.items import Item
from aforesaid.models.prompts import Fenced, load_prompt
from aforesaid.profiles.recipe import Layout, SectionName

Message: TypeAlias = dict[str, str]

_PLAIN: Final[tuple[SectionName, ...]] = ("recent", "current")
_SEPARATOR: Final = "\n\n"


def block(section: SectionName, items: Sequence[Item], user: str) -> str:
    """Return a section that is no part of the conversation itself."""
    rows = Fenced("\n".join(item.text for item in items))
    return _BLOCKS[section](rows, user)


def as_messages(items: Sequence[Item], user: str) -> list[Message]:
    """Return what an OpenAI-style chat API is sent."""
    messages: list[Message] = []
    blocks: list[str] = []
    for section, group in _grouped(items):
        if section not in _PLAIN:
            blocks.append(block(section, group, user))
            continue
        if blocks:
            messages.append({"role": "system", "content": _SEPARATOR.join(blocks)})
            blocks = []
        messages += [_turn(item) for item in group]
    return messages


def as_text(items: Sequence[Item], user: str, layout: Layout) -> str:
    """Return one text for a model that completes texts."""
    parts: list[str] = []
    for section, group in _grouped(items):
        if section == "recent":
            parts.append("\n".join(["Current conversation:", *(_spoken(item, user) for item in group)]))
        elif section == "current":
            parts.append("\n".join([*(_spoken(item, user) for item in group), "You:"]))
        else:
            parts.append(block(section, group, user))
    text = _SEPARATOR.join(parts)
    return f"<context>\n{text}\n</context>" if layout == "portrait" else text


def _grouped(items: Sequence[Item]) -> list[tuple[SectionName, list[Item]]]:
    groups: dict[SectionName, list[Item]] = {}
    for item in items:
        groups.setdefault(item.section, []).append(item)
    return list(groups.items())


def _turn(item: Item) -> Message:
    turn = {"role": item.role if item.role in {"user", "assistant", "system"} else "user", "content": item.text}
    if item.name is not None and item.role == "user":
        turn["name"] = item.name
    return turn


def _spoken(item: Item, user: str) -> str:
    speaker = "You" if item.role == "assistant" else item.name or user
    return f"{speaker}: {item.text}"


def _as_it_is(rows: Fenced, _: str) -> str:
    return rows


def _filled(section: str, place: str) -> Callable[[Fenced, str], str]:
    return lambda rows, _: load_prompt("chat").section(section, **{place: rows})


def _portrait(rows: Fenced, user: str) -> str:
    return load_prompt("chat").section("portrait", portrait=rows, name=user)


_BLOCKS: Final[Mapping[SectionName, Callable[[Fenced, str], str]]] = {
    "system": _as_it_is,
    "rules": _as_it_is,
    "persona": _as_it_is,
    "portrait": _portrait,
    "habits": _filled("habits", "habits"),
    "memories": _filled("saved", "saved"),
    "summaries": _filled("summary", "summary"),
    "snippets": _filled("background", "background"),
}
