"""The messages that one user has in one thread, as chat histories of frameworks need them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from aforesaid.domain.details import Part
from aforesaid.domain.message import Message
from aforesaid.memory import UserMemory

T = TypeVar("T")

_PAGE: Final = 1_000
"""Number of messages read at once."""
_OF_THE_FRAMEWORK: Final = ("system", "persona", "habits", "recent", "date")
"""Sections of a context that a framework's own prompt is for."""
_NOTHING_REMEMBERED: Final = frozenset({"rules", "current"})
"""Sections that say nothing about anybody."""
_SHARED: Final = "aforesaid_text"
"""The key in the metadata of a message for what belongs to its text: see `_stored_once`."""
_LONG: Final = 1_000
"""Number of characters from which on a text is not stored a second time in the framework's form of the message."""


async def own_messages(user: UserMemory, limit: int | None = None) -> list[Message]:
    """Return the newest `limit` messages of the user in the thread, or all of them, oldest first.

    Other people's messages in the thread are left out: a framework's session belongs to one user.
    """
    found: list[Message] = []
    before: Message | None = None
    while limit is None or len(found) < limit:
        size = _PAGE if limit is None else min(_PAGE, limit)
        page = await user.history(size, before=before, within="thread")
        found[:0] = [whole_message(message) for message in page if message.user == user.scope.user]
        if len(page) < size:
            break
        before = page[0]
    return found if limit is None else found[max(0, len(found) - limit) :]


async def add_all(user: UserMemory, messages: Sequence[Mapping[str, Any]]) -> None:
    """Store messages, given as arguments of `add`, all of them or none.

    A text that is longer than a message may be is stored in the metadata, and its beginning as the text.
    """
    if messages:
        limit = text_limit(user)
        await user.add_many([_stored_once(each, limit) for each in messages])


async def replace_all(
    user: UserMemory,
    messages: Sequence[T],
    as_framework: Callable[[Message], T],
    as_arguments: Callable[[T], Mapping[str, Any]],
) -> None:
    """Make a framework's messages those of the user in the thread.

    Stored messages that they begin with stay, the others are taken back, and the rest of `messages` is stored.
    """
    stored = await own_messages(user)
    same = 0
    while same < min(len(stored), len(messages)) and as_framework(stored[same]) == messages[same]:
        same += 1
    for old in reversed(stored[same:]):
        await user.take_back(old)
    await add_all(user, [as_arguments(each) for each in messages[same:]])


async def take_back_last(user: UserMemory) -> Message | None:
    """Take back the user's newest message in the thread and return it, or None if there is none."""
    found = await own_messages(user, 1)
    if not found:
        return None
    await user.take_back(found[0])
    return found[0]


async def clear(user: UserMemory) -> None:
    """Take back all messages of the user in the thread."""
    await user.clear()


def labels(name: str) -> list[str]:
    """Return the labels that the name of a thread or of a chat consists of, as compact JSON; none for other names."""
    try:
        found = json.loads(name) if name.startswith('["') else []
    except ValueError:
        return []
    texts = [each for each in found if isinstance(each, str)]
    return texts if texts == found else []


def placeholder(kind: str) -> Part:
    """Return the part of a message that has nothing to read, such as encrypted reasoning: a message needs something."""
    return Part("file", name=kind, media_type="application/json")


def with_original(new: dict[str, Any], framework: str, kind: str, original: object) -> dict[str, Any]:
    """Add a framework's own form of a message, as JSON, to the arguments of `add`."""
    whole = {**new, "metadata": {framework: original}}
    if not any(new.get(name) for name in ("text", "parts", "tool_calls", "tool_call_id")):
        whole["parts"] = [placeholder(kind)]
    return whole


def original(message: Message, framework: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the framework's own form of a whole message, or None for a message from elsewhere."""
    metadata: Any = message.metadata
    for path in metadata.get(_SHARED, {}).get("at", ()):
        place = metadata
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = message.text
    return metadata.get(framework)


def whole_message(message: Message) -> Message:
    """Return a message with its whole text, also if only the beginning of it is the text of the stored message."""
    if message.details is None or _SHARED not in message.details:
        return message
    shared: Any = message.metadata.get(_SHARED, {})
    text = shared.get("text", "")
    return replace(message, text=text) if message.text == text[: shared.get("characters", 0)] != "" else message


def text_limit(user: UserMemory) -> int:
    """Return the maximum number of bytes of a message's text."""
    return user._services.profile.message_bytes  # noqa: SLF001 - no part of the public API needs it


def beginning(text: str, limit: int) -> str:
    """Return as many characters from the beginning of a text as have at most `limit` bytes."""
    if len(text) * 4 <= limit:
        return text
    encoded = text.encode(errors="surrogatepass")
    return text if len(encoded) <= limit else encoded[:limit].decode(errors="ignore")


def _stored_once(new: Mapping[str, Any], limit: int) -> Mapping[str, Any]:
    """Return the arguments of `add` with a long text in one place only.

    Where the framework's form has the same text, it gets None and the path is stored: `at`. If the text is too long for
    a message, the whole is stored as well (`text`) and the length of the beginning (`characters`), by which an edited
    message is recognised.
    """
    text, metadata = new.get("text") or "", new.get("metadata") or {}
    shared: dict[str, Any] = {}
    if len(text) >= _LONG and (paths := list(_paths(metadata, text))):
        shared["at"] = paths
        metadata = _without(metadata, text)
    short = beginning(text, limit)
    if short != text:
        shared |= {"text": text, "characters": len(short)}
    return {**new, "text": short, "metadata": {**metadata, _SHARED: shared}} if shared else new


def _paths(value: object, text: str) -> Iterator[list[str | int]]:
    """Yield the path of every place in a JSON value that holds a text."""
    if value == text:
        yield []
    elif isinstance(value, Mapping | list | tuple):
        for step, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from ([step, *path] for path in _paths(item, text))


def _without(value: Any, text: str) -> Any:  # noqa: ANN401 - any JSON
    """Return a copy of a JSON value with None in place of a text."""
    if isinstance(value, Mapping):
        return {name: _without(item, text) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without(item, text) for item in value]
    return None if value == text else value


async def recalled(user: UserMemory, question: str, budget: int) -> str:
    """Return what is remembered for a question, as text for a system prompt of at most `budget` tokens.

    It is empty if nothing is remembered. The last messages are not in it, because a framework sends them itself.
    """
    if not question.strip():
        return ""
    context = await user.context(question, budget, without=_OF_THE_FRAMEWORK)
    if all(item.section in _NOTHING_REMEMBERED for item in context.items):
        return ""
    return "\n\n".join(str(each["content"]) for each in context.messages if each["role"] == "system")
