"""The page about frameworks: its examples run, with scripted models."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from aforesaid.testing import ScriptedModel
from integrations.anthropic_server import ScriptedClaude

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs/how-to/use-with-agent-frameworks.md").read_text(encoding="utf-8")
WRITE_BLOCKS = runpy.run_path(str(ROOT / "tools" / "python_blocks.py"))["write_blocks"]
SECTIONS = dict(re.findall(r"^## (.+?)\n\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
FRAMEWORKS = (
    "agent_framework",
    "agents",
    "anthropic",
    "autogen_core",
    "claude_agent_sdk",
    "crewai",
    "google.adk",
    "haystack",
    "langchain",
    "langgraph",
    "llama_index",
    "pydantic_ai",
)


def installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of a package above it
        return False


@pytest.mark.parametrize("title", SECTIONS)
def test_an_example_runs(title: str, tmp_path: Path) -> None:
    code = SECTIONS[title]
    needed = re.findall(
        r"^from (?!aforesaid)(\S+) import|^from aforesaid\.integrations\.(\w+) import", code, re.MULTILINE
    )
    missing = [name for name in FRAMEWORKS for one, _ in needed if one.startswith(name) and not installed(name)]
    if missing or ("langgraph" in code and not installed("langgraph")):
        pytest.skip(f"{missing or 'langgraph'} is not installed (make test-integrations)")
    with ScriptedModel() as model, ScriptedClaude(["I will."]) as claude:
        variables = {
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "none",
            "ANTHROPIC_BASE_URL": claude.base_url,
            "ANTHROPIC_API_KEY": "none",
        }
        ran = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()


def test_every_adapter_has_an_example() -> None:
    modules = {path.stem for path in (ROOT / "src/aforesaid/integrations").glob("*.py")}
    shown = set(re.findall(r"from aforesaid\.integrations\.(\w+) import", PAGE))
    assert shown == modules - {"__init__", "shared", "clients"}, "clients that are wrapped have a page of their own"


@pytest.mark.timeout(1_200)
def test_the_examples_pass_a_strict_type_checker(tmp_path: Path) -> None:
    if not (find_spec("langgraph") or find_spec("crewai")):
        pytest.skip("no framework is installed (make test-integrations)")
    assert WRITE_BLOCKS(tmp_path, frameworks=True) > 0
    # A file of its own: the settings of this repository are for code without frameworks.
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\npython_version = 3.11\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".cache" / "mypy-frameworks")]
    ran = subprocess.run([*command, "."], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
