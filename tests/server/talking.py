"""Official OpenAI clients that talk through the proxy to a scripted model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from aforesaid.domain.checks import Within
from aforesaid.domain.message import Message
from aforesaid.models.embed import Embedder
from aforesaid.testing import ScriptedModel
from server.serving import Live, live


class Talk:
    """A server, the model behind it, and clients of it."""

    def __init__(self, server: Live, model: ScriptedModel) -> None:
        self.server = server
        self.model = model
        self.key = server.key()

    def client(self, key: str | None = None, **headers: str) -> OpenAI:
        return OpenAI(
            api_key=key or self.key, base_url=f"{self.server.address}/v1", max_retries=0, default_headers=headers
        )

    def log(self, user: str = "ann", space: str = "default", thread: str | None = None) -> list[str]:
        """All that is stored of a user, or of one thread, once nothing is being stored any more."""
        return [_line(each) for each in self.stored(user, space, thread)]

    def stored(self, user: str = "ann", space: str = "default", thread: str | None = None) -> list[Message]:
        eventually(lambda: not self.server.served._finishing)
        person = self.server.served.memory.user(user, space=space, thread=thread)
        within: Within = "user" if thread is None else "thread"
        return self.server.run(person.history(1_000, within=within))

    def versions(self, request: pytest.FixtureRequest, user: str = "ann") -> list[str]:
        """All that is stored of a user in the space of a test, with the older versions of messages."""
        person = self.server.served.memory.user(user, space=request.node.name[:200])
        return [_line(each) for each in self.server.run(person.history(1_000, versions=True))]

    @property
    def last(self) -> list[dict[str, Any]]:
        """The messages that the model was sent last."""
        return self.model.requests[-1].messages


def _line(message: Message) -> str:
    return f"{message.role}: {message.text}"


@contextmanager
def talking(
    script: Any = (),  # noqa: ANN401 - a script
    *,
    location: str | Path = ":memory:",
    embedder: str | Embedder = "deterministic",
) -> Iterator[Talk]:
    # The model behind the proxy has no other work to do: what is learned is learned without one.
    with ScriptedModel(script, api_key="upstream-key-of-the-provider") as model:
        chosen = model.settings()
        only_chat = replace(chosen, routes={"chat": chosen.routes["chat"]})
        with live(location, settings=only_chat, embedder=embedder) as server:
            yield Talk(server, model)


def log_of(talk: Talk, request: pytest.FixtureRequest, user: str = "ann", thread: str | None = None) -> list[str]:
    return talk.log(user, request.node.name[:200], thread)


def eventually(look: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    until = time.monotonic() + 60
    while not look():
        assert time.monotonic() < until, "it never became so"
        time.sleep(0.02)


def ask(client: OpenAI, *messages: Any, user: str = "ann", **more: Any) -> str:  # noqa: ANN401
    said = [{"role": "user", "content": each} if isinstance(each, str) else each for each in messages]
    answer = client.chat.completions.create(model="gpt-4o-mini", messages=said, user=user, **more)  # type: ignore[arg-type]
    return str(answer.choices[0].message.content)


def hang_up_after_two_words(client: OpenAI, question: str, user: str = "ann") -> str:
    """Ask for a stream and close it early. Return what had come until then."""
    stream = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": question}], stream=True, user=user
    )
    heard = ""
    for chunk in stream:
        heard += chunk.choices[0].delta.content or ""
        if len(heard.split()) == 2:
            break
    stream.close()
    return heard


class Chat:
    """A chat as an app keeps it: everything so far is sent with each question."""

    def __init__(self, client: OpenAI, system: str | None = None) -> None:
        self.client = client
        self.system = system
        self.messages: list[dict[str, Any]] = []

    def say(self, text: str) -> str:
        self.messages.append({"role": "user", "content": text})
        return self.answer()

    def answer(self, last: int | None = None) -> str:
        """Ask for an answer to what was said, with the last so many messages alone if that is said."""
        sent = self.messages if last is None else self.messages[-last:]
        first = [] if self.system is None else [{"role": "system", "content": self.system}]
        heard = ask(self.client, *first, *sent)
        self.messages.append({"role": "assistant", "content": heard})
        return heard

    def regenerate(self) -> str:
        del self.messages[-1]
        return self.answer()

    def edit(self, text: str) -> str:
        del self.messages[-2:]
        return self.say(text)

    @property
    def lines(self) -> list[str]:
        return [f"{each['role']}: {each['content']}" for each in self.messages]
