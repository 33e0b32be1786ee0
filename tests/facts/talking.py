"""Helpers for tests of facts and memories."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import aforesaid
from aforesaid.memory import Connecting, Memory, UserMemory
from aforesaid.models.embed import Embedder
from aforesaid.settings import Settings
from aforesaid.testing import Request, ScriptedModel

THURSDAY = datetime(2026, 3, 5, 12, 0, tzinfo=UTC)


def connect(
    location: str = ":memory:",
    *,
    scripted: ScriptedModel | None = None,
    embedder: str | Embedder = "none",
    **keys: Any,  # noqa: ANN401
) -> Connecting:
    """Open a memory that summarises nothing, with or without a model."""
    settings: dict[str, object] = {}
    if scripted is not None:
        settings = {
            "providers.scripted.base_url": scripted.base_url,
            "models.default": "scripted:scripted",
            "resilience.attempts": 1,
        }
    return aforesaid.connect(
        location, profile={"summaries": "none", **keys}, embedder=embedder, settings=settings or Settings()
    )


async def say(user: UserMemory, *texts: str, at: datetime = THURSDAY, reply: str | None = None, **more: Any) -> None:  # noqa: ANN401
    """Add a message and a reply of the assistant."""
    for text in texts:
        await user.add("user", text, at=at, **more)
        if reply is not None:
            await user.add("assistant", reply)


async def texts(user: UserMemory, **which: Any) -> list[str]:  # noqa: ANN401
    return [memory.text for memory in await user.memories(**which)]


def extraction(*notes: dict[str, Any]) -> dict[str, Any]:
    """The reply of a model to an extraction, of notes about Ann that rest on the first message."""
    return {"notes": [{"from": [1], "about": "Ann", "kind": "fact", **note} for note in notes]}


def asked_for(request: Request) -> str:
    """Return the operation of a prompt."""
    system = str(request.messages[0]["content"])
    for words, name in (
        ("notes about the person", "extract"),
        ("with the fact in it", "remember"),
        ("what is to be forgotten", "forget"),
        ("Merge them into one text", "portrait"),
    ):
        if words in system:
            return name
    return "other"


Answers = dict[str, Callable[[Request], Any] | Sequence[Any]]


def model(answers: Answers) -> ScriptedModel:
    """A model that answers each operation in its own way: one after the other, or by a function of the request."""
    lists = {name: list(each) for name, each in answers.items() if not callable(each)}

    def script(request: Request) -> Any:  # noqa: ANN401
        name = asked_for(request)
        answer = answers.get(name)
        if callable(answer):
            return answer(request)
        if lists.get(name):
            return lists[name].pop(0)
        return json.dumps({"notes": []}) if name == "extract" else "nothing"

    return ScriptedModel(script)


def asked(scripted: ScriptedModel, name: str) -> list[Request]:
    return [request for request in scripted.requests if asked_for(request) == name]


def numbered(request: Request) -> list[tuple[str | None, str]]:
    """Return the messages that a model was shown, each with its number; those that are only context have none."""
    shown = re.findall(r"^(?:\[(\d+)\]|-) [^:]*: (.*)$", str(request.messages[1]["content"]), re.MULTILINE)
    return [(number or None, text) for number, text in shown]


class paused:  # noqa: N801 - reads as a word
    """Disable background work during the block."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def __aenter__(self) -> None:
        self._nudge = self._memory._services.upkeep.nudge
        self._memory._services.upkeep.nudge = lambda within_seconds=0.0: None  # type: ignore[method-assign]  # noqa: ARG005 - as the method

    async def __aexit__(self, *_: object) -> None:
        self._memory._services.upkeep.nudge = self._nudge  # type: ignore[method-assign]


__all__ = [
    "THURSDAY",
    "Memory",
    "asked",
    "asked_for",
    "connect",
    "extraction",
    "model",
    "numbered",
    "paused",
    "say",
    "texts",
]
