"""Haystack components: write chat messages to a memory, read them back, and retrieve what is remembered.

    pipeline.add_component("history", AforesaidChatHistory(memory.user("ann").chat("chat-1")))
    pipeline.add_component("writer", AforesaidChatWriter(memory.user("ann").chat("chat-1")))
    pipeline.add_component("retriever", AforesaidRetriever(memory.user("ann")))

Messages with tool calls, results, images and files come back as they were written.

A pipeline is written without its memory, which is open in one program alone; it is loaded with the one to use:

    with memory_for_loading(memory):
        pipeline = Pipeline.loads(text, allowed_modules=["aforesaid.integrations.haystack"])
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Self

from haystack import Document, component, default_to_dict
from haystack.core.errors import DeserializationError
from haystack.dataclasses import ChatMessage, ChatRole
from haystack.dataclasses import ToolCall as HaystackToolCall

from aforesaid.domain.details import ToolCall
from aforesaid.domain.hit import Hit
from aforesaid.domain.message import Message
from aforesaid.integrations import shared
from aforesaid.integrations.shared import AnyMemory, AnyUser, Calls
from aforesaid.memory import UserMemory

_FRAMEWORK: Final = "haystack"
"""The key in the metadata of a message under which Haystack's message is stored."""


_MEMORY: Final[ContextVar[AnyMemory]] = ContextVar("aforesaid_haystack_memory")


@contextmanager
def memory_for_loading(memory: AnyMemory) -> Iterator[None]:
    """Use a memory for the components that are loaded in this block."""
    token = _MEMORY.set(memory)
    try:
        yield
    finally:
        _MEMORY.reset(token)


class _OfUser:
    """What the components share: the user's memory, and how they are written and loaded.

    They call its `__init__` by name: `component` makes another class of each, which `super()` does not know.
    """

    def __init__(self, user: AnyUser, **options: Any) -> None:  # noqa: ANN401
        self._calls = Calls(user, UserMemory)
        self._options = options

    def to_dict(self) -> dict[str, Any]:
        """Return the component with the names of its user, space, thread and session."""
        found: dict[str, Any] = default_to_dict(self, user=self._calls.target.scope._asdict(), **self._options)
        return found

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the component for the memory of `memory_for_loading`."""
        if (memory := _MEMORY.get(None)) is None:
            raise DeserializationError(f"{cls.__name__} needs a memory: load it in `with memory_for_loading(memory)`")
        given = dict(data["init_parameters"])
        return cls(memory.user(**given.pop("user")), **given)


@component
class AforesaidChatWriter(_OfUser):
    """Stores chat messages in a thread of a user. Needs a memory from `aforesaid.open`, unless it is awaited."""

    def __init__(self, user: AnyUser) -> None:
        _OfUser.__init__(self, user)

    @component.output_types(messages_written=int)
    def run(self, messages: list[ChatMessage]) -> dict[str, int]:
        """Store messages, all of them or none."""
        new = [_as_message(each) for each in messages]
        self._calls.run(lambda user: shared.add_all(user, new))
        return {"messages_written": len(new)}

    @component.output_types(messages_written=int)
    async def run_async(self, messages: list[ChatMessage]) -> dict[str, int]:
        """Store messages, all of them or none."""
        new = [_as_message(each) for each in messages]
        await self._calls.wait(lambda user: shared.add_all(user, new))
        return {"messages_written": len(new)}


@component
class AforesaidChatHistory(_OfUser):
    """Reads the last messages that a user has in a thread, and puts new messages after them."""

    def __init__(self, user: AnyUser, *, last: int | None = None) -> None:
        _OfUser.__init__(self, user, last=last)
        self._last = last

    @component.output_types(messages=list[ChatMessage])
    def run(self, messages: list[ChatMessage] | None = None) -> dict[str, list[ChatMessage]]:
        """Return the stored messages, and then `messages`."""
        stored = self._calls.run(lambda user: shared.own_messages(user, self._last))
        return {"messages": [*map(_as_chat, stored), *(messages or ())]}

    @component.output_types(messages=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage] | None = None) -> dict[str, list[ChatMessage]]:
        """Return the stored messages, and then `messages`."""
        stored = await self._calls.wait(lambda user: shared.own_messages(user, self._last))
        return {"messages": [*map(_as_chat, stored), *(messages or ())]}


@component
class AforesaidRetriever(_OfUser):
    """Searches messages, memories and summaries of a user."""

    def __init__(self, user: AnyUser, *, top_k: int = 10, min_score: float | None = None) -> None:
        _OfUser.__init__(self, user, top_k=top_k, min_score=min_score)
        self._top_k = top_k
        self._min_score = min_score

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Return what is found, best first."""
        return {
            "documents": [_as_document(hit) for hit in self._calls.run(lambda user: self._find(user, query, top_k))]
        }

    @component.output_types(documents=list[Document])
    async def run_async(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Return what is found, best first."""
        hits = await self._calls.wait(lambda user: self._find(user, query, top_k))
        return {"documents": [_as_document(hit) for hit in hits]}

    async def _find(self, user: UserMemory, query: str, top_k: int | None) -> list[Hit]:
        return await user.search(query, top_k or self._top_k, min_score=self._min_score)


def _as_document(hit: Hit) -> Document:
    meta = {"kind": hit.kind, "at": hit.at.isoformat(), "sources": list(hit.sources)}
    return Document(id=f"{hit.kind}:{hit.id}", content=hit.text, score=hit.score, meta=meta)


def _as_message(message: ChatMessage) -> dict[str, Any]:
    """Return a message as the arguments of `add`. Whatever they cannot express is in the metadata."""
    role = message.role.value
    results = message.tool_call_results
    text = "\n".join(str(each.result) for each in results) if results else "\n".join(message.texts)
    new: dict[str, Any] = {"role": role, "text": text, "name": message.name}
    if text and message.to_dict() == ChatMessage.from_dict({"role": role, "content": [{"text": text}]}).to_dict():
        return new
    new["tool_calls"] = [
        ToolCall(call.id or f"call-{at}", call.tool_name, json.dumps(call.arguments, ensure_ascii=False))
        for at, call in enumerate(message.tool_calls)
    ]
    new["tool_call_id"] = results[0].origin.id if len(results) == 1 else None
    return shared.with_original(new, _FRAMEWORK, "chat message", message.to_dict())


def _as_chat(message: Message) -> ChatMessage:
    """Return the message that was written; for messages from elsewhere, and edited ones, the one they make."""
    stored = shared.original(message, _FRAMEWORK)
    if stored is not None:
        whole = ChatMessage.from_dict(dict(stored))
        if _as_message(whole)["text"] == message.text:
            return whole
    if message.tool_call_id is not None:
        origin = HaystackToolCall(tool_name=message.name or "tool", arguments={}, id=message.tool_call_id)
        return ChatMessage.from_tool(message.text, origin=origin)
    if message.role == "assistant":
        calls = [HaystackToolCall(call.name, shared.arguments_of(call), id=call.id) for call in message.tool_calls]
        return ChatMessage.from_assistant(message.text or None, tool_calls=calls or None)
    return ChatMessage.from_dict({"role": ChatRole(message.role).value, "content": [{"text": message.text}]})
