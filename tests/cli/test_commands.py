"""The command line as a person and as a script use it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import aforesaid
from aforesaid import __version__
from aforesaid.cli import app
from aforesaid.testing import ScriptedModel
from cli.typed import Run, as_json, ok


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("AFORESAID_STORE", str(tmp_path / "memory.db"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TZ", "UTC")

    def run(*words: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, words, input=stdin)

    return run


def test_add_history_and_search(run: Run) -> None:
    assert "stored as #1 in direct:ann, session s-1" in ok(run("add", "I moved to Berlin", "--user", "ann"))
    ok(run("add", "How is it?", "--user", "ann", "--role", "assistant"))
    lines = ok(run("history", "--user", "ann")).splitlines()
    assert [line.split("  ", 2)[::2] for line in lines] == [
        ["#1", "ann: I moved to Berlin"],
        ["#2", "assistant: How is it?"],
    ]
    assert "I moved to Berlin" in ok(run("search", "berlin", "--user", "ann"))
    assert re.search(r"\+\d\.\d\d +its words match", ok(run("search", "berlin", "--user", "ann", "--explain")))
    assert ok(run("search", "paris", "--user", "ann", "--arms", "keyword")).strip() == "nothing found"
    assert "there are no messages for ann" in ok(run("history", "--user", "ann", "--role", "tool"))


READS = (
    ("search", "berlin"),
    ("context", "Where do I live?"),
    ("memories",),
    ("portrait",),
    ("reminders",),
    ("timeline",),
    ("people",),
)


@pytest.mark.defect("U3")
@pytest.mark.parametrize("words", READS, ids=[words[0] for words in READS])
def test_commands_that_read_leave_background_work_to_others_and_say_that_it_waits(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    with aforesaid.open(tmp_path / "memory.db", settings={"background": False}) as memory:
        for number in range(12):
            memory.user("ann").add("user", f"I moved to Berlin {number}")
            memory.user("ann").add("assistant", "How is it?")
    read = run(*words, "--user", "ann")
    ok(read)
    done = as_json(run("upkeep", "--json"))
    assert done["embedded"] >= 24
    assert done["summarised"] > 0
    assert done["remembered"] > 0
    assert "new messages wait for background work" in read.stderr
    assert run(*words, "--user", "ann").stderr == ""


def test_scripts_get_json(run: Run) -> None:
    added = as_json(run("add", "hello", "-u", "ann", "--id", "7", "--at", "2026-03-01T09:30+02:00", "--json"))
    assert (added["durable"], added["duplicate"], added["message"]["id"]) == (True, False, "7")
    assert added["message"]["at"] == "2026-03-01T07:30:00+00:00"
    assert as_json(run("add", "hello", "-u", "ann", "--id", "7", "--json"))["duplicate"] is True
    assert [message["text"] for message in as_json(run("history", "-u", "ann", "--json"))] == ["hello"]
    assert [hit["text"] for hit in as_json(run("search", "hello", "-u", "ann", "--json"))] == ["hello"]
    assert [user["id"] for user in as_json(run("users", "--json"))] == ["ann"]
    status = as_json(run("status", "--json"))
    assert (status["stats"]["messages"], status["health"]["status"]) == (1, "active")
    assert as_json(run("verify", "--json"))["ok"] is True
    assert as_json(run("history", "-u", "nobody", "--json")) == []


def test_text_can_come_from_standard_input(run: Run) -> None:
    ok(run("add", "-", "-u", "ann", stdin="two\nlines\n"))
    assert as_json(run("history", "-u", "ann", "--json"))[0]["text"] == "two\nlines"
    result = run("add", "-", "-u", "ann", stdin=b"\xff\xfe")
    assert (result.exit_code, "not UTF-8" in result.stderr) == (2, True)


def test_threads_sessions_and_paging(run: Run) -> None:
    for number in range(3):
        ok(run("add", f"message {number}", "-u", "ann", "-t", "general", "--session", "talk"))
    ok(run("add", "from bob", "-u", "bob", "-t", "general"))
    assert "from bob" in ok(run("history", "-u", "ann", "-t", "general", "--within", "thread"))
    assert "from bob" not in ok(run("history", "-u", "ann", "-t", "general"))
    page = as_json(run("history", "-u", "ann", "--before", "#3", "-n", "1", "--json"))
    assert [message["text"] for message in page] == ["message 1"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["add", "x", "--role", "king"], 2, "unknown role 'king'"),
        (["add", ""], 2, "the text is empty"),
        (["add", "x", "--at", "yesterday"], 2, "'yesterday' is not a time"),
        (["add", "x", "--store", "mysql://x"], 2, "unknown kind of location 'mysql:'"),
        (["verify", "--store", "nowhere.db"], 2, "there is no store at nowhere.db"),
        (["backup", "x.db", "--store", "nowhere.db"], 2, "there is no store at nowhere.db"),
        (["restore", "nothing.db"], 2, "there is no backup at"),
        (["history"], 2, "there is no store at"),
        (["migrate", "nowhere.db", "there.db"], 2, "pass the store to copy as FROM"),
        (["search", "x", "--store", "a/b/typo.db"], 2, "there is no store at a/b/typo.db"),
        (["add", "x", "--at", "0001-01-01T00:00"], 2, "outside the"),
        (["add", "x", "--store", "/proc/no/such/place.db"], 1, "check the folder and its rights"),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_a_failure_is_one_line_on_standard_error_and_an_exit_code(
    run: Run, words: list[str], code: int, said: str
) -> None:
    result = run(*words)
    assert result.exit_code == code
    assert said in result.stderr
    assert "Traceback" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--before", "99"], 1, "has no message '99'"),
        (["--before", "#" + "9" * 30], 1, "has no message"),
        (["--within", "everywhere"], 2, "unknown within 'everywhere'"),
        (["--limit", "0"], 2, "at least 1"),
    ],
)
def test_reading_fails_as_clearly(run: Run, words: list[str], code: int, said: str) -> None:
    ok(run("add", "hello"))
    result = run("history", *words)
    assert (result.exit_code, said in result.stderr, result.stdout) == (code, True, "")


def test_the_last_day_of_the_calendar_can_be_shown(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    ok(run("add", "the end", "--at", "9999-12-31T23:59+00:00"))
    assert "the end" in ok(run("history"))
    assert "9999-12-31" in ok(run("users"))
    monkeypatch.undo()
    time.tzset()


def test_backup_restore_and_verify(run: Run, tmp_path: Path) -> None:
    ok(run("add", "before the backup", "-u", "ann"))
    copy = tmp_path / "copy.db"
    assert "verified" in ok(run("backup", str(copy)))
    assert run("backup", str(copy)).exit_code == 2
    ok(run("add", "after the backup", "-u", "ann"))
    assert run("restore", str(copy)).exit_code == 2
    assert "the previous store is now" in ok(run("restore", str(copy), "--replace"))
    assert [message["text"] for message in as_json(run("history", "-u", "ann", "--json"))] == ["before the backup"]
    report = ok(run("verify"))
    assert report.count("ok") == 8
    elsewhere = str(tmp_path / "elsewhere.db")
    assert as_json(run("restore", str(copy), "--store", elsewhere, "--json"))["set_aside"] is None


def test_damage_is_reported_with_an_exit_code(run: Run, tmp_path: Path) -> None:
    import sqlite3  # noqa: PLC0415

    ok(run("add", "hello", "-u", "ann"))
    with sqlite3.connect(tmp_path / "memory.db") as database:
        database.execute("UPDATE log SET text = 'hullo'")
    database.close()
    result = run("verify")
    assert result.exit_code == 1
    assert "WRONG" in result.stdout
    assert "#1 is not what was stored" in result.stdout


def test_what_people_wrote_cannot_steer_the_terminal(run: Run) -> None:
    ok(run("add", "red \x1b[31m alert [bold]x[/bold] \x07 \u202eevil", "-u", "ann", "--name", "A\x1b]0;title\x07nn"))
    for output in (ok(run("history", "-u", "ann")), ok(run("search", "alert", "-u", "ann"))):
        assert "\x1b" not in output
        assert "\x07" not in output
        assert "\u202e" not in output
        assert "[bold]x[/bold]" in output
        assert "<U+001B>[31m" in output


def test_users_and_status_are_readable(run: Run) -> None:
    ok(run("add", "hello", "-u", "ann"))
    assert "ann" in ok(run("users"))
    assert "there are no users yet" in ok(run("users", "--space", "other"))
    page = ok(run("status"))
    assert "the memory is active" in page
    assert re.search(r"● store +1 ", page)
    assert "memory.db" in page
    assert "1 message " in page
    assert "1 user " in page


def test_the_status_of_one_user(run: Run) -> None:
    ok(run("add", "hello", "-u", "ann"))
    page = ok(run("status", "--user", "ann"))
    assert "the memory of ann is active" in page
    assert re.search(r"● whole_history +1 ", page)
    parts = as_json(run("status", "--user", "bob", "--json"))["health"]["components"]
    assert {part["status"] for part in parts} == {"initializing"}


@pytest.mark.req("C17")
def test_status_shows_alerts_and_exits_with_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ok(run("add", "hello"))
    monkeypatch.setenv("AFORESAID_ALERTS__STORAGE_BYTES", "1000")
    ran = run("status")
    assert ran.exit_code == 1
    assert "! the store has " in ran.output
    assert "alert (" not in ran.output, "what the page says is not told by the log as well"
    (alert,) = json.loads(run("status", "--json").stdout)["health"]["alerts"]
    assert (alert["kind"], alert["about"]) == ("capacity", "store")


def test_the_demo_works_and_keeps_what_it_is_told_to_keep(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "kept.db"
    with ScriptedModel("I am asked.") as model, monkeypatch.context() as configured:
        configured.setenv("AFORESAID_PROVIDERS__SCRIPTED__BASE_URL", model.base_url)
        configured.setenv("AFORESAID_MODELS__DEFAULT", "scripted:scripted")
        page = ok(run("demo", "--keep", str(kept)))
        assert not model.requests, "it says that no model is needed, and asks none"
    assert "0 lost" in page
    assert "Senhor Tavares" in page
    assert "WRONG" not in page
    assert kept.exists()
    assert run("demo", "--keep", str(kept)).exit_code == 2
    assert len(as_json(run("history", "-u", "ann", "-n", "10000", "--store", str(kept), "--json"))) == 132
    written = run("history", "-u", "writer", "--space", "power-cut", "-n", "10000", "--store", str(kept), "--json")
    assert len(as_json(written)) >= 200


def test_every_command_explains_itself(run: Run) -> None:
    page = ok(run("--help"))
    for command in app.registered_commands:
        name = command.name or command.callback.__name__  # type: ignore[union-attr]
        assert name in page
        assert len(ok(run(name, "--help"))) > 200


def test_the_version_is_told(run: Run) -> None:
    assert ok(run("--version")).strip() == f"aforesaid {__version__}"


def _in_a_new_process(*words: str) -> tuple[str, set[str]]:
    """Return what a command printed, and the modules that it loaded."""
    program = (
        "import atexit, sys; from aforesaid.cli import main; sys.argv[0] = 'aforesaid'\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); main()"
    )
    command = [sys.executable, "-c", program, *words]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"})
    return ran.stdout, set(ran.stderr.split())


def _ours(loaded: set[str]) -> set[str]:
    return {name for name in loaded if name.partition(".")[0] == "aforesaid"}


@pytest.mark.defect("I4")
def test_the_version_is_told_without_loading_anything() -> None:
    printed, loaded = _in_a_new_process("--version")
    assert printed == f"aforesaid {__version__}\n"
    assert not loaded & {"typer", "rich", "numpy", "pydantic", "asyncio"}
    assert _ours(loaded) == {"aforesaid", "aforesaid.cli"}


@pytest.mark.defect("I4")
def test_the_help_is_the_same_without_loading_the_commands(run: Run) -> None:
    printed, loaded = _in_a_new_process("--help")
    assert printed == ok(run("--help"))
    assert not loaded & {"numpy", "pydantic", "asyncio", "aforesaid.memory", "aforesaid.store", "aforesaid.cli.options"}
    assert len(_ours(loaded)) <= 8


@pytest.mark.defect("I4")
def test_a_command_loads_neither_an_encoder_nor_what_other_commands_need(tmp_path: Path) -> None:
    store = str(tmp_path / "memory.db")
    for words in (["add", "I moved to Berlin."], ["count"], ["search", "Berlin"]):
        _, loaded = _in_a_new_process(*words, "--store", store)
        assert "aforesaid.memory" in loaded
        assert not loaded & {"openai", "fastapi", "mcp", "rich.progress"}
        assert ("numpy" in loaded) == (words[0] == "search")
        assert len(_ours(loaded)) <= 150
        assert not [name for name in loaded if name.startswith(("aforesaid.assistant", "aforesaid.server"))]
        assert not [name for name in loaded if name.startswith(("aforesaid.portability", "aforesaid.models.offline"))]


def test_it_runs_as_an_installed_command_and_ends_quietly_in_a_closed_pipe(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("aforesaid")), "--help"]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stderr == ""
    store = str(tmp_path / "memory.db")
    for _ in range(2):
        subprocess.run([command[0], "add", "x" * 60_000, "-s", store], check=True, capture_output=True)
    with subprocess.Popen(
        [command[0], "history", "-s", store], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stderr is not None
        reader.stdout.read(10)
        reader.stdout.close()
        assert reader.stderr.read() == ""
        assert reader.wait() == 0


def test_a_terminal_without_the_characters_still_shows_the_message(tmp_path: Path) -> None:
    command, store = str(Path(sys.executable).with_name("aforesaid")), str(tmp_path / "memory.db")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    subprocess.run([command, "add", "naïve", "-s", store], check=True, env=environment, capture_output=True)
    shown = subprocess.run(
        [command, "history", "-s", store], check=True, env=environment, capture_output=True, text=True
    )
    assert "na\\xefve" in shown.stdout


@pytest.mark.req("A18", "C18")
def test_cleanup_says_what_would_go_and_then_does_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ok(run("add", "an old thing", "--at", "2020-01-01T10:00"))
    ok(run("add", "a new thing"))
    assert "everything is kept" in ok(run("cleanup"))
    monkeypatch.setenv("AFORESAID_RETENTION__MESSAGES__ARCHIVE_DAYS", "30")
    monkeypatch.setenv("AFORESAID_RETENTION__MESSAGES__PURGE_DAYS", "365")
    page = ok(run("cleanup", "--dry-run"))
    assert "1 message would be archived" in page
    assert "1 message would be deleted" in page, "it is archived first, and deleted by the same run"
    assert len(as_json(run("history", "--json"))) == 2
    report = as_json(run("cleanup", "--json"))
    assert [(rule["action"], rule["count"]) for rule in report["rules"]] == [("archive", 1), ("purge", 1)]
    assert [message["text"] for message in as_json(run("history", "--json"))] == ["a new thing"]
    assert "messages: archived after 30 days, deleted after 365 days" in " ".join(ok(run("status")).split())


def test_cleanup_says_that_messages_are_deleted_only_after_they_were_archived(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok(run("add", "an old thing", "--at", "2020-01-01T10:00"))
    monkeypatch.setenv("AFORESAID_RETENTION__MESSAGES__PURGE_DAYS", "365")
    cleaned = run("cleanup")
    assert "0 messages deleted" in ok(cleaned)
    told = "messages are deleted only after they were archived; to archive them, set retention.messages.archive_days"
    assert told in cleaned.stderr
    monkeypatch.setenv("AFORESAID_RETENTION__MESSAGES__ARCHIVE_DAYS", "30")
    assert "only after" not in run("cleanup", "--dry-run").stderr


def test_a_folder_in_place_of_a_file_is_called_a_folder(run: Run, tmp_path: Path) -> None:
    result = run("add", "hello", "--store", str(tmp_path))
    assert (result.exit_code, f"{tmp_path} is a folder" in result.stderr) == (1, True)


def test_a_message_that_waits_is_said_to_wait(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFORESAID_FALLBACK", f"files:{tmp_path / 'waiting'}")
    nobody_there = "postgresql://nobody@127.0.0.1:9/nothing?connect_timeout=2"
    result = run("add", "hello", "--store", nobody_there, "--json")
    assert "kept in files and stored once it works again" in result.stderr
    assert as_json(result)["durable"] is True


def test_what_fails_is_told_once_and_a_mistake_leaves_the_store_well(tmp_path: Path) -> None:
    """In a process of its own: what Python prints of a log that nobody set up is part of the question."""
    store = str(tmp_path / "memory.db")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "aforesaid", *words, "--store", store]
        return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    assert run("add", "hello", "--user", "ann").returncode == 0
    for words in (("purge", "nobody", "--yes"), ("backup", "/proc/here.db"), ("export", "/proc/here.jsonl")):
        ran = run(*words)
        assert ran.returncode == 1
        assert len(ran.stderr.splitlines()) == 1, ran.stderr
        assert ran.stderr.startswith("aforesaid: ")
    assert "check that the folder exists and is writable" in ran.stderr
