"""What a model turned out not to accept. Each provider's API differs a little from OpenAI's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from openai import APIStatusError

    from aforesaid.models.chat.completion import Prompt

Form = Literal["full", "plain", "instructed"]
"""How a schema is sent: with all its limits, with types alone, or in words."""

_ABOUT_THE_REQUEST: Final = frozenset({400, 422, 501})


@dataclass(frozen=True, slots=True)
class ApiQuirks:
    """How to talk to a model."""

    temperature: bool = True
    tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    usage: bool = True
    """Whether a stream can end with what it cost."""
    form: Form = "full"
    words_allowed: bool = True
    """Whether a schema may go in words."""

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
        if prompt.piecewise and self.usage and ("stream_options" in named or "include_usage" in named):
            return replace(self, usage=False)
        if prompt.schema is not None:
            # Servers refuse schemas in too many words to look for one of them.
            if self.form == "full" and prompt.schema.plain != prompt.schema.full:
                return replace(self, form="plain")
            if self.form != "instructed" and self.words_allowed:
                return replace(self, form="instructed")
        return None
