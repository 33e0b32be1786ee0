"""Writing what is remembered into a request.

Providers cache the beginning of prompts, and a change there makes them read everything after it again. So what rarely
changes (standing instructions, portrait, summaries) goes into the system prompt, and what is chosen for the question
goes directly before the question. What stands between them, the client's history, is the same as in the request before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, TypeAlias

from aforesaid.context import Context, Item
from aforesaid.context.assemble import block
from aforesaid.models.prompts import Line, enclosed, fence_line
from aforesaid.models.tokens import TokenCounter
from aforesaid.profiles.recipe import SectionName
from aforesaid.server.proxy.conversations import Turn, role_of

_STABLE: Final = ("instructions", "portrait", "summaries")
"""Sections that rarely change from one request to the next, in the order in which they are written."""
NOT_ADDED: Final = ("system", "rules", "persona", "habits")
"""Sections that the client's own prompt is for."""
_TURNS: Final = ("recent", "current")
"""Sections that are written apart from the others, and not at all."""
_HERE: Final = "What was said last in this conversation, before the messages of this request:"
_ELSEWHERE: Final = "What was said last in other conversations:"
TEXT_PART: Final = "text"
"""The type of a part of a message that has a text, in Chat Completions and in Messages."""
_SYSTEM_ROLES: Final = ("system", "developer")

Front: TypeAlias = tuple[tuple[SectionName, str], ...]
"""The items of a stable text in their order, each as its section and its text."""


@dataclass(frozen=True, slots=True)
class ClientHas:
    """What of a context is not to be repeated to a client."""

    known: frozenset[int] = frozenset()
    """Sequence numbers of the messages that its request holds."""
    here: frozenset[int] = frozenset()
    """Sequence numbers of further messages of its conversation."""
    question: str = ""


class MemoryText(NamedTuple):
    """What is remembered, as two texts. Either may be empty."""

    stable: str
    for_question: str
    tokens: int
    front: Front = ()
    """The items of the stable text."""
    items: tuple[Item, ...] = ()
    """All that was written."""


NO_TEXT: Final = MemoryText("", "", 0)


def write(
    context: Context,
    client: ClientHas,
    counter: TokenCounter,
    most: int,
    front: Front | None = None,
) -> MemoryText:
    """Write down what is remembered in at most `most` tokens, without what the client has itself.

    `front` are the items of the stable text in the previous request of the conversation, None if there was none. While
    all of them still hold, the stable text stays as it was, and what has been added goes before the question.
    If it is too much, the oldest of the messages said last are left out first.
    """
    user = context.person
    items, recent = [], []  # what is known, and the messages said last
    for item in context.items:
        if item.section not in _TURNS:
            items += [] if _has(client, item) else [item]
        elif item.section == "recent" and not _has(client, item):
            is_question = item.role == "user" and Turn("user", item.text).words == client.question
            recent += [] if is_question else [item]
    stable = [item for item in items if item.section in _STABLE]
    if front:
        # An item that has no room any more still holds.
        offered = {(left.item.section, left.item.text): left.item for left in context.left_out}
        offered |= {(item.section, item.text): item for item in stable}
        held = [_held(section, text, offered) for section, text in front]
        if None not in held:
            stable = [item for item in held if item is not None]
    elif front is not None:
        stable = []
    kept = {(item.section, item.text): None for item in stable}
    added = [item for item in items if item.section not in _STABLE or (item.section, item.text) not in kept]
    first = _blocks(stable, user)
    lines = [(not client.here.isdisjoint(item.shows), fence_line(_line(item, user))) for item in recent]
    costs = [counter.count(f"{line}\n") for _, line in lines]
    over = sum(item.tokens for item in (*stable, *added)) + sum(costs) - most
    known = _blocks(added, user)
    before = counter.count(first)
    # Counted item by item first, and as a whole at the end, which decides.
    while True:
        while costs and over > 0:
            over -= costs.pop(0)
            del lines[0]
        text = _with_lines(known, lines)
        tokens = before + counter.count(text)
        over = tokens - most
        written = (*stable, *added, *recent[len(recent) - len(lines) :])
        if over <= 0:
            return MemoryText(first, text, tokens, tuple(kept), written)
        if not lines:
            first = counter.cut(first, most)
            text = counter.cut(text, max(0, most - counter.count(first)))
            return MemoryText(first, text, counter.count(first) + counter.count(text), (), written)


def _held(section: SectionName, text: str, offered: Mapping[tuple[SectionName, str], Item]) -> Item | None:
    """Return an item as it was written, if what it says still holds: it is there, or a line that says more is."""
    if (item := offered.get((section, text))) is not None:
        return item
    longer = (each for (where, said), each in offered.items() if where == section and said.startswith(f"{text}, "))
    more = next(longer, None)
    return None if more is None else replace(more, text=text)


def insert(messages: Sequence[object], memory: MemoryText, part: str = TEXT_PART) -> list[object]:
    """Return the messages of a request with what is remembered. The client's own messages stay as they are.

    `part` is the type that the protocol gives a part of a message which has a text.
    """
    changed = _with_system(messages, memory.stable, part) if memory.stable else list(messages)
    if not memory.for_question:
        return changed
    place = max((number for number, each in enumerate(changed) if role_of(each) == "user"), default=len(changed))
    role = next((role_of(each) for each in changed if role_of(each) in _SYSTEM_ROLES), "system")
    return [*changed[:place], {"role": role, "content": memory.for_question}, *changed[place:]]


def insert_in_question(messages: Sequence[object], memory: MemoryText, part: str = TEXT_PART) -> list[object]:
    """Return the same without a further system message, for models that accept one at the beginning alone, or none.

    What was chosen for the question goes into the question's own message, above the question. Without a system prompt
    of the client, all of it does.
    """
    prompted = has_system(messages)
    changed = _with_system(messages, memory.stable, part) if memory.stable and prompted else list(messages)
    return above_question(changed, joined("" if prompted else memory.stable, memory.for_question), part)


def above_question(messages: Sequence[object], text: str, part: str = TEXT_PART) -> list[object]:
    changed = list(messages)
    for place in reversed(range(len(changed))):
        message = changed[place]
        if text and isinstance(message, Mapping) and message.get("role") == "user":
            changed[place] = _with(message, text, part, before=True)
            break
    return changed


def has_system(messages: Sequence[object]) -> bool:
    return any(role_of(each) in _SYSTEM_ROLES for each in messages)


def joined(*texts: object) -> str:
    """Return those of the texts that say something, with an empty line between them."""
    return "\n\n".join(text for text in texts if isinstance(text, str) and text)


def _has(client: ClientHas, item: Item) -> bool:
    return bool(item.shows) and item.shows <= client.known


def empty(section: SectionName) -> str:
    """Return a section without items: its heading and tags."""
    return _with_lines("", [(True, "")]) if section in _TURNS else block(section, (), "")


def _blocks(items: Iterable[Item], user: str) -> str:
    sections: dict[SectionName, list[Item]] = {}
    for item in items:
        sections.setdefault(item.section, []).append(item)
    names = sorted(sections, key=lambda name: _STABLE.index(name) if name in _STABLE else len(_STABLE))
    return "\n\n".join(block(name, sections[name], user) for name in names)


def _with_lines(known: str, lines: Sequence[tuple[bool, str]]) -> str:
    parts = [known]
    for title, here in ((_ELSEWHERE, False), (_HERE, True)):
        said = [line for place, line in lines if place == here]
        if said:
            parts.append(f"{title}\n{enclosed('messages', said)}")
    return joined(*parts)


def _line(item: Item, user: str) -> Line:
    return Line(item.name or (user if item.role == "user" else "you"), item.text, item.at, item.role)


def _with_system(messages: Sequence[object], added: str, part: str) -> list[object]:
    """Return the messages with a text added to their first system prompt, or with one of its own."""
    for place, message in enumerate(messages):
        if isinstance(message, Mapping) and message.get("role") in _SYSTEM_ROLES:
            return [*messages[:place], _with(message, added, part), *messages[place + 1 :]]
    return [{"role": "system", "content": added}, *messages]


def _with(message: Mapping[str, Any], added: str, part: str, *, before: bool = False) -> dict[str, Any]:
    """Return a message with a text after its content, or before it. `part` is the type of a part with a text.

    Content that is neither a text nor a list of parts stays as it is: the provider refuses it with its own error.
    """
    content = message.get("content")
    if content is None or isinstance(content, str):
        return {**message, "content": joined(added, content) if before else joined(content, added)}
    if not isinstance(content, list):
        return dict(message)
    new = {"type": part, "text": added}
    return {**message, "content": [new, *content] if before else [*content, new]}
