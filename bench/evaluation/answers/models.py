"""The two models of a run: one answers, the other one judges. Any server with OpenAI's API will do."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Final, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from aforesaid.errors import InvalidInput, quoted
from aforesaid.models.chat import Answer, RoutedChat, open_chat
from aforesaid.models.client import plain_address
from aforesaid.models.prompts import Prompt, read_prompt
from aforesaid.settings import Choice, Provider, Route, Secret, Settings, load_settings

PROMPTS: Final = ("answer", "judge", "refusal")
_VERSION_PATH: Final = "/v1/"
"""Where the base URL ends in an address like http://localhost:8000/v1/org/model: names of models contain slashes."""


class Verdict(BaseModel):
    """What a judge writes about an answer to a question that has one."""

    model_config = ConfigDict(extra="forbid")
    reason: str = Field(max_length=2_000)
    verdict: Literal["correct", "declined", "wrong"]


class Refusal(BaseModel):
    """What a judge writes about an answer to a question about what was never said."""

    model_config = ConfigDict(extra="forbid")
    reason: str = Field(max_length=2_000)
    verdict: Literal["declined", "claimed"]


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """A model, and how it is called."""

    provider: Provider
    model: str

    @property
    def label(self) -> str:
        """The address and the name, without secrets."""
        return f"{plain_address(self.provider.base_url).rstrip('/')}/{self.model}"

    def open(self, *, parallel: int, timeout: float, max_tokens: int) -> RoutedChat:
        """Return the model, ready to be called. Retries are limited to the timeout."""
        choice = Choice(self.provider.name, self.model)
        route = Route((choice,), temperature=0.0, max_tokens=max_tokens, timeout=timeout)
        provider = replace(self.provider, concurrency=parallel)
        return open_chat(Settings(providers={provider.name: provider}, routes={"chat": route}))


def choose_model(text: str, key_variable: str | None = None) -> ChosenModel:
    """Return the model that a text names: `URL/NAME`, or `provider:name` as in the configuration.

    `key_variable` is the environment variable with the key. Raises InvalidInput.
    """
    if not text.startswith(("http://", "https://")):
        return _configured(text, key_variable)
    if _VERSION_PATH in text:
        base, _, model = text.partition(_VERSION_PATH)
        base += _VERSION_PATH.rstrip("/")
    else:
        base, _, model = text.rpartition("/")
    if not model or not urlsplit(base).hostname:
        raise InvalidInput(
            f"{quoted(plain_address(text))} names no model; write its base URL and its name, such as "
            "http://localhost:8000/v1/llama3.2"
        )
    return ChosenModel(Provider("model", base, _key(key_variable)), model)


def _configured(text: str, key_variable: str | None) -> ChosenModel:
    provider, colon, model = text.partition(":")
    if not (provider and colon and model):
        raise InvalidInput(
            f"{quoted(text)} is not a model; write URL/NAME, such as http://localhost:8000/v1/llama3.2, or a "
            "configured provider and a name, such as openai:gpt-4o-mini"
        )
    found = load_settings(overrides={"models.default": text}).providers[provider]
    return ChosenModel(found if key_variable is None else replace(found, api_key=_key(key_variable)), model)


def _key(variable: str | None) -> Secret | None:
    if variable is None:
        return None
    if not (key := os.environ.get(variable, "").strip()):
        raise InvalidInput(f"the variable {variable} is not set; it has to hold the key of the model")
    return Secret(key)


@cache
def prompt(name: str) -> Prompt:
    """Return one of the prompts."""
    return read_prompt(name, (files(__package__) / "texts" / f"{name}.md").read_text(encoding="utf-8"))


async def judge(
    model: RoutedChat, question: str, expected: str | None, answer: str
) -> Answer[Verdict] | Answer[Refusal]:
    """Ask a model whether an answer says what is expected; None: that nothing was said. Raises ModelError."""
    if expected is None:
        return await model.structure("chat", prompt("refusal").render(question=question, answer=answer), Refusal)
    messages = prompt("judge").render(question=question, expected=expected, answer=answer)
    return await model.structure("chat", messages, Verdict)


def instructions() -> str:
    """Return the system prompt of the model that answers."""
    return prompt("answer").section("system")
