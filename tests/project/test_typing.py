"""The types that users see: documented code passes a strict type checker, and mistakes do not."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import aforesaid

ROOT = Path(__file__).parent.parent.parent
WRITE_BLOCKS = runpy.run_path(str(ROOT / "tools" / "python_blocks.py"))["write_blocks"]
SDK = """
from anthropic import AsyncAnthropic
from openai import OpenAI

import aforesaid


def ask(client: OpenAI, ann: aforesaid.SyncUserMemory, text: str) -> str | None:
    sent: list[aforesaid.ChatMessage] = [*ann.context(text).messages, *ann.messages_for_llm()]
    return client.chat.completions.create(model="m", messages=sent).choices[0].message.content


def open_both() -> tuple[aforesaid.SyncMemory, aforesaid.SyncUserMemory]:
    memory = aforesaid.open("memory.db")
    return memory, memory.user("ann")


def wrapped() -> tuple[OpenAI, AsyncAnthropic]:
    ann = aforesaid.wrap(OpenAI(), user="ann")
    return ann, aforesaid.wrap(AsyncAnthropic(), memory=aforesaid.open("memory.db"), chat=7)


def refused(ann: aforesaid.SyncUserMemory) -> str | None:
    try:
        ann.add("user", "")
    except aforesaid.errors.InvalidInput as error:
        return error.field
    return None
"""
MISTAKES = """
import aforesaid


def wrong(ann: aforesaid.SyncUserMemory) -> None:
    ann.context("Hi").messages[0]["text"]
    ann.add("nobody", "Hi")
    await_me: aforesaid.UserMemory = ann
"""


def strict(*files: Path) -> subprocess.CompletedProcess[str]:
    """Run mypy with the settings of this repository, whose cache `make check` has filled."""
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", *map(str, files)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.defect("N5", "I3")
@pytest.mark.timeout(600)
def test_documented_code_passes_a_strict_type_checker_and_mistakes_do_not(tmp_path: Path) -> None:
    written = WRITE_BLOCKS(tmp_path)
    assert written > 40
    (tmp_path / "sdk.py").write_text(SDK, encoding="utf-8")
    (tmp_path / "mistakes.py").write_text(MISTAKES, encoding="utf-8")
    ran = strict(*sorted(tmp_path.glob("*.py")))
    found = [line for line in ran.stdout.splitlines() if ": error:" in line]
    assert [line for line in found if "mistakes.py" not in line] == [], ran.stderr
    mistakes = [line.rpartition("[")[2] for line in found]
    assert mistakes == ["typeddict-item]", "arg-type]", "assignment]"], ran.stdout


@pytest.mark.defect("N5")
def test_the_blocking_classes_have_public_names(tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        assert isinstance(memory, aforesaid.SyncMemory)
        assert isinstance(memory.user("ann"), aforesaid.SyncUserMemory)
        message = memory.user("ann").context("Hi", budget=500).messages[-1]
    assert {"role", "content"} <= message.keys() <= aforesaid.ChatMessage.__annotations__.keys()
