"""OpenAI's Responses: `/v1/responses`.

A client sends its whole history as items, or only what is new together with `previous_response_id` or `conversation`:
then the provider has the history. It would also keep a message that the proxy adds, so in such requests everything that
is remembered goes into `instructions`, which a provider does not carry over to the next response.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aforesaid.server.proxy.caller import NoMemory
from aforesaid.server.proxy.insertion import MemoryText, above_question, has_system, insert, joined
from aforesaid.server.proxy.protocols.protocol import Body, Endpoint, Protocol
from aforesaid.server.proxy.reply import Reply
from aforesaid.server.proxy.tool_steps import call_of

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
        """Return `previous_response_id`."""
        found = body.get("previous_response_id")
        return found if isinstance(found, str) and found else None

    def insert(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Add to the instructions; what is chosen for the question goes before it, if the client sends its history."""
        items = _items(body["input"])
        prompt = body.get("instructions")
        if not any(_role(item) == "assistant" for item in items):
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
        """Return a reader of responses and of their events."""
        del body
        return ResponseReply(content_type)


class ResponseReply(Reply):
    """A response, or the events of one. Its output can have several messages, which are one turn."""

    def texts(self) -> list[str]:
        """Return all messages of the output as one text."""
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
    """Return a request with texts after its instructions."""
    text = joined(body.get("instructions"), *added)
    return {**body, "instructions": text} if text else dict(body)


def _items(given: object) -> list[object]:
    """Return the input as items. A text is a message of the user."""
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(_sequence(given))


def _sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _role(item: object) -> object:
    return item.get("role") if isinstance(item, Mapping) else None


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
