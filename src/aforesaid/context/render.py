"""Rendering a context: as messages for a chat API, or as one text.

What does not change from turn to turn comes first, so that a provider that caches the beginning of prompts can use it.
Whatever people wrote is escaped inside its tags; only the turns of the conversation itself are plain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from aforesaid.context.items import Item
from aforesaid.domain.chat_message import ChatMessage
from aforesaid.models.prompts import Fenced, load_prompt
from aforesaid.profiles.recipe import Layout, SectionName, Wording

TODAY: Final = "Today"
"""Day of messages of the current day. The date line gives its date."""
_TURNS: Final[tuple[SectionName, ...]] = ("recent", "current")
_SEPARATOR: Final = "\n\n"
FURTHER_LINE: Final = "\n    "
"""Break between the lines of a message that is shown below or after another one."""


def block(section: SectionName, items: Sequence[Item], user: str, wording: Wording = "plain") -> str:
    """Return a section other than the turns of the conversation, with its heading and tags."""
    rows = Fenced("\n".join(_rows(items)))
    return _BLOCKS[section](rows, user, wording)


def as_messages(items: Sequence[Item], user: str, wording: Wording = "plain") -> list[ChatMessage]:
    """Return messages for a chat API: at most one system message, then `user` and `assistant` in alternation.

    Strict chat templates accept nothing else. Sections before the turns are the system message. Sections between the
    turns and the question are in the question's message, above it, and so is the date. Consecutive turns of one role
    are one message.
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
        for role, text in _marked(group):
            _append(messages, role, text, "\n" if talking else _SEPARATOR)
            talking = True
    return messages


def _append(messages: list[ChatMessage], role: str, text: str, separator: str = _SEPARATOR) -> None:
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"] += f"{separator}{text}"
    else:
        messages.append({"role": role, "content": text})


def _marked(turns: Sequence[Item]) -> Iterator[tuple[str, str]]:
    """Yield roles and texts of turns. The first turn of a person on a day begins with the day.

    Turns of the assistant have no day, since a model would imitate it. A conversation that begins with one of them
    gets the day as a turn of the person, because chat templates want a person to begin.
    """
    mark = ""
    for place, (day, item) in enumerate(_dated(turns)):
        mark = f"[{day}]" if day else mark
        if item.role != "assistant":
            yield "user", f"{mark}\n{_named(item)}" if mark else _named(item)
            mark = ""
            continue
        if place == 0:
            yield "user", mark or f"[{TODAY}]"
            mark = ""
        yield "assistant", item.text


def _named(item: Item) -> str:
    """Return a turn with its speaker, where several people talk. Further lines are indented: none passes for a turn."""
    name = item.name if item.role == "user" else item.role
    if not name:
        return item.text
    indented = item.text.replace("\n", FURTHER_LINE)
    return f"{name}: {indented}"


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


def _rows(items: Sequence[Item]) -> list[str]:
    return [row for day, item in _dated(items, "") for row in ((day, item.text) if day else (item.text,))]


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
