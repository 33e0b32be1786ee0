"""`aforesaid serve` as people start it: a process, a port, a link, a stop."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner, Result

from aforesaid.cli import app
from aforesaid.server.app import listen

COMMAND = [sys.executable, "-m", "aforesaid"]


@contextmanager
def served(path: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Start a server, wait until it is ready, and return its link."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--store", str(path), "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        link = re.search(r"http://\S+", line)
        assert link is not None, (line, process.stderr.read() if process.stderr and not line else "")
        yield process, link[0]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.mark.skipif(os.name != "posix", reason="stops processes by signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_starts_with_a_link_and_stops_when_told(tmp_path: Path, number: signal.Signals) -> None:
    with served(tmp_path / "memory.db", "--log-level", "debug") as (process, link):
        with httpx2.Client(follow_redirects=True) as browser:
            page = browser.get(link)
            assert page.status_code == 200
            assert "token" not in str(page.url)
            assert "server" not in page.headers
        process.send_signal(number)
        out, log = process.communicate(timeout=60)
    assert process.returncode == 0, log
    assert "every acknowledged message is stored" in out
    token = link.partition("token=")[2]
    assert len(token) > 30
    assert token not in log
    assert "GET /login 303" in log


def test_a_key_made_while_it_runs_works_at_once(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    with served(store) as (_, link):
        made = run("key", "add", "watcher", "--role", "reader", "--store", str(store))
        address = link.partition("login")[0]
        key = {"Authorization": f"Bearer {made.stdout.strip()}"}
        assert httpx2.get(f"{address}metrics", headers=key).status_code == 200
        listed = run("key", "list", "--store", str(store)).stdout
        assert "watcher" in listed
        assert made.stdout.strip() not in listed
        number = re.search(r"\b[0-9a-f]{8}\b", listed)
        assert number is not None
        assert run("key", "remove", number[0], "--store", str(store)).exit_code == 0
        assert httpx2.get(f"{address}metrics", headers=key).status_code == 401


def run(*arguments: str) -> Result:
    """Run a command in this process, which is another one than the server's."""
    return CliRunner().invoke(app, arguments)


def test_it_refuses_to_let_everybody_in_from_everywhere(tmp_path: Path) -> None:
    ran = run("serve", "--no-auth", "--host", "0.0.0.0", "--store", str(tmp_path / "memory.db"))  # noqa: S104
    assert ran.exit_code == 2
    assert "other machines" in ran.stderr
    assert not (tmp_path / "memory.db").exists()


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ran = run("serve", "--port", port, "--store", str(tmp_path / "memory.db"))
    assert ran.exit_code == 1
    assert f"port {port}" in ran.stderr
    assert isinstance(ran.exception, SystemExit), "expected, so without a traceback"


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    blocked = tmp_path / "fastapi.py"
    blocked.write_text("raise ModuleNotFoundError(\"No module named 'fastapi'\", name='fastapi')", encoding="utf-8")
    ran = subprocess.run(
        [*COMMAND, "serve", "--store", str(tmp_path / "memory.db")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert ran.returncode == 2
    assert "pip install '.[server]'" in ran.stderr


def test_small_answers_are_sent_at_once() -> None:
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP, "asyncio sets TCP_NODELAY for these alone; others wait 40 ms"


def test_a_store_in_memory_has_no_file_for_keys() -> None:
    ran = run("key", "add", "app", "--store", ":memory:")
    assert ran.exit_code == 2
    assert "store in memory" in ran.stderr
