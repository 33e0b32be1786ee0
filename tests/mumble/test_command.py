"""`aforesaid bot mumble`, as people start and stop it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

import aforesaid
from aforesaid.bots.mumble import Mumble
from aforesaid.bots.running import bots_of
from aforesaid.cli import app
from aforesaid.errors import InvalidInput
from aforesaid.models.speech import open_speech
from aforesaid.settings import MumbleSettings, load_settings
from aforesaid.testing import ScriptedModel
from mumble.botting import session_of
from mumble.mumbling import MumbleServer, needs_server, someone, until

AFORESAID = Path(sys.executable).with_name("aforesaid")


async def start(folder: Path, server: MumbleServer, **more: str) -> asyncio.subprocess.Process:
    keys = "".join(f"{key} = {json.dumps(value)}\n" for key, value in more.items())
    (folder / "aforesaid.toml").write_text(
        'store = "memory.db"\nembedder = "none"\n[bots]\nname = "Rex"\n'
        f'[bots.mumble]\nhost = "127.0.0.1"\nport = {server.port}\n{keys}',
        encoding="utf-8",
    )
    return await asyncio.create_subprocess_exec(
        AFORESAID,
        "bot",
        "mumble",
        cwd=folder,
        env={**os.environ, "AFORESAID_EMBEDDER": "none"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


@needs_server
async def test_a_bot_is_started_answers_is_seen_in_the_status_and_stops_in_peace(
    mumble: MumbleServer, tmp_path: Path
) -> None:
    process = await start(tmp_path, mumble)
    async with someone(mumble.address, "ann") as ann:
        await until(lambda: session_of(ann, "Rex"))
        await ann.link.write("Rex, remember that I like tea", session=session_of(ann, "Rex"))
        assert await ann.told() == "I will remember that."
        [bot] = bots_of(str(tmp_path / "memory.db"), datetime.now(UTC))
        assert (bot.name, bot.facts[0]) == ("mumble bot", ("process", str(process.pid)))
        process.send_signal(signal.SIGTERM)
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        assert b"Rex is ready" in out
        await until(lambda: not session_of(ann, "Rex"))
    assert bots_of(str(tmp_path / "memory.db"), datetime.now(UTC)) == []
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        assert "tea" in str(memory.user(f"name-ann@127.0.0.1:{mumble.port}", space="mumble").portrait())


@needs_server
async def test_what_the_server_refuses_is_told_in_one_line(mumble: MumbleServer, tmp_path: Path) -> None:
    process = await start(tmp_path, mumble, channel="Cellar")
    _, err = await process.communicate()
    assert process.returncode == 1
    assert b"there is no channel 'Cellar'" in err
    assert len(err.decode().splitlines()) == 1


def test_a_bot_without_a_server_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["bot", "mumble", "--store", str(tmp_path / "memory.db")])
    assert result.exit_code == 2
    assert "bots.mumble.host" in result.output


def test_a_bot_that_should_speak_without_the_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    settings = MumbleSettings("127.0.0.1")
    assert Mumble(settings).name == "mumble", "text needs nothing"
    with ScriptedModel() as model, pytest.raises(InvalidInput, match=r"pip install '.\[mumble\]'"):
        Mumble(settings, open_speech(model.settings()))


def test_passwords_may_be_anything_and_are_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "password").write_text("open sesame, bitte schön\n", encoding="utf-8")
    (tmp_path / "password").chmod(0o600)
    (tmp_path / "aforesaid.toml").write_text(
        '[bots.mumble]\nhost = "localhost"\npassword_file = "password"\ncertificate = "bot.pem"\n', encoding="utf-8"
    )
    settings = load_settings()
    assert settings.bots.mumble.password == "open sesame, bitte schön"  # noqa: S105 - of nothing
    assert settings.bots.mumble.certificate == str(tmp_path / "bot.pem"), "seen from the file"
    assert not settings.warnings
    shown = CliRunner().invoke(app, ["config", "--json"]).output
    assert "sesame" not in shown
    assert "sesame" not in repr(settings)
    (tmp_path / "password").write_text("\n", encoding="utf-8")
    assert "it is empty" in str(load_settings().warnings)
    monkeypatch.setenv("AFORESAID_BOTS__MUMBLE__PASSWORD", "another one")
    assert load_settings().bots.mumble.password == "another one"  # noqa: S105


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Robbie, hello", True),
        ("what do you think, robbie?", True),
        ("  bot: hello", True),
        ("/help", True),
        ("I wrote a bot yesterday", False),
        ("robbies", False),
        ("the robot", False),
        ("hello", False),
        ("", False),
    ],
)
def test_who_is_meant_among_several_people(text: str, wanted: bool) -> None:  # noqa: FBT001
    bot = Mumble(MumbleSettings("127.0.0.1", name="Robbie"))
    assert bot._wanted(text, alone=False) is wanted
    assert bot._wanted(text, alone=True)
    assert Mumble(MumbleSettings("127.0.0.1", answer="always"))._wanted(text, alone=False)


def test_every_file_that_the_how_to_shows_can_be_used(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent.parent / "docs/how-to/run-a-bot.md").read_text(encoding="utf-8")
    part = page.partition("## Mumble\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```\n(\[(?:bots|speech).*?)^```$", part, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 4
    for block in blocks:
        (tmp_path / "aforesaid.toml").write_text(block, encoding="utf-8")
        settings = load_settings(tmp_path / "aforesaid.toml", env={})
        assert settings.bots.mumble.host or settings.speech.speak
