"""Request JSON from a model, and parse and validate its reply."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Final, Generic

from pydantic import ValidationError
from pydantic_core import from_json

from aforesaid.errors import ModelGarbled
from aforesaid.models.chat.completion import Prompt
from aforesaid.models.chat.contract import Answer, Reply, Said, Shape
from aforesaid.models.chat.schema import schema_of
from aforesaid.models.resilience import Ask, Service, only

_FENCE: Final = re.compile(r"\s*```(?:json)?[ \t]*\n(.*)\n[ \t]*```\s*", re.DOTALL | re.IGNORECASE)
_FENCE_START: Final = re.compile(r"\A\s*```(?:json)?[ \t]*\n", re.IGNORECASE)
_MOST_ERRORS: Final = 8


class StructuredCall(Generic[Shape]):
    """Requests JSON and validates it strictly. An invalid reply is sent back once, with the reason."""

    def __init__(self, inner: Service[Prompt, Reply], shape: type[Shape]) -> None:
        self._inner = inner
        self._shape = shape

    async def call(self, ask: Ask[Prompt]) -> AsyncGenerator[Answer[Shape], None]:
        """Yield the value."""
        schema = schema_of(self._shape)
        prompt = replace(ask.what, schema=schema)
        first = await only(self._inner, replace(ask, what=prompt))
        value, problem = read(first, self._shape)
        replies = [first]
        if value is None:
            told = (
                f"That was not accepted: {problem}\n"
                f"Write the whole answer again, as JSON alone, such that it fits this schema:\n{schema.full}"
            )
            again = replace(prompt, messages=(*prompt.messages, Said("assistant", first.text), Said("user", told)))
            replies.append(await only(self._inner, replace(ask, what=again)))
            value, problem = read(replies[-1], self._shape)
        if value is None:
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
        return _complete_items(reply, shape), "it was cut off because it was too long; be shorter."
    fenced = _FENCE.fullmatch(reply.text)
    try:
        return shape.model_validate_json(fenced[1] if fenced else reply.text, strict=True), ""
    except ValidationError as error:
        return None, _problems(error)


def _complete_items(reply: Reply, shape: type[Shape]) -> Shape | None:
    """Return what is complete in a reply that was cut off, if its shape allows that."""
    if not getattr(shape, "usable_when_cut", False):
        return None
    begins = _FENCE_START.sub("", reply.text)
    try:
        return shape.model_validate(from_json(begins, allow_partial=True), strict=True)
    except ValueError:  # among them ValidationError: nothing in it is complete
        return None


def _problems(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{'.'.join(str(part) for part in each['loc']) or 'the answer'}: {each['msg']}" for each in found]
    more = [f"and {len(lines) - _MOST_ERRORS} more"] if len(lines) > _MOST_ERRORS else []
    return "; ".join(lines[:_MOST_ERRORS] + more)
