"""The official clients for JavaScript, unmodified, through the proxy to a scripted model."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aforesaid.testing import Request, ScriptedModel, Writes, faults
from server.npm import installed_packages, run_program
from server.serving import live

PROGRAMS = Path(__file__).parent / "node"
PACKAGES = ("openai@6", "@anthropic-ai/sdk@0", "ollama@0")
FEATURES = ("memory", "streaming", "hang-up", "tools", "provider's errors", "own errors", "model list")


@pytest.fixture(scope="module")
def installed() -> Path:
    """A folder with the npm packages."""
    return installed_packages("npm-clients", *PACKAGES)


def script(asked: Request) -> Any:  # noqa: ANN401
    text = asked.question
    if "be overloaded" in text:
        return faults.TooManyRequests(1)
    if "use the tool" in text:
        return Writes("", tools={"weather": {"city": "Berlin"}})
    if "parrot called?" in text:
        return "Rio" if "Rio" in json.dumps(dict(asked.body)) else "I do not know"
    return "Once upon a time there was a very long story." if "story" in text else f"You said: {text}"


@pytest.mark.client("Chat Completions", "openai (JavaScript)", *FEATURES)
@pytest.mark.client("Responses", "openai (JavaScript)", *FEATURES)
@pytest.mark.client("Messages", "@anthropic-ai/sdk (JavaScript)", *FEATURES)
@pytest.mark.client("Ollama", "ollama (JavaScript)", *FEATURES)
@pytest.mark.parametrize("program", ["talk", "talk_responses", "talk_messages", "talk_ollama"])
def test_the_clients_for_javascript_have_a_memory_too(installed: Path, tmp_path: Path, program: str) -> None:
    with ScriptedModel(script) as model:
        chosen = model.settings()
        settings = replace(chosen, routes={"chat": chosen.routes["chat"]})
        with live(tmp_path / "memory.db", settings=settings) as server:
            ran = run_program(installed, PROGRAMS / f"{program}.mjs", server.address, server.key(), "ak_wrong")
            assert ran.returncode == 0, ran.stderr
            seen = json.loads(ran.stdout)
            ann = server.served.memory.user("ann")
            until = time.monotonic() + 60
            while "Once" not in (log := [each.text for each in server.run(ann.history())])[-1]:
                assert time.monotonic() < until, log
                time.sleep(0.02)
    assert seen["first"] == "You said: My parrot is called Rio."
    assert seen["second"] == "Rio", "the second conversation knows what the first one said"
    assert seen["streamed"] == "You said: Stream this."
    assert seen["tool"] == {"name": "weather", "arguments": '{"city": "Berlin"}'}
    assert seen["error"] == ["RateLimitError", 429]
    assert seen["refused"] == ["AuthenticationError", 401]
    assert seen["models"] == ["scripted"]
    assert log[:4] == ["My parrot is called Rio.", seen["first"], "What is my parrot called?", "Rio"]
