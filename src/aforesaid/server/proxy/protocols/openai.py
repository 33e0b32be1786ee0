"""The protocols of OpenAI: chat completions, completions, responses."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from aforesaid.server.proxy.app_prompts import is_code_with_gap
from aforesaid.server.proxy.caller import USER_FIELDS, NoMemory, value_at
from aforesaid.server.proxy.conversations import role_of
from aforesaid.server.proxy.insertion import MemoryText, above_question, has_system, insert, insert_in_question, joined
from aforesaid.server.proxy.proxy_memory import TokenLimits
from aforesaid.server.proxy.reply import Reply, call_of

Body: TypeAlias = Mapping[str, Any]

BEARER: Final = "authorization"
X_API_KEY: Final = "x-api-key"


class Endpoint(NamedTuple):
    """Where a provider answers a kind of request."""

    path: str
    """The path below the provider's base URL; with `at_root`, below that URL without its `/v1`."""
    at_root: bool = False
    key_header: str = BEARER
    """The header that the provider expects its key in."""
    provider: str | None = None
    """The provider that is used, if it is configured, when neither the model nor a setting names another."""


class Protocol(ABC):
    route: ClassVar[str]
    endpoint: ClassVar[Endpoint]
    user_fields: ClassVar[tuple[str, ...]] = USER_FIELDS
    """Fields of the request that name the user. A dot leads into an object."""
    chat_field: ClassVar[str | None] = None
    """The field of the request that names a chat which the provider stores."""
    reply_token_fields: ClassVar[tuple[str, ...]] = ("max_completion_tokens", "max_tokens")
    """Fields of the request that limit the length of the reply. A dot leads into an object."""
    window_field: ClassVar[str | None] = None
    """The field of the request that sets the context window of the model."""
    too_long: ClassVar[re.Pattern[bytes]] = re.compile(rb"context_length_exceeded")
    """What a provider's error says when a request is longer than the model's context window."""

    def limits(self, body: Body) -> TokenLimits:
        values = (value_at(body, field) for field in self.reply_token_fields)
        reply = next((value for value in values if isinstance(value, int) and value >= 0), None)
        window = None if self.window_field is None else value_at(body, self.window_field)
        return TokenLimits(reply, window if isinstance(window, int) and window > 0 else None)

    @abstractmethod
    def messages(self, body: Body) -> Sequence[object] | NoMemory:
        """Return the conversation of a request as messages of Chat Completions, or why there is none."""

    @abstractmethod
    def insert(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Return the request with what is remembered."""

    @abstractmethod
    def insert_in_question(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Return the same for a model that refuses what `insert` returns: in the message of the question."""

    @abstractmethod
    def reply(self, body: Body, content_type: str) -> Reply:
        """Return a reader of the provider's reply to a request."""

    def previous(self, body: Body) -> str | None:
        """Return the id of the reply that a request goes on from, if it names one instead of sending the history."""
        del body
        return None


NO_MESSAGES: Final = NoMemory("the request has no list of messages")


class ChatCompletions(Protocol):
    """Chat Completions. Its messages are the form that the memory works with."""

    route = "/v1/chat/completions"
    endpoint = Endpoint("/chat/completions")

    def messages(self, body: Body) -> Sequence[object] | NoMemory:
        messages = body.get("messages")
        return messages if isinstance(messages, list) else NO_MESSAGES

    def insert(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        return {**body, "messages": insert(body["messages"], memory)}

    def insert_in_question(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        return {**body, "messages": insert_in_question(body["messages"], memory)}

    def reply(self, body: Body, content_type: str) -> Reply:
        del body
        return ChoicesReply(content_type)


class ChoicesReply(Reply):
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


_NO_PROMPT: Final = NoMemory("the request has no prompt that is one text")
_NO_QUESTION: Final = NoMemory("code with a gap to fill in, or a prompt that the reply repeats")


class Completions(Protocol):
    """Completions. The prompt is what the user says, and its completion is the answer."""

    route = "/v1/completions"
    endpoint = Endpoint("/completions")

    def messages(self, body: Body) -> Sequence[object] | NoMemory:
        """Return the prompt as a message of the user. Lists of prompts and of tokens have no memory."""
        prompt = _prompt(body)
        if prompt is None:
            return _NO_PROMPT
        if body.get("suffix") is not None or body.get("echo") or is_code_with_gap(prompt):
            return _NO_QUESTION
        return [{"role": "user", "content": prompt}]

    def insert(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        return {**body, "prompt": joined(memory.stable, memory.for_question, _prompt(body))}

    def insert_in_question(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Do the same: there are no roles that a model could refuse."""
        return self.insert(body, memory)

    def reply(self, body: Body, content_type: str) -> Reply:
        del body
        return TextReply(content_type)


class TextReply(ChoicesReply):
    def _text_in(self, choice: dict[str, Any], name: str) -> object:
        del name
        return choice.get("text")


def _prompt(body: Body) -> str | None:
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        (prompt,) = prompt
    return prompt if isinstance(prompt, str) and prompt else None


NO_INPUT: Final = NoMemory("the request has no input")
_PART: Final = "input_text"
_COMPLETE: Final = ("response.completed", "response.incomplete")


class Responses(Protocol):
    """Responses. `store` concerns what the provider stores: the memory works the same with and without it."""

    route = "/v1/responses"
    endpoint = Endpoint("/responses")
    chat_field = "conversation"
    reply_token_fields = ("max_output_tokens",)

    def messages(self, body: Body) -> Sequence[object] | NoMemory:
        """Return the instructions and the messages among the items; results of tools are messages of a tool."""
        given = body.get("input")
        if not isinstance(given, str | list):
            return NO_INPUT
        prompt = body.get("instructions")
        first = [{"role": "system", "content": prompt}] if isinstance(prompt, str) else []
        return [*first, *(message for item in _items(given) if (message := _message(item)) is not None)]

    def previous(self, body: Body) -> str | None:
        found = body.get("previous_response_id")
        return found if isinstance(found, str) and found else None

    def insert(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Add to the instructions; what is chosen for the question goes before it, if the client sends its history."""
        items = _items(body["input"])
        prompt = body.get("instructions")
        if not any(role_of(item) == "assistant" for item in items):
            return _instructed(body, memory.stable, memory.for_question)
        if prompt or not has_system(items):
            changed = {**body, "input": insert(items, memory._replace(stable=""), _PART)}
            return _instructed(changed, memory.stable)
        return {**body, "input": insert(items, memory, _PART)}

    def insert_in_question(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Put what is chosen for the question above it; all of it, if the client sends no instructions."""
        prompt = body.get("instructions")
        above = joined("" if prompt else memory.stable, memory.for_question)
        changed = {**body, "input": above_question(_items(body["input"]), above, _PART)}
        return _instructed(changed, memory.stable) if prompt else changed

    def reply(self, body: Body, content_type: str) -> Reply:
        del body
        return ResponseReply(content_type)


class ResponseReply(Reply):
    """A response, or the events of one. Its output can have several messages, which are one turn."""

    def texts(self) -> list[str]:
        said = joined(*super().texts())
        return [said] if said else []

    def _read_event(self, event: object) -> None:
        if not isinstance(event, Mapping):
            return
        kind, response = event.get("type"), event.get("response")
        if self.id is None and isinstance(response, Mapping):
            self._read_id(response)
        if kind == "response.output_text.delta":
            self._add(event.get("output_index", 0), event.get("delta"))
        elif kind == "response.output_item.done":
            self._read_call(event.get("item"))
        elif kind in _COMPLETE:
            self.ended = True
            if not self._pieces and not self.calls:
                self._read_whole(response)
            elif isinstance(response, Mapping):
                self._read_usage(response.get("usage"), ("input_tokens",), "output_tokens")

    def _read_whole(self, answer: object) -> None:
        if not isinstance(answer, Mapping):
            return
        self._read_id(answer)
        self._read_usage(answer.get("usage"), ("input_tokens",), "output_tokens")
        output = answer.get("output")
        for place, item in enumerate(output if isinstance(output, list) else ()):
            self._read_call(item)
            content = item.get("content") if isinstance(item, Mapping) and item.get("type") == "message" else None
            for part in content if isinstance(content, list) else ():
                if isinstance(part, Mapping) and part.get("type") == "output_text":
                    self._add(place, part.get("text"))

    def _read_call(self, item: object) -> None:
        if isinstance(item, Mapping) and item.get("type") == "function_call":
            call = call_of(len(self.calls), item.get("name"), item.get("arguments"), item.get("call_id"))
            self.calls.append(call)

    def _read_id(self, response: Mapping[str, Any]) -> None:
        name = response.get("id")
        self.id = name if isinstance(name, str) and name else None


def _instructed(body: Body, *added: str) -> dict[str, Any]:
    text = joined(body.get("instructions"), *added)
    return {**body, "instructions": text} if text else dict(body)


def _items(given: object) -> list[object]:
    """Return the input as items. A text is a message of the user."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return list(given) if isinstance(given, list) else []


def _message(item: object) -> Mapping[str, object] | None:
    """Return an item as a message; None for reasoning and references."""
    if not isinstance(item, Mapping):
        return None
    if isinstance(item.get("role"), str):
        return item
    if str(item.get("type")).endswith("_output"):
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
    if item.get("type") == "function_call":
        function = {"name": item.get("name"), "arguments": item.get("arguments")}
        return {"role": "assistant", "tool_calls": [{"id": item.get("call_id"), "function": function}]}
    return None
