"""`aforesaid bot`, as people start and stop it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

import aforesaid
from aforesaid.bots.running import bots_of, write
from aforesaid.cli import app
from aforesaid.domain.report import Component
from aforesaid.testing.telegram import FakeTelegram, Person

AFORESAID = Path(sys.executable).with_name("aforesaid")
ANN = Person(1001, "Ann")


def configure(telegram: FakeTelegram, folder: Path) -> None:
    (folder / "aforesaid.toml").write_text(
        f'store = "memory.db"\nembedder = "none"\n[bots]\nname = "Rex"\n[bots.telegram]\napi = "{telegram.base_url}"\n',
        encoding="utf-8",
    )


async def start(telegram: FakeTelegram, folder: Path, token: str) -> asyncio.subprocess.Process:
    configure(telegram, folder)
    return await asyncio.create_subprocess_exec(
        AFORESAID,
        "bot",
        "telegram",
        cwd=folder,
        env={**os.environ, "AFORESAID_BOTS__TELEGRAM__TOKEN": token, "AFORESAID_EMBEDDER": "none"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def test_a_bot_is_started_answers_is_seen_in_the_status_and_stops_in_peace(tmp_path: Path) -> None:
    async with FakeTelegram() as telegram:
        process = await start(telegram, tmp_path, telegram.token)
        telegram.say(ANN, "Rex, remember that I like tea")
        assert (await telegram.next_sent(0)).text == "I will remember that."
        [bot] = bots_of(str(tmp_path / "memory.db"), datetime.now(UTC))
        assert (bot.name, bot.facts[0]) == ("telegram bot", ("process", str(process.pid)))
        process.send_signal(signal.SIGTERM)
        out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        assert b"@memory_bot is ready" in out
        assert b"no model is configured" in out
        assert b"every message is stored" in out
        assert telegram.token.encode() not in out + err
    assert bots_of(str(tmp_path / "memory.db"), datetime.now(UTC)) == []
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        assert "tea" in str(memory.user("1001", space="telegram").portrait())


async def test_a_wrong_token_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AFORESAID_BOTS__TELEGRAM__TOKEN", "42:a-wrong-token")
    async with FakeTelegram() as telegram:
        configure(telegram, tmp_path)
        # Not with to_thread, which would tell the command that it is in this event loop.
        ran = await asyncio.get_running_loop().run_in_executor(None, CliRunner().invoke, app, ["bot", "telegram"])
    assert ran.exit_code == 1
    assert "the token was refused by Telegram" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1
    assert "a-wrong-token" not in ran.output


def test_a_bot_without_its_library_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "aiogram", None)
    monkeypatch.setitem(sys.modules, "discord", None)
    for name in [
        name for name in sys.modules if name.startswith(("aforesaid.bots.telegram", "aforesaid.bots.discord"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    for platform in ("telegram", "discord"):
        result = CliRunner().invoke(app, ["bot", platform, "--store", str(tmp_path / "memory.db")])
        assert result.exit_code == 2
        assert f"pip install '.[{platform}]'" in result.output


def test_a_bot_without_a_token_says_where_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["bot", "telegram", "--store", str(tmp_path / "memory.db")])
    assert result.exit_code == 2
    assert "@BotFather" in result.output


def test_a_bot_that_was_killed_is_seen_in_the_status(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with aforesaid.open(path, embedder="none") as memory:
        memory.user("ann").add("user", "hello")
    note = tmp_path / "memory.db.telegram.bot.json"
    write(note, Component("telegram bot", "active", None, (), (("received", "3"),)))
    fine = CliRunner().invoke(app, ["status", "--store", str(path), "--json"])
    assert json.loads(fine.output)["health"]["components"][-1]["name"] == "telegram bot"
    old = json.loads(note.read_text()) | {"written_at": (datetime.now(UTC) - timedelta(hours=1)).isoformat()}
    note.write_text(json.dumps(old))
    result = CliRunner().invoke(app, ["status", "--store", str(path)])
    assert result.exit_code == 1
    assert "no heartbeat since" in " ".join(result.output.split())
    note.write_text("{")
    assert "cannot be read" in str(bots_of(str(path), datetime.now(UTC)))


def test_tokens_are_masked_where_the_configuration_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "token").write_text("123456789:AAAA-secret-secret-last")
    (tmp_path / "token").chmod(0o600)
    (tmp_path / "aforesaid.toml").write_text('[bots.telegram]\ntoken_file = "token"\n')
    shown = json.loads(CliRunner().invoke(app, ["config", "--json"]).output)["settings"]["bots.telegram.token"]
    assert shown["value"] == "…last"
    assert shown["origin"].startswith(str(tmp_path / "token"))
    (tmp_path / "aforesaid.toml").write_text('[bots.telegram]\ntoken_file = "token"\ntoken = "x:y"\n')
    assert "keep one of them" in CliRunner().invoke(app, ["config"]).output
    (tmp_path / "aforesaid.toml").write_text('[bots.telegram]\ntoken_file = "nowhere"\n')
    assert "cannot be read" in " ".join(CliRunner().invoke(app, ["config"]).output.split())
