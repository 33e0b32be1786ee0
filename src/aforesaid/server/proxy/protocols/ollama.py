"""Ollama's own API: `/api/chat` and `/api/generate`.

A model of Ollama can have a system prompt of its own, which Ollama uses if a request has none. So if the client sends
no system prompt, none is added: everything that is remembered goes above the question.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

from aforesaid.server.proxy.app_prompts import is_code_with_gap
from aforesaid.server.proxy.caller import NoMemory
from aforesaid.server.proxy.insertion import MemoryText, has_system, insert, insert_in_question, joined
from aforesaid.server.proxy.protocols.openai import NO_MESSAGES, Body, Endpoint, Protocol
from aforesaid.server.proxy.reply import Reply

PROVIDER: Final = "ollama"
_NO_PROMPT: Final = NoMemory("the request has no prompt")
_RAW: Final = NoMemory("a raw prompt, or code with a gap to fill in")
_IMAGE: Final = "[image]"


class _Ollama(Protocol):
    user_fields = ()
    reply_token_fields = ("options.num_predict",)
    window_field = "options.num_ctx"


class OllamaChat(_Ollama):
    """`/api/chat`."""

    route = "/api/chat"
    endpoint = Endpoint("/api/chat", at_root=True, provider=PROVIDER)

    def messages(self, body: Body) -> Sequence[object] | NoMemory:
        """Return the messages; an image leaves a word in its message."""
        messages = body.get("messages")
        return [_message(each) for each in messages] if isinstance(messages, list) and messages else NO_MESSAGES

    def insert(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        messages = body["messages"]
        return {**body, "messages": (insert if has_system(messages) else insert_in_question)(messages, memory)}

    def insert_in_question(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        return {**body, "messages": insert_in_question(body["messages"], memory)}

    def reply(self, body: Body, content_type: str) -> Reply:
        del body
        return ChatReply(content_type)


class OllamaGenerate(_Ollama):
    """`/api/generate`. The `context` of a reply lets a client go on from it."""

    route = "/api/generate"
    endpoint = Endpoint("/api/generate", at_root=True, provider=PROVIDER)

    def messages(self, body: Body) -> Sequence[object] | NoMemory:
        """Return the system prompt, and the prompt as a message of the user."""
        prompt = body.get("prompt")
        if not isinstance(prompt, str) or not prompt:
            return _NO_PROMPT
        if body.get("raw") or body.get("suffix") or is_code_with_gap(prompt):
            return _RAW
        first = [{"role": "system", "content": body["system"]}] if isinstance(body.get("system"), str) else []
        return [*first, _message({"role": "user", "content": prompt, "images": body.get("images")})]

    def previous(self, body: Body) -> str | None:
        """Return a name for the `context` of the request."""
        return _context_id(body.get("context"))

    def insert(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        if not body.get("system"):
            return {**body, "prompt": joined(memory.stable, memory.for_question, body["prompt"])}
        system = joined(body["system"], memory.stable)
        return {**body, "system": system, "prompt": joined(memory.for_question, body["prompt"])}

    def insert_in_question(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Do the same: there is no further system message that a model could refuse."""
        return self.insert(body, memory)

    def reply(self, body: Body, content_type: str) -> Reply:
        del body
        return GenerateReply(content_type)


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


def _message(message: object) -> object:
    images = message.get("images") if isinstance(message, Mapping) else None
    if not isinstance(message, Mapping) or not isinstance(images, list) or not images:
        return message
    said = message.get("content")
    words = [said] if isinstance(said, str) and said else []
    return {"role": message.get("role"), "content": "\n".join([*words, *[_IMAGE] * len(images)])}


def _context_id(context: object) -> str | None:
    """Return a name for a context, which is a list of tokens."""
    if not isinstance(context, list) or not context:
        return None
    return f"context-{blake2b(json.dumps(context).encode(), digest_size=16).hexdigest()}"
