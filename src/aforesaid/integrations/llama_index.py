"""LlamaIndex: a chat memory, and a memory block for LlamaIndex's own `Memory`.

    chat = AforesaidMemory(user=memory.user("ann").chat("chat-1"))
    await agent.run("Where do I live?", memory=chat)

    block = AforesaidMemoryBlock(name="aforesaid", user=memory.user("ann"))
    Memory.from_defaults(session_id="chat-1", memory_blocks=[block])

Messages with tool calls and other blocks come back as they were put.
"""

from __future__ import annotations

import json
from typing import Any, Final

from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.memory import BaseMemory, BaseMemoryBlock

from aforesaid.domain.details import ToolCall
from aforesaid.domain.message import Message
from aforesaid.integrations import shared
from aforesaid.integrations.shared import Calls
from aforesaid.memory import UserMemory

_FRAMEWORK: Final = "llama_index"
"""The key in the metadata of a message under which LlamaIndex's message is stored."""
_ROLES: Final = {
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "system",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
}
_RECALL_TOKENS: Final = 2_000


class AforesaidMemory(BaseMemory):
    """The messages that a user has in a thread, and what is remembered beyond them.

    `get` returns the last `recent` messages. If it is given the question, a system message with what is remembered for
    it comes first, of at most `tokens` tokens; with `tokens=0` there is none. The sync methods need a memory from
    `aforesaid.open`.
    """

    user: Any = Field(exclude=True)
    recent: int = 50
    tokens: int = _RECALL_TOKENS
    _calls: Calls[UserMemory] = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401 - pydantic's
        """Check the memory."""
        super().model_post_init(context)
        self._calls = Calls(self.user, UserMemory)

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the class."""
        return "AforesaidMemory"

    @classmethod
    def from_defaults(cls, **kwargs: Any) -> AforesaidMemory:  # noqa: ANN401 - the fields
        """Return a memory with these fields."""
        return cls(**kwargs)

    def get(self, input: str | None = None, **_: Any) -> list[ChatMessage]:  # noqa: A002, ANN401 - LlamaIndex's names
        """Return the last messages, after what is remembered for the question."""
        return self._calls.run(lambda user: self._get(user, input))

    async def aget(self, input: str | None = None, **_: Any) -> list[ChatMessage]:  # noqa: A002, ANN401
        """Return the last messages, after what is remembered for the question."""
        return await self._calls.wait(lambda user: self._get(user, input))

    def get_all(self) -> list[ChatMessage]:
        """Return all messages of the thread."""
        return [_as_chat(each) for each in self._calls.run(shared.own_messages)]

    async def aget_all(self) -> list[ChatMessage]:
        """Return all messages of the thread."""
        return [_as_chat(each) for each in await self._calls.wait(shared.own_messages)]

    def put(self, message: ChatMessage) -> None:
        """Store a message."""
        self.put_messages([message])

    async def aput(self, message: ChatMessage) -> None:
        """Store a message."""
        await self.aput_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        """Store messages, all of them or none."""
        new = [_as_message(each) for each in messages]
        self._calls.run(lambda user: shared.add_all(user, new))

    async def aput_messages(self, messages: list[ChatMessage]) -> None:
        """Store messages, all of them or none."""
        new = [_as_message(each) for each in messages]
        await self._calls.wait(lambda user: shared.add_all(user, new))

    def set(self, messages: list[ChatMessage]) -> None:
        """Take back all messages of the thread that these do not begin with, and store the others."""
        self._calls.run(lambda user: shared.replace_all(user, messages, _as_chat, _as_message))

    async def aset(self, messages: list[ChatMessage]) -> None:
        """Take back all messages of the thread that these do not begin with, and store the others."""
        await self._calls.wait(lambda user: shared.replace_all(user, messages, _as_chat, _as_message))

    def reset(self) -> None:
        """Take back all messages of the thread."""
        self._calls.run(shared.clear)

    async def areset(self) -> None:
        """Take back all messages of the thread."""
        await self._calls.wait(shared.clear)

    async def _get(self, user: UserMemory, question: str | None) -> list[ChatMessage]:
        found = await shared.recalled(user, question, self.tokens) if question and self.tokens else ""
        recent = [_as_chat(each) for each in await shared.own_messages(user, self.recent)]
        return [*([ChatMessage(role=MessageRole.SYSTEM, content=found)] if found else []), *recent]


class AforesaidMemoryBlock(BaseMemoryBlock[str]):
    """A block of LlamaIndex's `Memory`: stores the messages that leave the short-term memory, and recalls from them."""

    user: Any = Field(exclude=True)
    tokens: int = _RECALL_TOKENS
    _calls: Calls[UserMemory] = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401 - pydantic's
        """Check the memory."""
        super().model_post_init(context)
        self._calls = Calls(self.user, UserMemory)

    async def _aget(self, messages: list[ChatMessage] | None = None, **_: Any) -> str:  # noqa: ANN401
        question = next((each.content for each in reversed(messages or ()) if each.role == MessageRole.USER), None)
        return await self._calls.wait(lambda user: shared.recalled(user, question or "", self.tokens))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        new = [_as_message(each) for each in messages]
        await self._calls.wait(lambda user: shared.add_all(user, new))


def _as_message(message: ChatMessage) -> dict[str, Any]:
    """Return a message as the arguments of `add`. Whatever they cannot express is in the metadata."""
    role = _ROLES[message.role]
    new: dict[str, Any] = {"role": role, "text": message.content or ""}
    if new["text"] and message == ChatMessage(role=role, content=new["text"]):
        return new
    new["tool_calls"] = [
        ToolCall(
            block.tool_call_id or f"call-{at}",
            block.tool_name,
            given if isinstance(given := block.tool_kwargs, str) else json.dumps(given, ensure_ascii=False),
        )
        for at, block in enumerate(message.blocks)
        if isinstance(block, ToolCallBlock)
    ]
    if role == "tool":
        new["tool_call_id"] = message.additional_kwargs.get("tool_call_id")
    return shared.with_original(new, _FRAMEWORK, "chat message", message.model_dump(mode="json"))


def _as_chat(message: Message) -> ChatMessage:
    """Return the message that was put; for messages from elsewhere, and edited ones, the one they make."""
    stored = shared.original(message, _FRAMEWORK)
    if stored is not None:
        whole = ChatMessage.model_validate(stored)
        if (whole.content or "") == message.text:
            return whole
    extra = {} if message.tool_call_id is None else {"tool_call_id": message.tool_call_id}
    made = ChatMessage(role=MessageRole(message.role), content=message.text, additional_kwargs=extra)
    made.blocks += [
        ToolCallBlock(tool_call_id=call.id, tool_name=call.name, tool_kwargs=call.arguments)
        for call in message.tool_calls
    ]
    return made
