"""Remember which parameters a model rejects, since every provider's API differs a little from OpenAI's."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from openai import APIStatusError

    from aforesaid.models.chat.completion import Prompt

Form = Literal["full", "plain", "instructed"]
"""How a schema is sent: with all its limits, with types only, or as text in the instructions."""

_ABOUT_THE_REQUEST: Final = frozenset({400, 422, 501})


@dataclass(frozen=True, slots=True)
class ApiQuirks:
    """The request features that a model supports, as far as known."""

    temperature: bool = True
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
        if prompt.piecewise and self.usage and ("stream_options" in named or "include_usage" in named):
            return replace(self, usage=False)
        if prompt.schema is not None:
            # Servers reject schemas with too many different messages to match one of them.
            if self.form == "full" and prompt.schema.plain != prompt.schema.full:
                return replace(self, form="plain")
            if self.form != "instructed" and self.words_allowed:
                return replace(self, form="instructed")
        return None
