"""The examples run, against a model on this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from aforesaid.testing import Request, ScriptedModel

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
EXPECTED = {
    "own_bot.py": "You said: I live in Bern.",
    "joke_bot.py": "software engineer in Berlin",
    "openai_sdk.py": "You said: Where do I live?",
    "notebook.py": "Berlin",
    "support_bot.py": "ann: 4 messages in 2 conversations",
    "group_chat.py": "The surprise is in the context: False",
    "ask_my_chats.py": "Wanderfalke 2",
}
GIVEN = {"support_bot.py": "ann/1: My printer is broken.\nann/2: What is broken?\nnothing\n"}
"""What is typed; a line for a bot otherwise."""
PORT = re.compile(r"http://127\.0\.0\.1:\d+")


def test_every_example_is_listed_and_expected() -> None:
    files = {path.name for path in EXAMPLES.glob("*.py")}
    assert files == {*EXPECTED, "web_api.py"}
    assert all(f"({name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8") for name in files)


def variables(model: ScriptedModel) -> dict[str, str]:
    keys = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "none", "MODEL": "scripted", "PORT": "0"}
    return {**os.environ, **keys, "AFORESAID_MODELS__CHAT__CHAIN": "openai:scripted"}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    said = {"role": "user", "content": "Ich bin gegen Erdnüsse allergisch. Ich nehme das Zelt Wanderfalke 2."}
    (tmp_path / "export.json").write_text(json.dumps([said, {"role": "assistant", "content": "Gut."}]))
    with ScriptedModel(_repeat) as model:
        ran = subprocess.run(
            [sys.executable, str(EXAMPLES / name), "export.json", "Welches Zelt?"],
            cwd=tmp_path,
            env=variables(model),
            input=GIVEN.get(name, "I live in Bern.\n/help\n\n"),
            capture_output=True,
            text=True,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert EXPECTED[name] in ran.stdout


def test_the_web_api_answers_and_remembers(tmp_path: Path) -> None:
    with ScriptedModel(_repeat) as model:
        served = subprocess.Popen(
            [sys.executable, str(EXAMPLES / "web_api.py")],
            cwd=tmp_path,
            env=variables(model),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert served.stderr is not None
        try:
            address = next(found[0] for line in served.stderr if (found := PORT.search(line)))
            with httpx2.Client(base_url=address, timeout=120) as client:
                for chat, text in (("one", "Vivo en Valencia."), ("two", "¿Dónde vivo?")):
                    asked = client.post("/ask", json={"user": "ann", "chat": chat, "text": text})
                    assert asked.json() == {"answer": f"You said: {text}"}
                assert "Vivo en Valencia." in json.dumps(model.requests[-1].messages)
                assert client.post("/ask", json={"user": "", "chat": "one", "text": "x"}).status_code == 422
                assert "Vivo en Valencia." in client.get("/users/ann/search", params={"q": "Valencia"}).json()
                assert client.delete("/users/ann").status_code == 200
                assert client.get("/users/ann/search", params={"q": "Valencia"}).json() == []
        finally:
            served.terminate()
            served.communicate()


@pytest.mark.defect("N6")
def test_own_bot_ends_cleanly_at_the_end_of_its_input(tmp_path: Path) -> None:
    with ScriptedModel(_repeat) as model:
        ran = subprocess.run(
            [sys.executable, str(EXAMPLES / "own_bot.py")],
            cwd=tmp_path,
            env=variables(model),
            input="I live in Bern.\n",
            capture_output=True,
            text=True,
            check=False,
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "You said: I live in Bern." in ran.stdout


def _repeat(request: Request) -> str:
    return f"You said: {request.question}"
