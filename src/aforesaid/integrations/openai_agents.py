"""A session of the OpenAI Agents SDK whose items are messages of a memory.

    session = AforesaidSession(memory.user("ann").chat("chat-1"))
    result = await Runner.run(agent, "Where do I live?", session=session)

Texts, tool calls and tool results become messages that can be searched; each item comes back as it was added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from agents import SessionSettings, TResponseInputItem
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit

from aforesaid.domain.details import Part, ToolCall
from aforesaid.domain.message import Message
from aforesaid.domain.scope import chat_name
from aforesaid.integrations import shared
from aforesaid.integrations.shared import AnyUser, Calls
from aforesaid.memory import UserMemory

_FRAMEWORK: Final = "openai_agents"
"""The key in the metadata of a message under which the item is stored that it was made from."""
_MEDIA: Final[Mapping[str, Any]] = {"input_image": "image", "input_audio": "audio", "input_file": "file"}
_TEXTS: Final = ("text", "refusal", "transcript")
"""The keys of content parts that hold something to read."""


class AforesaidSession:
    """A session: the messages that a user has in a thread. `session_id` is the name of the chat or of the thread."""

    def __init__(self, user: AnyUser, *, session_settings: SessionSettings | dict[str, Any] | None = None) -> None:
        self._calls = Calls(user, UserMemory)
        self.session_id = chat_name(self._calls.target.scope.thread)
        self.session_settings: SessionSettings | None = coerce_session_settings(session_settings or {})

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest `limit` items, oldest first. Default: the limit of `session_settings`, or all."""
        most = resolve_session_limit(limit, self.session_settings)
        if most is not None and most <= 0:
            return []
        found = await self._calls.wait(lambda user: shared.own_messages(user, most))
        return [item for message in found for item in _as_items(message)][-(most or 0) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store items, all of them or none."""
        new = [_as_message(cast("Mapping[str, Any]", item)) for item in items]
        await self._calls.wait(lambda user: shared.add_all(user, new))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take back the newest item and return it, or None if there is none."""
        last = await self._calls.wait(shared.take_back_last)
        return None if last is None else _as_items(last)[-1]

    async def clear_session(self) -> None:
        """Take back all items."""
        await self._calls.wait(shared.clear)


def _as_items(message: Message) -> list[TResponseInputItem]:
    """Return the item that was added; for messages from elsewhere, and edited ones, the items that they make."""
    item = shared.original(message, _FRAMEWORK)
    if isinstance(item, Mapping) and _plain(item).get("text", "") == message.text:
        return [cast("TResponseInputItem", item)]
    if message.tool_call_id is not None:
        result = {"type": "function_call_output", "call_id": message.tool_call_id, "output": message.text}
        return [cast("TResponseInputItem", result)]
    calls = [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]
    said = [{"role": message.role, "content": message.text}] if message.text or not calls else []
    return [cast("TResponseInputItem", each) for each in (*said, *calls)]


def _as_message(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item as the arguments of `add`. Whatever they cannot express is in the metadata."""
    plain = _plain(item)
    if plain.get("text") and item == {"role": plain["role"], "content": plain["text"]}:
        return plain
    kind = item.get("type", "message")
    if kind not in {"message", "function_call", "function_call_output"}:
        plain["kind"] = kind
    return shared.with_original(plain, _FRAMEWORK, kind, dict(item))


def _plain(item: Mapping[str, Any]) -> dict[str, Any]:
    kind = item.get("type", "message")
    if kind == "function_call":
        call = ToolCall(item["call_id"], item["name"], item["arguments"])
        return {"role": "assistant", "tool_calls": [call]}
    if kind == "function_call_output":
        return {"role": "tool", "text": _text(item["output"]), "tool_call_id": item["call_id"]}
    role = item.get("role", "assistant")
    content = item.get("content") or item.get("summary") or ""
    # Images, sounds and files by name: their addresses are in the metadata already.
    media = [part for part in content if part.get("type") in _MEDIA] if isinstance(content, list) else []
    parts = [Part(_MEDIA[part["type"]], name=part.get("filename") or part.get("file_id")) for part in media]
    return {"role": "system" if role == "developer" else role, "text": _text(content), "parts": parts}


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    return "\n".join(str(part[name]) for part in parts for name in _TEXTS if part.get(name))
