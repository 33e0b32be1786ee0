"""Pydantic AI: the history of a conversation, and instructions with what is remembered.

    chat = AforesaidHistory(memory.user("ann").chat("chat-1"))
    agent = Agent(model, instructions=chat.instructions)
    result = await agent.run("Where do I live?", message_history=await chat.load())
    await chat.save(result.new_messages())

Every part of a message (tool calls, results, files, thoughts) comes back as it was saved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from aforesaid.domain.details import ToolCall
from aforesaid.domain.message import Message
from aforesaid.integrations import shared
from aforesaid.integrations.shared import AnyUser, Calls
from aforesaid.memory import UserMemory

_FRAMEWORK: Final = "pydantic_ai"
"""The key in the metadata of a message under which Pydantic AI's message is stored."""
_RECALL_TOKENS: Final = 2_000


class AforesaidHistory:
    """The messages that a user has in a thread, as a message history. The sync methods end in `_sync`."""

    def __init__(self, user: AnyUser, *, tokens: int = _RECALL_TOKENS) -> None:
        self._calls = Calls(user, UserMemory)
        self._tokens = tokens

    async def load(self, limit: int | None = None) -> list[ModelMessage]:
        """Return the newest `limit` messages, or all of them, oldest first."""
        return _as_model_messages(await self._calls.wait(lambda user: shared.own_messages(user, limit)))

    def load_sync(self, limit: int | None = None) -> list[ModelMessage]:
        """Return the newest `limit` messages, or all of them, oldest first."""
        return _as_model_messages(self._calls.run(lambda user: shared.own_messages(user, limit)))

    async def save(self, messages: Sequence[ModelMessage]) -> None:
        """Store messages, all of them or none."""
        new = [_as_message(each) for each in messages]
        await self._calls.wait(lambda user: shared.add_all(user, new))

    def save_sync(self, messages: Sequence[ModelMessage]) -> None:
        """Store messages, all of them or none."""
        new = [_as_message(each) for each in messages]
        self._calls.run(lambda user: shared.add_all(user, new))

    async def clear(self) -> None:
        """Take back all messages of the thread."""
        await self._calls.wait(shared.clear)

    async def instructions(self, context: RunContext[Any]) -> str:
        """Return what is remembered for the prompt of a run. Pass this method as `instructions` of an agent."""
        question = context.prompt if isinstance(context.prompt, str) else _text_of(context.prompt or ())
        return await self._calls.wait(lambda user: shared.recalled(user, question, self._tokens))


def _as_message(message: ModelMessage) -> dict[str, Any]:
    """Return a message as the arguments of `add`, with the whole message in the metadata."""
    (whole,) = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    if isinstance(message, ModelResponse):
        new: dict[str, Any] = {
            "role": "assistant",
            "text": "\n".join(part.content for part in message.parts if isinstance(part, TextPart)),
            "tool_calls": [
                ToolCall(part.tool_call_id, part.tool_name, part.args_as_json_str())
                for part in message.parts
                if isinstance(part, ToolCallPart)
            ],
        }
    else:
        new = _request(message)
    return shared.with_original(new, _FRAMEWORK, message.kind, whole)


def _request(message: ModelRequest) -> dict[str, Any]:
    said = [_text_of(part.content) for part in message.parts if isinstance(part, UserPromptPart)]
    results = [part for part in message.parts if isinstance(part, ToolReturnPart)]
    if said:
        return {"role": "user", "text": "\n".join(said)}
    if results:
        text = "\n".join(each.model_response_str() for each in results)
        return {"role": "tool", "text": text, "tool_call_id": results[0].tool_call_id if len(results) == 1 else None}
    system = [part.content for part in message.parts if isinstance(part, SystemPromptPart)]
    return {"role": "system", "text": "\n".join(system)}


def _text_of(content: str | Sequence[Any]) -> str:
    return content if isinstance(content, str) else "\n".join(each for each in content if isinstance(each, str))


def _as_model_messages(messages: Sequence[Message]) -> list[ModelMessage]:
    return [_as_model_message(message) for message in messages]


def _as_model_message(message: Message) -> ModelMessage:
    """Return the message that was saved; for messages from elsewhere, and edited ones, the one they make."""
    stored = shared.original(message, _FRAMEWORK)
    if stored is not None:
        (whole,) = ModelMessagesTypeAdapter.validate_python([stored])
        if _as_message(whole)["text"] == message.text:
            return whole
    return ModelMessagesTypeAdapter.validate_python([_written_elsewhere(message)])[0]


def _written_elsewhere(message: Message) -> dict[str, Any]:
    if message.role == "assistant":
        calls = [
            {"part_kind": "tool-call", "tool_name": call.name, "args": call.arguments, "tool_call_id": call.id}
            for call in message.tool_calls
        ]
        said = [{"part_kind": "text", "content": message.text}] if message.text or not calls else []
        return {"kind": "response", "parts": [*said, *calls], "timestamp": message.at.isoformat()}
    if message.tool_call_id is not None:
        part: dict[str, Any] = {
            "part_kind": "tool-return",
            "tool_name": message.name or "tool",
            "content": message.text,
            "tool_call_id": message.tool_call_id,
        }
    else:
        part = {"part_kind": "system-prompt" if message.role == "system" else "user-prompt", "content": message.text}
    return {"kind": "request", "parts": [{**part, "timestamp": message.at.isoformat()}]}
