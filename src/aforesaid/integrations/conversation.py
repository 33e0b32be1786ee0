"""The messages that one user has in one thread, as chat histories of frameworks need them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aforesaid.domain.details import Part
from aforesaid.domain.message import Message
from aforesaid.memory import UserMemory

_PAGE: Final = 1_000
"""Number of messages read at once."""
_OF_THE_FRAMEWORK: Final = ("system", "persona", "habits", "recent", "date")
"""Sections of a context that a framework's own prompt is for."""
_NOTHING_REMEMBERED: Final = frozenset({"rules", "current"})
"""Sections that say nothing about anybody."""


async def own_messages(user: UserMemory, limit: int | None = None) -> list[Message]:
    """Return the newest `limit` messages of the user in the thread, or all of them, oldest first.

    Other people's messages in the thread are left out: a framework's session belongs to one user.
    """
    found: list[Message] = []
    before: Message | None = None
    while limit is None or len(found) < limit:
        size = _PAGE if limit is None else min(_PAGE, limit)
        page = await user.history(size, before=before, within="thread")
        found[:0] = [message for message in page if message.user == user.scope.user]
        if len(page) < size:
            break
        before = page[0]
    return found if limit is None else found[max(0, len(found) - limit) :]


async def add_all(user: UserMemory, messages: Sequence[Mapping[str, Any]]) -> None:
    """Store messages, given as arguments of `add`, all of them or none."""
    if messages:
        await user.add_many(messages)


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
    """Return the framework's own form of a message, or None for a message from elsewhere."""
    return message.metadata.get(framework)


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
