"""The official clients for JavaScript, unmodified, through the proxy to a scripted model."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aforesaid.testing import Request, ScriptedModel, Writes, faults
from server.serving import live

PROGRAMS = Path(__file__).parent / "node"
PACKAGES = ("openai@6", "@anthropic-ai/sdk@0", "ollama@0")
CACHE = Path(__file__).parent.parent.parent / ".cache" / "npm-clients"


@pytest.fixture(scope="module")
def installed() -> Path:
    """A folder with the npm packages, installed once and kept out of the repository."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("left out: the JavaScript clients need Node.js and npm, which are not installed here")
    if not all((CACHE / "node_modules" / name.rpartition("@")[0]).is_dir() for name in PACKAGES):
        CACHE.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(CACHE)]
        try:
            ran = subprocess.run([*command, *PACKAGES], capture_output=True, text=True, check=False, timeout=60)
        except subprocess.TimeoutExpired:
            pytest.skip("left out: npm did not install the JavaScript clients within a minute")
        if ran.returncode != 0:
            pytest.skip(f"left out: npm could not install the JavaScript clients: {ran.stderr.strip()[-300:]}")
    return CACHE


def script(asked: Request) -> Any:  # noqa: ANN401
    text = asked.question
    if "be overloaded" in text:
        return faults.TooManyRequests(1)
    if "use the tool" in text:
        return Writes("", tools={"weather": {"city": "Berlin"}})
    if "parrot called?" in text:
        return "Rio" if "Rio" in json.dumps(dict(asked.body)) else "I do not know"
    return "Once upon a time there was a very long story." if "story" in text else f"You said: {text}"


@pytest.mark.client(
    "Chat Completions",
    "openai (JavaScript)",
    "memory",
    "streaming",
    "hang-up",
    "tools",
    "provider's errors",
    "own errors",
    "model list",
)
@pytest.mark.client(
    "Responses",
    "openai (JavaScript)",
    "memory",
    "streaming",
    "hang-up",
    "tools",
    "provider's errors",
    "own errors",
    "model list",
)
@pytest.mark.client(
    "Messages",
    "@anthropic-ai/sdk (JavaScript)",
    "memory",
    "streaming",
    "hang-up",
    "tools",
    "provider's errors",
    "own errors",
    "model list",
)
@pytest.mark.client(
    "Ollama",
    "ollama (JavaScript)",
    "memory",
    "streaming",
    "hang-up",
    "tools",
    "provider's errors",
    "own errors",
    "model list",
)
@pytest.mark.parametrize("program", ["talk", "talk_responses", "talk_messages", "talk_ollama"])
def test_the_clients_for_javascript_have_a_memory_too(installed: Path, tmp_path: Path, program: str) -> None:
    copy = installed / f"{program}.mjs"
    copy.write_text((PROGRAMS / copy.name).read_text(encoding="utf-8"), encoding="utf-8")
    with ScriptedModel(script) as model:
        chosen = model.settings()
        settings = replace(chosen, routes={"chat": chosen.routes["chat"]})
        with live(tmp_path / "memory.db", settings=settings) as server:
            ran = subprocess.run(
                ["node", str(copy), server.address, server.key(), "rk_wrong"],  # noqa: S607 - found above
                capture_output=True,
                text=True,
                check=False,
                timeout=100,
            )
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
