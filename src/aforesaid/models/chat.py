"""Calls to chat models of any provider: the contract, one model behind an OpenAI-compatible API, and all of them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from aforesaid.domain.scope import Scope
from aforesaid.errors import InvalidInput, ModelGarbled, ModelRefused, ModelUnavailable
from aforesaid.extras import re
from aforesaid.models.client import Client, load_library
from aforesaid.models.prompts import Said
from aforesaid.models.resilience import (
    Ask,
    Breaker,
    BreakerState,
    Budget,
    Budgeted,
    Checked,
    ConcurrencyLimit,
    Fallback,
    MemoryLedger,
    Retry,
    RunningCalls,
    Service,
    SpendingLedger,
    only,
    wrapped,
)
from aforesaid.settings import Choice, Operation, Provider, Settings
from aforesaid.telemetry import Metrics
from aforesaid.telemetry.tracing import current_headers

if TYPE_CHECKING:
    from openai import APIStatusError
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

__all__ = ["Answer", "Chat", "Reply", "RoutedChat", "Said", "open_chat"]

Shape = TypeVar("Shape", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Reply:
    text: str
    model: str
    """The model: `provider:model`."""
    prompt_tokens: int
    reply_tokens: int
    cut: bool = False
    """Whether the reply was cut off at `max_tokens`."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[Shape]):
    """A model's reply, parsed and validated against its schema."""

    value: Shape
    model: str
    prompt_tokens: int
    reply_tokens: int


class Chat(Protocol):
    """The models of all operations, with fallbacks, limits and circuit breakers.

    Every call ends within the operation's deadline. It raises ModelError, never anything of a client library: NoModel
    where the operation is done without one, ModelUnavailable where none of the chain answers, ModelRefused where the
    configuration is at fault, ModelGarbled where what came back does not fit, SpendingLimit where the limit is reached.
    """

    async def text(
        self,
        operation: Operation,
        messages: Sequence[Said],
        *,
        scope: Scope | None = None,
        characters: int | None = None,
    ) -> Reply:
        """Return the reply. `scope` is the user whose spending limit applies.

        With `characters`, the length that is asked for, the reply is cut when it grows far beyond it. If it repeats
        itself, it is cut and asked for once more, with a penalty for repetition; ModelGarbled if that is no better.
        """

    def stream(
        self,
        operation: Operation,
        messages: Sequence[Said],
        *,
        scope: Scope | None = None,
        ended: Callable[[Reply], None] | None = None,
    ) -> AsyncGenerator[str, None]:
        """Yield the reply piece by piece. After the first piece, no other model is tried.

        `ended` is called at the end with a reply that has no text: which model wrote, and the tokens that it reported.
        """

    async def structure(
        self, operation: Operation, messages: Sequence[Said], shape: type[Shape], *, scope: Scope | None = None
    ) -> Answer[Shape]:
        """Return what the model writes, as a value of `shape`."""

    def has(self, operation: Operation) -> bool:
        """Return whether a model is configured for an operation, even if it does not respond at the moment."""

    def is_small(self, operation: Operation) -> bool:
        """Return whether the model is to be given little at a time: it is small or slow, as far as is known."""

    def states(self) -> Mapping[str, BreakerState]:
        """Return the state of each provider's circuit breaker, by provider name."""

    async def close(self) -> None:
        """Close all connections. A second call does nothing."""


Form = Literal["full", "plain", "instructed"]
"""How a schema is sent: with all its limits, with types only, or as text in the instructions."""

_ABOUT_THE_REQUEST: Final = frozenset({400, 422, 501})


@dataclass(frozen=True, slots=True)
class ApiQuirks:
    """The request features that a model supports, as far as known."""

    temperature: bool = True
    penalty: bool = True
    tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    usage: bool = True
    """Whether a stream can end with token usage."""
    form: Form = "full"
    words_allowed: bool = True
    """Whether a schema may be sent as text."""

    def after(self, error: APIStatusError, prompt: Prompt) -> ApiQuirks | None:
        """Return another way to say the same, or None where the error is not about the way it was said.

        Every way is tried once: what is returned is always further from the beginning.
        """
        if error.status_code not in _ABOUT_THE_REQUEST or error.code == "context_length_exceeded":
            return None
        named = f"{error.param or ''} {error.message}".casefold()
        if prompt.max_tokens is not None and self.tokens == "max_tokens" and "max_" in named and "tokens" in named:
            return replace(self, tokens="max_completion_tokens")
        if prompt.temperature is not None and self.temperature and "temperature" in named:
            return replace(self, temperature=False)
        if prompt.penalty is not None and self.penalty and "penalty" in named:
            return replace(self, penalty=False)
        if prompt.piecewise and self.usage and ("stream_options" in named or "include_usage" in named):
            return replace(self, usage=False)
        if prompt.schema is not None:
            # Servers reject schemas with too many different messages to match one of them.
            if self.form == "full" and prompt.schema.plain != prompt.schema.full:
                return replace(self, form="plain")
            if self.form != "instructed" and self.words_allowed:
                return replace(self, form="instructed")
        return None


_LIMITS: Final = frozenset(
    {
        *("minLength", "maxLength", "pattern", "format"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "propertyNames"),
    }
)
"""Schema keywords that local servers support, but OpenAI and others reject."""

_DROPPED: Final = frozenset({"default", "title", "discriminator", "examples", "$comment"})


@dataclass(frozen=True, slots=True)
class Schema:
    name: str
    full: str
    """The schema as JSON, with all limits."""
    plain: str
    """The schema without limits, for providers that support types only. Replies are validated anyway."""
    strict: bool
    """Whether the schema fits OpenAI's strict mode, which requires all keys to be known."""


@cache
def schema_of(shape: type[BaseModel]) -> Schema:
    whole = shape.model_json_schema()
    if "$ref" in whole:
        # A recursive shape: providers require an object at the root instead of a reference.
        whole = {**whole["$defs"][whole["$ref"].rpartition("/")[2]], "$defs": whole["$defs"]}
    full, plain = _walk(whole, lambda node: node), _walk(whole, _plain)
    return Schema(shape.__name__, json.dumps(full), json.dumps(plain), _closed(full))


def _plain(node: dict[str, Any]) -> dict[str, Any]:
    limits = [f"{key} {node.pop(key)}" for key in sorted(_LIMITS & node.keys())]
    if limits:
        node["description"] = " ".join(filter(None, (node.get("description"), f"({', '.join(limits)})")))
    return node


def _walk(node: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(node, list):
        return [_walk(item, change) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        # Strict mode wants a reference to stand alone.
        return {"$ref": node["$ref"]}
    made: dict[str, Any] = {}
    for key, value in node.items():
        if key in _DROPPED:
            continue
        if key in {"properties", "$defs"}:
            # Their keys are names, not words of the schema.
            made[key] = {name: _walk(inner, change) for name, inner in value.items()}
        elif key in {"enum", "const"}:
            made[key] = value
        else:
            made["anyOf" if key == "oneOf" else key] = _walk(value, change)
    if "properties" in made:
        made["required"] = list(made["properties"])
        made.setdefault("additionalProperties", False)
    return change(made)


def _closed(node: Any) -> bool:  # noqa: ANN401 - any JSON
    if isinstance(node, list):
        return all(_closed(item) for item in node)
    if not isinstance(node, dict):
        return True
    if node.get("type") == "object" and node.get("additionalProperties") is not False:
        return False
    return all(_closed(value) for value in node.values())


_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOKENS_PER_CHARACTER: Final = 0.75
_LEAST_TOKENS: Final = 100
"""Tokens beside those of the characters that are asked for. In Latin letters, a character is a quarter of a token."""
_FAR_TOO_LONG: Final = 1.5
_PENALTY: Final = 0.6
_CHECKED_EVERY: Final = 80
"""Characters after which a reply is looked through for repetition."""
_SAID_AGAIN: Final = 20
"""Least characters of a sentence that may not be said three times."""
_TIMES: Final = 3
_TAIL: Final = 30
_CHARACTERS_PER_TOKEN: Final = 4

_NOT_A_REPLY: Final = "{} returned a response without a reply. If this continues, check the base_url"
_INSTRUCTION: Final = (
    "Answer with one JSON value that fits the following JSON schema, and with nothing else: no explanation before or "
    "after it.\n"
)


_SMALL: Final = re.compile(r"(?<![a-z0-9.])(?:[0-4](?:\.\d+)?b|\d{2,4}m)(?![a-z0-9])", re.IGNORECASE)
"""The size in the name of a model: up to four billion parameters, as in `qwen2.5:1.5b`."""
_READ_PER_WRITTEN: Final = 6
"""Tokens that a model reads in the time in which it writes one."""
_SLOW: Final = 15
"""Tokens a second below which a model is slow. With 1.5 billion parameters it writes 5 on two cores, others 50."""
_LEAST_SECONDS: Final = 5.0
"""Seconds of answers before they tell how fast a model is."""
_FAULTS: Final = 2
"""Answers without an end, or in another form than was asked for, after which a model counts as small."""


class Pace:
    """What the answers of a model tell of it so far."""

    def __init__(self, provider: Provider, model: str) -> None:
        self._size = "small" if provider.size == "auto" and _SMALL.search(model) else provider.size
        self._seconds = self._tokens = 0.0
        self._faults = 0

    def note(self, reply: Reply, seconds: float) -> None:
        """Count an answer, or the rest of one that was streamed."""
        self._seconds += seconds
        self._tokens += reply.reply_tokens + reply.prompt_tokens / _READ_PER_WRITTEN

    def note_fault(self) -> None:
        self._faults += 1

    @property
    def is_small(self) -> bool:
        """Whether the model is small or slow: as configured, or else as its name or its answers tell."""
        if self._size != "auto":
            return self._size == "small"
        slow = self._seconds >= _LEAST_SECONDS and 0 < self._tokens < _SLOW * self._seconds
        return slow or self._faults >= _FAULTS


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request to a model."""

    messages: tuple[Said, ...]
    temperature: float | None = None
    max_tokens: int | None = None
    penalty: float | None = None
    """For words that are repeated (`frequency_penalty`)."""
    schema: Schema | None = None
    piecewise: bool = False
    """Whether the reply is streamed."""


class Completion:
    """Calls a model, adapts to the parameters it accepts, and validates the reply."""

    def __init__(self, client: Client, choice: Choice, pace: Pace) -> None:
        self._client = client
        self._choice = choice
        self._pace = pace
        structured = client.provider.structured
        self._quirks = ApiQuirks(
            form="instructed" if structured == "instructed" else "full", words_allowed=structured != "schema"
        )

    async def call(self, ask: Ask[Prompt]) -> AsyncGenerator[Reply, None]:
        """Yield the reply, or its pieces followed by the token usage."""
        began = perf_counter()
        try:
            if ask.what.piecewise:
                async with aclosing(self._pieces(ask.what)) as pieces:
                    async for piece in pieces:
                        if piece.reply_tokens:
                            self._pace.note(piece, perf_counter() - began)
                        yield piece
            else:
                completion = await self._create(ask.what)
                choice = _first(completion)
                message = getattr(choice, "message", None)
                if message is None:
                    raise ModelUnavailable(_NOT_A_REPLY.format(self._choice))
                text, end = getattr(message, "content", None), getattr(choice, "finish_reason", None)
                self._check_end(end, getattr(message, "refusal", None))
                if not isinstance(text, str) or not text.strip():
                    raise self._empty(end)
                prompt_tokens, reply_tokens = _usage(completion)
                reply = Reply(text, str(self._choice), prompt_tokens, reply_tokens, cut=end == "length")
                self._pace.note(reply, perf_counter() - began)
                yield reply
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


def repeats(text: str) -> bool:
    """Return whether a text says the same again and again: a sentence three times, or its end four times in a row."""
    sentences = Counter(sentence.strip() for sentence in re.split(r"[.!?。！？\n]+", text))
    if any(times >= _TIMES for sentence, times in sentences.items() if len(sentence) >= _SAID_AGAIN):
        return True
    end = text[-_TAIL:]
    return len(end) == _TAIL and text.count(end[-_SAID_AGAIN:]) > _TIMES


_TEXT_IN_JSON: Final = re.compile(r'"((?:[^"\\]|\\.){20,})(?:"|\Z)', re.DOTALL)
_MOST_PER_TOKEN: Final = 10
"""Characters per token of a reply; a server that sends more does not keep to `max_tokens`."""
_MOST_ALIKE: Final = 20
"""Times that a JSON text has the same 30 characters, at most: once in each of a dozen notes."""
_SAME: Final = 3
"""Different characters, at most, in the end of a text that does not end: spaces, or digits and commas."""


def repeats_in_json(text: str) -> bool:
    """Return whether a JSON text says the same again and again: one of its texts three times, in one of them, or signs.

    Its keys are repeated in every JSON text, so only longer texts count.
    """
    said = _TEXT_IN_JSON.findall(text)
    if any(times >= _TIMES for times in Counter(said).values()) or (said and repeats(said[-1])):
        return True
    if len(text) > _TAIL and text.count(text[-_TAIL:]) > _MOST_ALIKE:
        return True
    return len(text) > _CHECKED_EVERY and len(set(text[-_CHECKED_EVERY:])) <= _SAME


@dataclass(frozen=True)
class WholeReply:
    """Streams a reply, returns it in one piece, and cuts one that repeats itself."""

    inner: Service[Prompt, Reply]
    pace: Pace

    async def call(self, ask: Ask[Prompt]) -> AsyncGenerator[Reply, None]:
        text, checked, last = "", 0, None
        async with aclosing(self.inner.call(replace(ask, what=replace(ask.what, piecewise=True)))) as pieces:
            async for last in pieces:
                text += last.text
                if len(text) - checked >= _CHECKED_EVERY:
                    checked = len(text)
                    endless = len(text) > _MOST_PER_TOKEN * (ask.what.max_tokens or inf)
                    if endless or repeats_in_json(text):
                        self.pace.note_fault()
                        yield replace(last, text=text, cut=True)
                        return
        if last is not None:
            yield replace(last, text=text)


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
    if prompt.penalty is not None and quirks.penalty:
        made["frequency_penalty"] = prompt.penalty
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


_FENCE: Final = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL | re.IGNORECASE)
_FENCE_START: Final = re.compile(r"\A\s*```(?:json)?[ \t]*\n", re.IGNORECASE)
_MOST_ERRORS: Final = 8


@dataclass(frozen=True)
class StructuredCall(Generic[Shape]):
    """Requests JSON and validates it strictly. An invalid reply is sent back once, with the reason."""

    inner: Service[Prompt, Reply]
    shape: type[Shape]
    pace: Pace

    async def call(self, ask: Ask[Prompt]) -> AsyncGenerator[Answer[Shape], None]:
        schema = schema_of(self.shape)
        prompt = replace(ask.what, schema=schema)
        first = await only(self.inner, replace(ask, what=prompt))
        value, problem = read(first, self.shape)
        replies = [first]
        if value is None:
            told = (
                f"That was not accepted: {problem}\n"
                f"Write the whole answer again, as JSON alone, such that it fits this schema:\n{schema.full}"
            )
            again = replace(prompt, messages=(*prompt.messages, Said("assistant", first.text), Said("user", told)))
            again = replace(again, penalty=_PENALTY if first.cut else None)
            replies.append(await only(self.inner, replace(ask, what=again)))
            value, problem = read(replies[-1], self.shape)
        if value is None:
            self.pace.note_fault()
            raise ModelGarbled(
                f"{first.model} did not answer with the JSON that was asked for ({schema.name}), also after it was "
                f"told what was wrong: {problem}"
            )
        prompt_tokens = sum(reply.prompt_tokens for reply in replies)
        reply_tokens = sum(reply.reply_tokens for reply in replies)
        yield Answer(value, replies[-1].model, prompt_tokens, reply_tokens)


def read(reply: Reply, shape: type[Shape]) -> tuple[Shape | None, str]:
    """Return the value in a reply, or None and the error. A code fence around the JSON is removed.

    Of a reply that was cut off, the complete items count if the shape has `usable_when_cut`.
    """
    if reply.cut:
        value = None
        if getattr(shape, "usable_when_cut", False):
            with suppress(ValueError):  # among them ValidationError: nothing in it is complete
                begun = from_json(_FENCE_START.sub("", reply.text), allow_partial=True)
                value = shape.model_validate(begun, strict=True)
            if value is not None and not any(dict(value).values()):
                value = None  # it said nothing before it was cut
        return value, "it was cut off because it was too long; be shorter."
    fenced = _FENCE.fullmatch(reply.text)
    try:
        return shape.model_validate_json(fenced[1] if fenced else reply.text, strict=True), ""
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        lines = [f"{'.'.join(str(part) for part in each['loc']) or 'the answer'}: {each['msg']}" for each in found]
        more = [f"and {len(lines) - _MOST_ERRORS} more"] if len(lines) > _MOST_ERRORS else []
        return None, "; ".join(lines[:_MOST_ERRORS] + more)


def open_chat(
    settings: Settings, *, ledger: SpendingLedger | None = None, metrics: Metrics | None = None
) -> RoutedChat:
    """Return the models that are configured. Nothing is connected before the first call.

    `ledger` is where spending is counted; without one it is counted until the process ends.
    """
    return RoutedChat(settings, ledger or MemoryLedger(), metrics or Metrics())


class RoutedChat:
    """A `Chat` over OpenAI-compatible providers."""

    def __init__(self, settings: Settings, ledger: SpendingLedger, metrics: Metrics) -> None:
        self.metrics = metrics
        self._settings = settings
        self._calls = RunningCalls()
        self._budget = Budget(settings.spending, ledger)
        self._clients: dict[str, Client] = {}
        self._limits: dict[str, ConcurrencyLimit] = {}
        self._breakers: dict[str, Breaker] = {}
        self._models: dict[Choice, Service[Prompt, Reply]] = {}
        self._whole: dict[Choice, Service[Prompt, Reply]] = {}
        """The same, for replies that are used only when they are complete."""
        self._paces: dict[Choice, Pace] = {}
        for operation, route in settings.routes.items():
            for choice in route.chain if operation != "embed" else ():
                self._add(operation, choice)

    async def text(
        self,
        operation: Operation,
        messages: Sequence[Said],
        *,
        scope: Scope | None = None,
        characters: int | None = None,
    ) -> Reply:
        async with self._calls.running():
            if characters is None:
                return await only(Fallback(self._chain(operation)), await self._ask(operation, messages, scope))
            ask = await self._ask(operation, messages, scope, piecewise=True)
            tokens = min(ask.what.max_tokens or inf, _LEAST_TOKENS + characters * _TOKENS_PER_CHARACTER)
            first = await self._of_length(
                operation, replace(ask, what=replace(ask.what, max_tokens=int(tokens))), characters
            )
            if first is not None:
                return first
            # With the usual limit: a model that thinks before it writes may have used up the other one.
            again = await self._of_length(operation, replace(ask, what=replace(ask.what, penalty=_PENALTY)), characters)
            if again is None:
                raise ModelGarbled(f"the model was asked to {operation} and wrote nothing, or the same again and again")
            return again

    async def _of_length(self, operation: Operation, ask: Ask[Prompt], characters: int) -> Reply | None:
        """Return a reply that ends when it is far too long; None for one that is empty or repeats itself."""
        text, checked, last = "", 0, None
        try:
            async with aclosing(Fallback(self._chain(operation)).call(ask)) as pieces:
                async for last in pieces:
                    text += last.text
                    if len(text) - checked >= _CHECKED_EVERY:
                        checked = len(text)
                        if repeats(text):
                            self._paces[self._choices(operation)[0]].note_fault()
                            return None
                    if len(text) > characters * _FAR_TOO_LONG:
                        return replace(last, text=text, cut=True)
        except ModelGarbled:
            return None
        return None if last is None or repeats(text) else replace(last, text=text)

    async def stream(
        self,
        operation: Operation,
        messages: Sequence[Said],
        *,
        scope: Scope | None = None,
        ended: Callable[[Reply], None] | None = None,
    ) -> AsyncGenerator[str, None]:
        ask = await self._ask(operation, messages, scope, piecewise=True)
        async with aclosing(Fallback(self._chain(operation)).call(ask)) as pieces:
            while True:
                # The timeout covers waiting for the model only, not the caller's work between two pieces.
                async with self._calls.running():
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                if piece.text:
                    yield piece.text
                elif ended is not None:
                    ended(piece)

    async def structure(
        self, operation: Operation, messages: Sequence[Said], shape: type[Shape], *, scope: Scope | None = None
    ) -> Answer[Shape]:
        choices = self._choices(operation)
        chain = [StructuredCall(self._whole[choice], shape, self._paces[choice]) for choice in choices]
        async with self._calls.running():
            return await only(Fallback(chain), await self._ask(operation, messages, scope))

    def has(self, operation: Operation) -> bool:
        return bool(self._settings.route(operation).chain)

    def is_small(self, operation: Operation) -> bool:
        return any(self._paces[choice].is_small for choice in self._settings.route(operation).chain[:1])

    def states(self) -> dict[str, BreakerState]:
        return {name: breaker.state() for name, breaker in self._breakers.items()}

    async def close(self) -> None:
        self._calls.close()
        for client in self._clients.values():
            await client.close()

    def _chain(self, operation: Operation) -> list[Service[Prompt, Reply]]:
        return [self._models[choice] for choice in self._choices(operation)]

    def _choices(self, operation: Operation) -> tuple[Choice, ...]:
        if operation == "embed":
            raise InvalidInput("'embed' is an embedding model and cannot write replies")
        return self._settings.route(operation).chain

    async def _ask(
        self, operation: Operation, messages: Sequence[Said], scope: Scope | None, *, piecewise: bool = False
    ) -> Ask[Prompt]:
        route = self._settings.route(operation)
        if route.chain:
            await load_library()
        end = asyncio.get_running_loop().time() + route.timeout
        prompt = Prompt(tuple(messages), route.temperature, route.max_tokens, piecewise=piecewise)
        return Ask(operation, prompt, answer_by=end, over_by=end, scope=scope)

    def _add(self, operation: Operation, choice: Choice) -> None:
        provider = self._settings.providers.get(choice.provider)
        if provider is None:
            raise InvalidInput(f"{operation!r} is to use {choice}, but no provider {choice.provider!r} is configured")
        if choice in self._models:
            return
        resilience = self._settings.resilience
        client = self._clients.setdefault(provider.name, Client(provider))
        limit = self._limits.setdefault(provider.name, ConcurrencyLimit(provider.name, provider.concurrency))
        breaker = self._breakers.setdefault(provider.name, Breaker(provider.name, resilience))
        pace = self._paces[choice] = Pace(provider, choice.model)
        model: Service[Prompt, Reply] = Completion(client, choice, pace)
        model = wrapped(
            model,
            str(choice),
            breaker,
            limit,
            resilience,
            self.metrics,
            lambda inner: Budgeted(inner, self._budget, estimate, estimate_reply),
        )
        # Checked a second time, before queueing: calls to a provider that is down should cost almost nothing.
        self._models[choice] = Checked(Retry(model, resilience.attempts), breaker)
        self._whole[choice] = Checked(Retry(WholeReply(model, pace), resilience.attempts), breaker)
