"""The examples run, against a model on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aforesaid.testing import Request, ScriptedModel

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
EXPECTED = {
    "own_bot.py": "You said: I live in Bern.",
    "joke_bot.py": "software engineer in Berlin",
    "openai_sdk.py": "You said: Where do I live?",
    "notebook.py": "Berlin",
}


def test_every_example_is_listed_and_expected() -> None:
    files = {path.name for path in EXAMPLES.glob("*.py")}
    assert files == set(EXPECTED)
    assert all(f"({name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8") for name in files)


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    with ScriptedModel(_repeat) as model:
        keys = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "none", "MODEL": "scripted"}
        ran = subprocess.run(
            [sys.executable, str(EXAMPLES / name)],
            cwd=tmp_path,
            env={**os.environ, **keys, "AFORESAID_MODELS__CHAT__CHAIN": "openai:scripted"},
            input="I live in Bern.\n/help\n\n",
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    assert EXPECTED[name] in ran.stdout


@pytest.mark.defect("N6")
def test_own_bot_ends_cleanly_at_the_end_of_its_input(tmp_path: Path) -> None:
    with ScriptedModel(_repeat) as model:
        ran = subprocess.run(
            [sys.executable, str(EXAMPLES / "own_bot.py")],
            cwd=tmp_path,
            env={
                **os.environ,
                "OPENAI_BASE_URL": model.base_url,
                "OPENAI_API_KEY": "none",
                "AFORESAID_MODELS__CHAT__CHAIN": "openai:scripted",
            },
            input="I live in Bern.\n",
            capture_output=True,
            text=True,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "You said: I live in Bern." in ran.stdout


def _repeat(request: Request) -> str:
    return f"You said: {request.question}"
