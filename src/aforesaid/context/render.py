"""Rendering a context: as messages for a chat API, or as one text.

What does not change from turn to turn comes first, so that a provider that caches the beginning of prompts can use it.
Whatever people wrote is escaped inside its tags; only the turns of the conversation itself are plain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

from aforesaid.context.items import Item
from aforesaid.domain.chat_message import ChatMessage, answered_calls, chat_tool_calls, content_parts
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
                _append_exchange(messages, item, called[item.key], separator)
            else:
                _append(messages, role, text, separator)
                if parts and item is not None and item.parts and not item.cut:
                    _append_parts(messages[-1], item)
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


def _append_exchange(messages: list[ChatMessage], item: Item, results: Sequence[Item], separator: str) -> None:
    """Add a turn with tool calls and their results."""
    if messages and messages[-1]["role"] == "assistant":
        _append(messages, "assistant", item.said, separator if item.said else "")
    else:
        messages.append({"role": "assistant", "content": item.said or None})
    messages[-1]["tool_calls"] = chat_tool_calls(item.calls)
    messages += [
        {"role": "tool", "tool_call_id": call.id, "content": result.text}
        for call, result in zip(item.calls, results, strict=True)
    ]


def _append(messages: list[ChatMessage], role: str, text: str, separator: str = _SEPARATOR) -> None:
    if not messages or messages[-1]["role"] != role:
        messages.append({"role": role, "content": text})
    elif isinstance(messages[-1]["content"], str):
        messages[-1]["content"] += f"{separator}{text}"
    elif messages[-1]["content"][-1]["type"] == "text":
        messages[-1]["content"][-1]["text"] += f"{separator}{text}"
    else:
        messages[-1]["content"].append({"type": "text", "text": text})


def _append_parts(message: ChatMessage, item: Item) -> None:
    """Add the images, sounds and files of a turn to the message that it is in."""
    shown = [part for part in content_parts("", item.parts) if part["type"] != "text"]
    if shown and isinstance(message["content"], str):
        message["content"] = [{"type": "text", "text": message["content"]}]
    if shown:
        message["content"] += shown


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
