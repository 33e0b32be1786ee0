"""Microsoft Agent Framework: a history provider, and a context provider with what is remembered.

    providers = [AforesaidHistoryProvider(memory, "ann"), AforesaidContextProvider(memory.user("ann"))]
    agent = Agent(client, context_providers=providers)
    await agent.run("Where do I live?", session=agent.create_session())

A session is a private chat of the user. Messages come back as they were saved, with all their contents.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from agent_framework import AgentSession, ContextProvider, HistoryProvider, SessionContext, SupportsAgentRun
from agent_framework import Message as AgentMessage

from aforesaid.domain.details import ToolCall
from aforesaid.domain.message import Message
from aforesaid.domain.scope import DEFAULT_SPACE
from aforesaid.integrations import shared
from aforesaid.integrations.shared import AnyMemory, AnyUser, Calls
from aforesaid.memory import Memory, UserMemory

_FRAMEWORK: Final = "agent_framework"
"""The key in the metadata of a message under which the framework's message is stored."""
_RECALL_TOKENS: Final = 2_000


class AforesaidHistoryProvider(HistoryProvider):
    """Stores and loads the messages of a user's sessions, each in a chat of its own."""

    def __init__(
        self,
        memory: AnyMemory,
        user: str,
        *,
        space: str = DEFAULT_SPACE,
        source_id: str = "aforesaid_history",
        **options: Any,  # noqa: ANN401 - those of HistoryProvider
    ) -> None:
        super().__init__(source_id, **options)
        self._calls = Calls(memory, Memory)
        self._names = user, space

    async def get_messages(
        self,
        session_id: str | None,
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> list[AgentMessage]:
        """Return all messages of a session."""
        del state, kwargs
        found = await self._calls.wait(lambda memory: shared.own_messages(self._of(memory, session_id)))
        return [_as_agent_message(each) for each in found]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[AgentMessage],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,  # noqa: ANN401
    ) -> None:
        """Store messages of a session, all of them or none."""
        del state, kwargs
        new = [_as_message(each) for each in messages]
        await self._calls.wait(lambda memory: shared.add_all(self._of(memory, session_id), new))

    def _of(self, memory: Memory, session: str | None) -> UserMemory:
        user, space = self._names
        direct = memory.user(user, space=space)
        return direct if session is None else direct.chat(session)


class AforesaidContextProvider(ContextProvider):
    """Adds what is remembered about a user to the instructions of each run. It stores nothing."""

    def __init__(self, user: AnyUser, *, tokens: int = _RECALL_TOKENS, source_id: str = "aforesaid") -> None:
        super().__init__(source_id)
        self._calls = Calls(user, UserMemory)
        self._tokens = tokens

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Recall for the last message of the user."""
        del agent, session, state
        question = next((each.text for each in reversed(context.input_messages) if each.role == "user"), "")
        found = await self._calls.wait(lambda user: shared.recalled(user, question, self._tokens))
        if found:
            context.extend_instructions(self.source_id, found)


def _as_message(message: AgentMessage) -> dict[str, Any]:
    """Return a message as the arguments of `add`. Whatever they cannot express is in the metadata."""
    contents = message.contents
    results = [each for each in contents if each.type == "function_result"]
    new: dict[str, Any] = {
        "role": message.role if message.role in {"user", "assistant", "system", "tool"} else "system",
        "text": "\n".join(_text(each.result) for each in results) if results else message.text,
        "name": message.author_name,
        "tool_calls": [
            ToolCall(each.call_id or f"call-{at}", each.name or "", _text(each.arguments))
            for at, each in enumerate(contents)
            if each.type == "function_call"
        ],
        "tool_call_id": results[0].call_id if len(results) == 1 else None,
    }
    return shared.with_original(new, _FRAMEWORK, "message", message.to_dict())


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _as_agent_message(message: Message) -> AgentMessage:
    """Return the message that was saved; for messages from elsewhere, and edited ones, the one they make."""
    stored = shared.original(message, _FRAMEWORK)
    if stored is not None:
        whole = AgentMessage.from_dict(dict(stored))
        if _as_message(whole)["text"] == message.text:
            return whole
    if message.tool_call_id is not None:
        contents: list[Any] = [{"type": "function_result", "call_id": message.tool_call_id, "result": message.text}]
    else:
        contents = [{"type": "text", "text": message.text}] if message.text else []
        contents += [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
            for call in message.tool_calls
        ]
    return AgentMessage(message.role, contents, author_name=message.name)
