"""Calls to one model of one provider, through the OpenAI library."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from aforesaid.errors import ModelGarbled, ModelRefused, ModelUnavailable
from aforesaid.models.chat.api_quirks import ApiQuirks
from aforesaid.models.chat.contract import Reply, Said
from aforesaid.models.chat.schema import Schema
from aforesaid.models.client import Client
from aforesaid.models.resilience import Ask
from aforesaid.settings import Choice
from aforesaid.telemetry.tracing import current_headers

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CHARACTERS_PER_TOKEN: Final = 4

_NOT_A_REPLY: Final = "{} returned a response without a reply. If this continues, check the base_url"
_INSTRUCTION: Final = (
    "Answer with one JSON value that fits the following JSON schema, and with nothing else: no explanation before or "
    "after it.\n"
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request to a model."""

    messages: tuple[Said, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    schema: Schema | None = None
    piecewise: bool = False
    """Whether the reply is streamed."""


class Completion:
    """Calls a model, adapts to the parameters it accepts, and validates the reply."""

    def __init__(self, client: Client, choice: Choice) -> None:
        self._client = client
        self._choice = choice
        structured = client.provider.structured
        self._quirks = ApiQuirks(
            form="instructed" if structured == "instructed" else "full", words_allowed=structured != "schema"
        )

    async def call(self, ask: Ask[Prompt]) -> AsyncGenerator[Reply, None]:
        """Yield the reply, or its pieces followed by the token usage."""
        try:
            if ask.what.piecewise:
                async with aclosing(self._pieces(ask.what)) as pieces:
                    async for piece in pieces:
                        yield piece
            else:
                yield self._whole(await self._create(ask.what))
        except Exception as error:
            # Callers handle ModelError only, and the library's error texts may contain the API key.
            raise self._client.failure(error, self._choice.model) from None

    async def _create(self, prompt: Prompt) -> Any:  # noqa: ANN401 - a completion or a stream of pieces
        completions, quirks = (await self._client.open()).chat.completions, self._quirks
        from openai import APIStatusError  # noqa: PLC0415 - only programs that use a model need it

        while True:
            try:
                arguments = _arguments(self._choice.model, prompt, quirks)
                made = await completions.create(**arguments, extra_headers=current_headers())
            except APIStatusError as error:
                changed = quirks.after(error, prompt)
                if changed is None:
                    raise
                quirks = changed
            else:
                self._quirks = quirks
                return made

    def _whole(self, completion: ChatCompletion) -> Reply:
        choice = _first(completion)
        message = getattr(choice, "message", None)
        if message is None:
            raise ModelUnavailable(_NOT_A_REPLY.format(self._choice))
        text, end = getattr(message, "content", None), getattr(choice, "finish_reason", None)
        self._check_end(end, getattr(message, "refusal", None))
        if not isinstance(text, str) or not text.strip():
            raise self._empty(end)
        prompt_tokens, reply_tokens = _usage(completion)
        return Reply(text, str(self._choice), prompt_tokens, reply_tokens, cut=end == "length")

    async def _pieces(self, prompt: Prompt) -> AsyncGenerator[Reply, None]:
        model, written, end = str(self._choice), 0, None
        prompt_tokens = reply_tokens = 0
        async with await self._create(prompt) as stream:
            async for chunk in stream:
                choice = _first(chunk)
                delta = getattr(choice, "delta", None)
                end = getattr(choice, "finish_reason", None) or end
                self._check_end(end, getattr(delta, "refusal", None))
                if any(usage := _usage(chunk)):
                    prompt_tokens, reply_tokens = usage
                if isinstance(text := getattr(delta, "content", None), str) and text:
                    written += len(text)
                    yield Reply(text, model, 0, 0)
        if end is None:
            broke_off = f"{model} broke off after {written} characters"
            raise ModelUnavailable(broke_off if written else _NOT_A_REPLY.format(model))
        if not written:
            raise self._empty(end)
        yield Reply("", model, prompt_tokens, reply_tokens, cut=end == "length")

    def _check_end(self, end: object, refusal: object) -> None:
        if end == "content_filter" or (isinstance(refusal, str) and refusal):
            raise ModelRefused(f"{self._choice} declines to answer: {refusal or 'its filter stopped the reply'}")

    def _empty(self, end: object) -> ModelGarbled:
        advice = "It used up max_tokens before it began to write: raise it" if end == "length" else "Try another model"
        return ModelGarbled(f"{self._choice} wrote nothing. {advice}")


def estimate(prompt: Prompt) -> int:
    """Estimate the tokens of a prompt, to reserve them during the call."""
    return sum(len(said.content) for said in prompt.messages) // _CHARACTERS_PER_TOKEN + 1


def estimate_reply(piece: Reply) -> int:
    """Estimate the tokens of a piece, for models that do not report usage."""
    return -(-len(piece.text) // _CHARACTERS_PER_TOKEN)


def _arguments(model: str, prompt: Prompt, quirks: ApiQuirks) -> dict[str, Any]:
    messages = prompt.messages
    made: dict[str, Any] = {"model": model}
    if prompt.temperature is not None and quirks.temperature:
        made["temperature"] = prompt.temperature
    if prompt.max_tokens is not None:
        made[quirks.tokens] = prompt.max_tokens
    if prompt.piecewise:
        made["stream"] = True
        if quirks.usage:
            made["stream_options"] = {"include_usage": True}
    if (schema := prompt.schema) is not None:
        if quirks.form == "instructed":
            messages = _instructed(messages, schema)
        else:
            body = json.loads(schema.full if quirks.form == "full" else schema.plain)
            form = {"name": schema.name, "schema": body, "strict": schema.strict}
            made["response_format"] = {"type": "json_schema", "json_schema": form}
    made["messages"] = [_message(said) for said in messages]
    return made


def _instructed(messages: tuple[Said, ...], schema: Schema) -> tuple[Said, ...]:
    """Add the schema to the instructions: to the system message if there is one, else as a new first message."""
    instruction = f"{_INSTRUCTION}{schema.full}"
    if messages and messages[0].role == "system":
        first = messages[0]._replace(content=f"{messages[0].content}\n\n{instruction}")
        return (first, *messages[1:])
    return (Said("system", instruction), *messages)


def _message(said: Said) -> dict[str, str]:
    made = {"role": said.role, "content": said.content}
    if said.name is not None and _NAME.fullmatch(said.name):
        made["name"] = said.name
    return made


def _first(answer: ChatCompletion | ChatCompletionChunk) -> object:
    """Return the first choice, or None. The library does not validate responses, so any field may be missing."""
    choices = getattr(answer, "choices", None)
    return choices[0] if isinstance(choices, list) and choices else None


def _usage(answer: ChatCompletion | ChatCompletionChunk) -> tuple[int, int]:
    usage = getattr(answer, "usage", None)
    counts = (getattr(usage, "prompt_tokens", 0), getattr(usage, "completion_tokens", 0))
    prompt_tokens, reply_tokens = (count if isinstance(count, int) else 0 for count in counts)
    return prompt_tokens, reply_tokens
