"""Anthropic's Messages: `/v1/messages`.

A prompt is cached up to the blocks that have a `cache_control`, at most four of them. What is remembered goes where it
keeps those caches valid: the stable part at the end of the system prompt, with a `cache_control` of its own; what is
chosen for the question into the question's message, after the block that the client marks, or else before the question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from aforesaid.server.proxy.app_prompts import own_words
from aforesaid.server.proxy.caller import NoMemory
from aforesaid.server.proxy.insertion import MemoryText, joined
from aforesaid.server.proxy.protocols.openai import NO_MESSAGES, X_API_KEY, Body, Endpoint, Protocol
from aforesaid.server.proxy.reply import Reply

PROVIDER: Final = "anthropic"
_MARK: Final = "cache_control"
_MOST_MARKS: Final = 4
"""Blocks with a `cache_control` that a request may have."""
_LONG: Final = "1h"
_INPUT_TOKENS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_PROBE: Final = NoMemory("a request for one token, by which a program checks that it has access")


class Messages(Protocol):
    """Messages. `max_tokens` is required there and says little about the reply, so no room is kept free for it."""

    route = "/v1/messages"
    endpoint = Endpoint("/messages", key_header=X_API_KEY, provider=PROVIDER)
    user_fields = ("metadata.user_id",)
    reply_token_fields = ()
    too_long = re.compile(rb"prompt is too long|exceed context limit|context_length_exceeded")

    def messages(self, body: Body) -> Sequence[object] | NoMemory:
        """Return the system prompt and the messages; results of tools are messages of a tool."""
        messages = body.get("messages")
        if not isinstance(messages, list):
            return NO_MESSAGES
        if body.get("max_tokens") == 1:
            return _PROBE
        if _prefill(body):
            messages = messages[:-1]
        spoken = [message for each in messages for message in _messages(each)]
        prompt = body.get("system")
        return [{"role": "system", "content": prompt}, *spoken] if prompt else spoken

    def insert(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Add a block to the system prompt, and one to the message of the question."""
        changed = dict(body)
        if memory.stable:
            changed["system"] = [*_blocks(body.get("system")), _stable_block(body, memory.stable)]
        return _with_context(changed, memory.for_question)

    def insert_in_question(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        return _with_context(dict(body), joined(memory.stable, memory.for_question))

    def reply(self, body: Body, content_type: str) -> Reply:
        return MessageReply(content_type, _prefill(body))


class MessageReply(Reply):
    """A message, or the events of one. Its text goes on from the `prefill`, the begin that the client gave it."""

    def __init__(self, content_type: str, prefill: str = "") -> None:
        super().__init__(content_type)
        self._prefill = prefill

    def texts(self) -> list[str]:
        said = "".join(super().texts())
        return [self._prefill + said] if said else []

    def _read_event(self, event: object) -> None:
        if not isinstance(event, Mapping):
            return
        kind, delta, begun = event.get("type"), event.get("delta"), event.get("message")
        self._read_tokens(begun if isinstance(begun, Mapping) else event)
        if kind == "content_block_delta" and isinstance(delta, Mapping):
            self._add(event.get("index", 0), delta.get("text"))
        elif kind == "message_delta" and isinstance(delta, Mapping):
            self._finished = self._finished or bool(delta.get("stop_reason"))
        elif kind == "message_stop":
            self.ended = True

    def _read_tokens(self, answer: Mapping[str, Any]) -> None:
        """Read the tokens. Those of a cached prompt are counted apart there, and are part of the request too."""
        self._read_usage(answer.get("usage"), _INPUT_TOKENS, "output_tokens")

    def _read_whole(self, answer: object) -> None:
        if isinstance(answer, Mapping):
            self._read_tokens(answer)
        content = answer.get("content") if isinstance(answer, Mapping) else None
        self._add(0, _text(content))


def _messages(message: object) -> list[object]:
    """Return a message as messages of Chat Completions: each result of a tool is one of its own."""
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(message, Mapping) or not isinstance(content, list):
        return [message]
    if message.get("role") == "assistant":
        calls = [_call(block) for block in content if (isinstance(block, Mapping) and block.get("type") == "tool_use")]
        return [{"role": "assistant", "content": _text(content), "tool_calls": calls}]
    said = [block for block in content if not _is_of_program(block)]
    results: list[object] = [
        {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": block.get("content")}
        for block in said
        if _is_tool_result(block)
    ]
    rest = [block for block in said if not _is_tool_result(block)]
    return results if results and not rest else [*results, {**message, "content": rest}]


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": block.get("id"), "function": {"name": block.get("name"), "arguments": block.get("input")}}


def _text(content: object) -> str:
    """Return the text of an answer. Quotations split a sentence into several blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    texts = (block.get("text") for block in blocks if isinstance(block, Mapping) and block.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def _prefill(body: Body) -> str:
    """Return the begin of the answer, if the client sends one as its last message."""
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    return _text(last.get("content")) if isinstance(last, Mapping) and last.get("role") == "assistant" else ""


def _is_result(message: Mapping[str, Any]) -> bool:
    """Return whether a message holds nothing but results of tools."""
    return _are_results(message.get("content"))


def _are_results(content: object) -> bool:
    return isinstance(content, list) and bool(content) and all(map(_is_tool_result, content))


def _is_tool_result(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_result"


def _is_of_program(block: object) -> bool:
    """Return whether a program wrote all of a block, such as a reminder."""
    text = block.get("text") if isinstance(block, Mapping) else None
    return isinstance(text, str) and not own_words(text).strip()


def _blocks(content: object) -> list[Any]:
    """Return the content of a message, or a system prompt, as blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content) if isinstance(content, list) else []


def _stable_block(body: Body, text: str) -> dict[str, Any]:
    """Return the block for the system prompt, marked for the cache if the request may have one more mark."""
    marks = list(_marks(body))
    if len(marks) >= _MOST_MARKS:
        return {"type": "text", "text": text}
    # A mark with a longer lifetime must not come after one with a shorter lifetime.
    later = (body.get("messages"), {_MARK: body.get(_MARK)})
    lasts_long = any(isinstance(mark, Mapping) and mark.get("ttl") == _LONG for mark in _marks(later))
    mark = {"type": "ephemeral", "ttl": _LONG} if lasts_long else {"type": "ephemeral"}
    return {"type": "text", "text": text, _MARK: mark}


def _marks(value: object) -> Iterator[object]:
    """Yield every `cache_control` in a request, in any order. A request may be nested deeper than calls can be."""
    open_values = [value]
    while open_values:
        inner = open_values.pop()
        if isinstance(inner, Mapping):
            if inner.get(_MARK) is not None:
                yield inner[_MARK]
            open_values += (each for name, each in inner.items() if name != _MARK)
        elif isinstance(inner, list | tuple):
            open_values += inner


def _with_context(body: dict[str, Any], text: str) -> dict[str, Any]:
    """Put a text into the message of the question.

    A `cache_control` of the whole request marks its last block. If that is the question, the question gets the mark
    itself: otherwise the text, which changes with each request, would be marked.
    """
    messages = list(body["messages"])
    place = next((at for at in reversed(range(len(messages))) if _is_question(messages[at])), None)
    if not text or place is None:
        return body
    blocks = _blocks(messages[place].get("content"))
    if place == len(messages) - 1 and isinstance(blocks[-1], Mapping) and (mark := body.get(_MARK)) is not None:
        blocks[-1] = {_MARK: mark, **blocks[-1]}
        del body[_MARK]
    marked = [at for at, block in enumerate(blocks) if isinstance(block, Mapping) and block.get(_MARK) is not None]
    results = [at for at, block in enumerate(blocks) if _is_tool_result(block)]
    at = max((*marked, *results), default=-1) + 1
    messages[place] = {**messages[place], "content": [*blocks[:at], {"type": "text", "text": text}, *blocks[at:]]}
    return {**body, "messages": messages}


def _is_question(message: object) -> bool:
    return (
        isinstance(message, Mapping)
        and message.get("role") == "user"
        and bool(_blocks(message.get("content")))
        and not _is_result(message)
    )
