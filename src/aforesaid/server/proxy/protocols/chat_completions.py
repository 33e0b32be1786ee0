"""OpenAI's Chat Completions: `/v1/chat/completions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aforesaid.server.proxy.caller import NoMemory
from aforesaid.server.proxy.insertion import MemoryText, insert, insert_in_question
from aforesaid.server.proxy.protocols.protocol import Body, Endpoint, Protocol
from aforesaid.server.proxy.reply import Reply

NO_MESSAGES: Final = NoMemory("the request has no list of messages")


class ChatCompletions(Protocol):
    """Chat Completions. Its messages are the form that the memory works with."""

    route = "/v1/chat/completions"
    endpoint = Endpoint("/chat/completions")

    def messages(self, body: Body) -> Sequence[object] | NoMemory:
        """Return the messages as they came."""
        messages = body.get("messages")
        return messages if isinstance(messages, list) else NO_MESSAGES

    def insert(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Add to the system prompt, and put a system message before the question."""
        return {**body, "messages": insert(body["messages"], memory)}

    def insert_in_question(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Put what is chosen for the question above it; all of it, if the client sends no system prompt."""
        return {**body, "messages": insert_in_question(body["messages"], memory)}

    def reply(self, body: Body, content_type: str) -> Reply:
        """Return a reader of choices."""
        del body
        return ChoicesReply(content_type)


class ChoicesReply(Reply):
    """Choices with messages, or with their deltas."""

    def _read_event(self, event: object) -> None:
        self._read_choices(event, "delta")

    def _read_whole(self, answer: object) -> None:
        self._read_choices(answer, "message")

    def _read_choices(self, answer: object, name: str) -> None:
        if isinstance(answer, dict):
            self._read_usage(answer.get("usage"), ("prompt_tokens",), "completion_tokens")
        choices = answer.get("choices") if isinstance(answer, dict) else None
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict):
                self._finished = self._finished or bool(choice.get("finish_reason"))
                self._add(choice.get("index", 0), self._text_in(choice, name))

    def _text_in(self, choice: dict[str, Any], name: str) -> object:
        """Return the text of a choice. `name` is the field of its message or delta."""
        said = choice.get(name)
        return said.get("content") if isinstance(said, dict) else None
