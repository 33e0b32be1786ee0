"""The protocols that the proxy speaks: three of OpenAI, Messages of Anthropic, and two of Ollama."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, TypeGuard

from aforesaid.extras import re
from aforesaid.server.proxy.app_prompts import is_code_with_gap, own_words
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
    reader: ClassVar[type[Reply]]
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

    def insert_in_question(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Return the same for a model that refuses what `insert` returns: in the message of the question.

        By default, `insert` adds no message that a model could refuse.
        """
        return self.insert(body, memory)

    def reply(self, body: Body, content_type: str) -> Reply:
        """Return a reader of the provider's reply to a request."""
        del body
        return self.reader(content_type)

    def previous(self, body: Body) -> str | None:
        """Return the id of the reply that a request goes on from, if it names one instead of sending the history."""
        del body
        return None


NO_MESSAGES: Final = NoMemory("the request has no list of messages")


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


class ChatCompletions(Protocol):
    """Chat Completions. Its messages are the form that the memory works with."""

    route = "/v1/chat/completions"
    endpoint = Endpoint("/chat/completions")
    reader: ClassVar[type[Reply]] = ChoicesReply

    def messages(self, body: Body) -> Sequence[object] | NoMemory:
        messages = body.get("messages")
        return messages if isinstance(messages, list) else NO_MESSAGES

    def insert(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        return {**body, "messages": insert(body["messages"], memory)}

    def insert_in_question(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        return {**body, "messages": insert_in_question(body["messages"], memory)}


_NO_PROMPT: Final = NoMemory("the request has no prompt that is one text")
_NO_QUESTION: Final = NoMemory("code with a gap to fill in, or a prompt that the reply repeats")


class TextReply(ChoicesReply):
    def _text_in(self, choice: dict[str, Any], name: str) -> object:
        del name
        return choice.get("text")


class Completions(Protocol):
    """Completions. The prompt is what the user says, and its completion is the answer."""

    route = "/v1/completions"
    endpoint = Endpoint("/completions")
    reader = TextReply

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


def _prompt(body: Body) -> str | None:
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        (prompt,) = prompt
    return prompt if isinstance(prompt, str) and prompt else None


NO_INPUT: Final = NoMemory("the request has no input")
_INPUT_TEXT: Final = "input_text"
_COMPLETE: Final = ("response.completed", "response.incomplete")


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


class Responses(Protocol):
    """Responses. `store` concerns what the provider stores: the memory works the same with and without it."""

    route = "/v1/responses"
    endpoint = Endpoint("/responses")
    reader = ResponseReply
    chat_field = "conversation"
    reply_token_fields = ("max_output_tokens",)

    def messages(self, body: Body) -> Sequence[object] | NoMemory:
        """Return the instructions and the messages among the items; results of tools are messages of a tool."""
        given = body.get("input")
        if not isinstance(given, str | list):
            return NO_INPUT
        prompt = body.get("instructions")
        first = [{"role": "system", "content": prompt}] if isinstance(prompt, str) else []
        return [*first, *(message for item in _items(given) if (message := _item_message(item)) is not None)]

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
            changed = {**body, "input": insert(items, memory._replace(stable=""), _INPUT_TEXT)}
            return _instructed(changed, memory.stable)
        return {**body, "input": insert(items, memory, _INPUT_TEXT)}

    def insert_in_question(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Put what is chosen for the question above it; all of it, if the client sends no instructions."""
        prompt = body.get("instructions")
        above = joined("" if prompt else memory.stable, memory.for_question)
        changed = {**body, "input": above_question(_items(body["input"]), above, _INPUT_TEXT)}
        return _instructed(changed, memory.stable) if prompt else changed


def _instructed(body: Body, *added: str) -> dict[str, Any]:
    text = joined(body.get("instructions"), *added)
    return {**body, "instructions": text} if text else dict(body)


def _items(given: object) -> list[object]:
    """Return the input as items. A text is a message of the user."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return list(given) if isinstance(given, list) else []


def _item_message(item: object) -> Mapping[str, object] | None:
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


ANTHROPIC: Final = "anthropic"
_MARK: Final = "cache_control"
_MOST_MARKS: Final = 4
"""Blocks with a `cache_control` that a request may have."""
_LONG: Final = "1h"
_INPUT_TOKENS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""Tokens of a cached prompt are counted apart there, and are part of the request too."""
_PROBE: Final = NoMemory("a request for one token, by which a program checks that it has access")


class Messages(Protocol):
    """Anthropic's Messages. `max_tokens` is required there and says little about the reply: it gets no room of its own.

    A prompt is cached up to the blocks that have a `cache_control`, at most four of them. What is remembered goes
    where it keeps those caches valid: the stable part at the end of the system prompt, with a `cache_control` of its
    own; what is chosen for the question into the question's message, after the block that the client marks, or else
    before the question.
    """

    route = "/v1/messages"
    endpoint = Endpoint("/messages", key_header=X_API_KEY, provider=ANTHROPIC)
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

    def previous(self, body: Body) -> str | None:
        """Return the id of the message that a `thread` of the provider goes on from: it has the history."""
        found = value_at(body, "thread.previous_message_id")
        return found if isinstance(found, str) and found else None

    def reply(self, body: Body, content_type: str) -> Reply:
        return MessageReply(content_type, _prefill(body), in_thread=body.get("thread") is not None)


class MessageReply(Reply):
    """A message, or the events of one. Its text goes on from the `prefill`, the begin that the client gave it."""

    def __init__(self, content_type: str, prefill: str = "", *, in_thread: bool = False) -> None:
        """With `in_thread`, the next request may name this message instead of sending it: its id and calls are read."""
        super().__init__(content_type)
        self._prefill = prefill
        self._in_thread = in_thread
        self._call: Mapping[str, Any] | None = None
        """The call that comes, whose arguments come in pieces."""
        self._arguments: list[str] = []

    def texts(self) -> list[str]:
        said = "".join(super().texts())
        return [self._prefill + said] if said else []

    def _read_event(self, event: object) -> None:
        if not isinstance(event, Mapping):
            return
        kind, delta, begun = event.get("type"), event.get("delta"), event.get("message")
        usage = (begun if isinstance(begun, Mapping) else event).get("usage")
        self._read_usage(usage, _INPUT_TOKENS, "output_tokens")
        if self._in_thread and isinstance(begun, Mapping):
            self._read_id(begun)
        if kind == "content_block_start" and _is_call(block := event.get("content_block")):
            self._call, self._arguments = block, []
        elif kind == "content_block_stop" and self._call is not None:
            self._read_call(self._call, "".join(self._arguments))
            self._call = None
        elif kind == "content_block_delta" and isinstance(delta, Mapping):
            self._add(event.get("index", 0), delta.get("text"))
            self._arguments += [piece] if isinstance(piece := delta.get("partial_json"), str) else []
        elif kind == "message_delta" and isinstance(delta, Mapping):
            self._finished = self._finished or bool(delta.get("stop_reason"))
        elif kind == "message_stop":
            self.ended = True

    def _read_whole(self, answer: object) -> None:
        if isinstance(answer, Mapping):
            self._read_usage(answer.get("usage"), _INPUT_TOKENS, "output_tokens")
            self._add(0, _answer_text(answer.get("content")))
            if self._in_thread:
                self._read_id(answer)
            for block in _blocks(answer.get("content")):
                if _is_call(block):
                    self._read_call(block, block.get("input"))

    def _read_call(self, block: Mapping[str, Any], arguments: object) -> None:
        self.calls.append(call_of(len(self.calls), block.get("name"), arguments, block.get("id")))


def _is_call(block: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(block, Mapping) and block.get("type") == "tool_use"


def _messages(message: object) -> list[object]:
    """Return a message as messages of Chat Completions: each result of a tool is one of its own."""
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(message, Mapping) or not isinstance(content, list):
        return [message]
    if message.get("role") == "assistant":
        calls = [
            {"id": block.get("id"), "function": {"name": block.get("name"), "arguments": block.get("input")}}
            for block in content
            if _is_call(block)
        ]
        return [{"role": "assistant", "content": _answer_text(content), "tool_calls": calls}]
    said = [block for block in content if not _is_of_program(block)]
    results: list[object] = [
        {"role": "tool", "tool_call_id": block.get("tool_use_id"), "content": block.get("content")}
        for block in said
        if _is_tool_result(block)
    ]
    rest = [block for block in said if not _is_tool_result(block)]
    return results if results and not rest else [*results, {**message, "content": rest}]


def _answer_text(content: object) -> str:
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
    return _answer_text(last.get("content")) if isinstance(last, Mapping) and last.get("role") == "assistant" else ""


def _is_tool_result(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "tool_result"


def _is_of_program(block: object) -> bool:
    """Return whether a program wrote all of a block, such as a reminder."""
    text = block.get("text") if isinstance(block, Mapping) else None
    return isinstance(text, str) and not own_words(text).strip()


def _blocks(content: object) -> list[Any]:
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
    if not isinstance(message, Mapping) or message.get("role") != "user":
        return False
    return not all(map(_is_tool_result, _blocks(message.get("content"))))


OLLAMA: Final = "ollama"
_NOTHING_ASKED: Final = NoMemory("the request has no prompt")
_RAW: Final = NoMemory("a raw prompt, or code with a gap to fill in")
_IMAGE: Final = "[image]"


class _OllamaReply(Reply):
    """JSON objects of which the last one is `done`."""

    def _read_event(self, event: object) -> None:
        self._read_whole(event)
        self.ended = self.ended or (isinstance(event, Mapping) and event.get("done") is True)

    def _read_whole(self, answer: object) -> None:
        if isinstance(answer, Mapping):
            self._add(0, self._piece(answer))
            self._read_usage(answer, ("prompt_eval_count",), "eval_count")
            self.id = self.id or _context_id(answer.get("context"))

    def _piece(self, answer: Mapping[str, Any]) -> object:
        raise NotImplementedError


class ChatReply(_OllamaReply):
    def _piece(self, answer: Mapping[str, Any]) -> object:
        message = answer.get("message")
        return message.get("content") if isinstance(message, Mapping) else None


class GenerateReply(_OllamaReply):
    def _piece(self, answer: Mapping[str, Any]) -> object:
        return answer.get("response")


class _Ollama(Protocol):
    """Ollama's own API.

    A model of Ollama can have a system prompt of its own, which Ollama uses if a request has none. So if the client
    sends no system prompt, none is added: everything that is remembered goes above the question.
    """

    user_fields = ()
    reply_token_fields = ("options.num_predict",)
    window_field = "options.num_ctx"


class OllamaChat(_Ollama, ChatCompletions):
    """`/api/chat`."""

    route = "/api/chat"
    endpoint = Endpoint("/api/chat", at_root=True, provider=OLLAMA)
    reader = ChatReply

    def messages(self, body: Body) -> Sequence[object] | NoMemory:
        """Return the messages; an image leaves a word in its message."""
        messages = body.get("messages")
        return [_with_images(each) for each in messages] if isinstance(messages, list) and messages else NO_MESSAGES

    def insert(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        messages = body["messages"]
        return {**body, "messages": (insert if has_system(messages) else insert_in_question)(messages, memory)}


class OllamaGenerate(_Ollama):
    """`/api/generate`. The `context` of a reply lets a client go on from it."""

    route = "/api/generate"
    endpoint = Endpoint("/api/generate", at_root=True, provider=OLLAMA)
    reader = GenerateReply

    def messages(self, body: Body) -> Sequence[object] | NoMemory:
        """Return the system prompt, and the prompt as a message of the user."""
        prompt = body.get("prompt")
        if not isinstance(prompt, str) or not prompt:
            return _NOTHING_ASKED
        if body.get("raw") or body.get("suffix") or is_code_with_gap(prompt):
            return _RAW
        first = [{"role": "system", "content": body["system"]}] if isinstance(body.get("system"), str) else []
        return [*first, _with_images({"role": "user", "content": prompt, "images": body.get("images")})]

    def previous(self, body: Body) -> str | None:
        """Return a name for the `context` of the request."""
        return _context_id(body.get("context"))

    def insert(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        if not body.get("system"):
            return {**body, "prompt": joined(memory.stable, memory.for_question, body["prompt"])}
        system = joined(body["system"], memory.stable)
        return {**body, "system": system, "prompt": joined(memory.for_question, body["prompt"])}


def _with_images(message: object) -> object:
    images = message.get("images") if isinstance(message, Mapping) else None
    if not isinstance(message, Mapping) or not isinstance(images, list) or not images:
        return message
    said = message.get("content")
    words = [said] if isinstance(said, str) and said else []
    return {"role": message.get("role"), "content": "\n".join([*words, *[_IMAGE] * len(images)])}


def _context_id(context: object) -> str | None:
    if not isinstance(context, list) or not context:
        return None
    return f"context-{blake2b(json.dumps(context).encode(), digest_size=16).hexdigest()}"


PROTOCOLS: Final[tuple[Protocol, ...]] = (
    ChatCompletions(),
    Responses(),
    Completions(),
    Messages(),
    OllamaChat(),
    OllamaGenerate(),
)
