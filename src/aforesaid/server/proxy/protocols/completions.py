"""OpenAI's legacy Completions: `/v1/completions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aforesaid.server.proxy.app_prompts import is_code_with_gap
from aforesaid.server.proxy.caller import NoMemory
from aforesaid.server.proxy.insertion import MemoryText, joined
from aforesaid.server.proxy.protocols.chat_completions import ChoicesReply
from aforesaid.server.proxy.protocols.protocol import Body, Endpoint, Protocol
from aforesaid.server.proxy.reply import Reply

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
        """Put what is remembered above the prompt."""
        return {**body, "prompt": joined(memory.stable, memory.for_question, _prompt(body))}

    def insert_in_question(self, body: Body, memory: MemoryText) -> dict[str, Any]:
        """Do the same: there are no roles that a model could refuse."""
        return self.insert(body, memory)

    def reply(self, body: Body, content_type: str) -> Reply:
        """Return a reader of choices."""
        del body
        return TextReply(content_type)


class TextReply(ChoicesReply):
    """Choices with a text."""

    def _text_in(self, choice: dict[str, Any], name: str) -> object:
        del name
        return choice.get("text")


def _prompt(body: Body) -> str | None:
    """Return a prompt that is one text."""
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        (prompt,) = prompt
    return prompt if isinstance(prompt, str) and prompt else None
