"""Every command exits with 0 when it is done, 1 when it failed, and 2 when it was used wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner, Result

import aforesaid
from aforesaid.cli import app
from aforesaid.domain.checks import counted
from cli.typed import Run, ok

WRONG_USE = {
    "add": ["add", "hello", "--role", "nobody"],
    "backup": ["backup", "made.db", "--store", "missing/typo.db"],
    "add-many": ["add-many", "missing.jsonl"],
    "attachment": ["attachment", "cat.png"],
    "bot": ["bot", "irc"],
    "chat": ["chat", "--profile", "no-such-profile"],
    "cleanup": ["cleanup", "--store", "missing/typo.db"],
    "clear": ["clear", "--store", "missing/typo.db"],
    "config": ["config", "--config", "missing.toml"],
    "context": ["context", "hello", "--budget", "0"],
    "count": ["count", "--metadata", "n=1"],
    "demo": ["demo", "--keep", "memory.db"],
    "edit": ["edit", "#1", "new", "--metadata", "n=1"],
    "erase": ["erase", "#1", "--store", "missing/typo.db"],
    "export": ["export", "memory.db"],
    "forget": ["forget", "tea", "--store", "missing/typo.db"],
    "history": ["history", "--limit", "0"],
    "import": ["import", "missing.jsonl"],
    "key": ["key", "add", "app", "--role", "god"],
    "mcp": ["mcp", "--profile", "no-such-profile"],
    "memories": ["memories", "--category", "gossip"],
    "migrate": ["migrate", "missing.db", "other.db"],
    "note": ["note", "gossip", "hello"],
    "people": ["people", "--store", "missing/typo.db"],
    "portrait": ["portrait", "--store", "missing/typo.db"],
    "purge": ["purge", "ann"],
    "receipt": ["receipt", "unknown", "--store", "missing/typo.db"],
    "receipts": ["receipts", "--since", "some day"],
    "remember": ["remember", ""],
    "reminders": ["reminders", "--ical"],
    "restore": ["restore", "missing.db", "--store", "new.db"],
    "search": ["search", "tea", "--arms", "both"],
    "serve": ["serve", "--host", "0.0.0.0", "--no-auth"],  # noqa: S104 - refused
    "settings": ["settings", "--reset"],
    "status": ["status", "--store", "missing/typo.db"],
    "summaries": ["summaries", "--store", "missing/typo.db"],
    "summarize": ["summarize", "--store", "missing/typo.db"],
    "take-back": ["take-back", "#1", "--store", "missing/typo.db"],
    "threads": ["threads", "--limit", "0"],
    "timeline": ["timeline", "--since", "some day"],
    "upkeep": ["upkeep", "--store", "missing/typo.db"],
    "users": ["users", "--store", "missing/typo.db"],
    "verify": ["verify", "--store", "missing/typo.db"],
    "worker": ["worker", "--store", "memory.db"],
}
FAILURES = [
    ["add", "hello", "--store", "/proc/none.db"],
    ["backup", "/proc/copy.db"],
    ["export", "/proc/all.jsonl"],
    ["history", "--before", "99"],
    ["import", "torn.jsonl"],
    ["key", "remove", "unknown"],
    ["memories", "--approve", "99"],
    ["purge", "nobody", "--yes"],
    ["restore", "not-a-database.db", "--store", "new.db"],
    ["status", "--store", "not-a-database.db"],
    ["verify", "--store", "not-a-database.db"],
]
READING = [
    "history",
    "search x",
    "context x",
    "portrait",
    "memories",
    "timeline",
    "people",
    "reminders",
    "summaries",
    "status",
    "users",
    "mcp --read-only",
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AFORESAID_STORE", "memory.db")
    with aforesaid.open("memory.db", embedder="none") as memory:
        memory.user("ann").add("user", "I like tea")
    Path("not-a-database.db").write_text("just text " * 1_000, encoding="utf-8")
    Path("torn.jsonl").write_text('{"role": "user", "content": "hello"}\n{"role": "us', encoding="utf-8")

    def run(*words: str) -> Result:
        return CliRunner().invoke(app, words)

    return run


def test_every_command_is_tested_here() -> None:
    assert set(get_command(app).commands) == set(WRONG_USE)  # type: ignore[attr-defined]


@pytest.mark.defect("N6")
@pytest.mark.parametrize("command", WRONG_USE)
def test_wrong_use_exits_with_2_and_changes_nothing(run: Run, tmp_path: Path, command: str) -> None:
    result = run(*WRONG_USE[command])
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "missing").exists()
    assert not (tmp_path / "new.db").exists()


def test_a_memory_of_blanks_is_wrong_use(run: Run) -> None:
    result = run("note", "fact", " \t ", "--user", "ann")
    assert result.exit_code == 2
    assert "the text is empty" in result.stderr


@pytest.mark.parametrize("words", FAILURES, ids=" ".join)
def test_a_failure_exits_with_1(run: Run, words: list[str]) -> None:
    result = run(*words)
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output


@pytest.mark.defect("N6")
@pytest.mark.parametrize("words", READING)
def test_a_command_that_reads_creates_neither_a_store_nor_its_folder(run: Run, tmp_path: Path, words: str) -> None:
    result = run(*words.split(), "--store", "new-folder/memory.db")
    assert result.exit_code == 2
    assert "there is no store at new-folder/memory.db, and this command does not create one" in result.stderr
    assert not (tmp_path / "new-folder").exists()


@pytest.mark.defect("N6")
def test_a_dry_run_creates_no_store(run: Run, tmp_path: Path) -> None:
    ok(run("export", "all.jsonl"))
    ok(run("import", "all.jsonl", "--dry-run", "--store", "new-folder/memory.db"))
    assert not (tmp_path / "new-folder").exists()


@pytest.mark.defect("N6")
def test_a_command_that_writes_says_which_folder_it_creates(run: Run, tmp_path: Path) -> None:
    result = run("add", "hello", "--store", "new-folder/memory.db")
    assert "creating the folder new-folder for a new store" in result.stderr
    assert (tmp_path / "new-folder/memory.db").exists()
    assert "creating" not in run("add", "hello again", "--store", "new-folder/memory.db").stderr


@pytest.mark.defect("N6")
def test_the_exit_codes_are_in_the_help(run: Run) -> None:
    assert "Exit codes: 0 done, 1 failed, 2 wrong use" in " ".join(ok(run("--help")).split())


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "message", "0 messages"),
        (1, "message", "1 message"),
        (1_234, "memory", "1,234 memories"),
        (1, "summary", "1 summary"),
        (2, "day", "2 days"),
    ],
)
def test_counts_read_right(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


@pytest.mark.defect("N6")
def test_one_message_is_called_a_message(run: Run) -> None:
    told = ok(run("purge", "ann", "--yes"))
    assert "1 message," in told
    assert "1 messages" not in told


@pytest.mark.defect("N6")
def test_the_progress_of_an_import_counts_messages(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    file = tmp_path / "chat.jsonl"
    file.write_text("".join(f'{{"role": "user", "content": "message {n}"}}\n' for n in range(2_500)), encoding="utf-8")
    with aforesaid.open(":memory:", embedder="none") as memory:
        memory.load(file, "openai", progress=lambda what, done, total: seen.append((what, done, total)))
    # All messages are read and sorted by time before the first one is stored.
    assert {what for what, _, _ in seen} == {"reading messages", "messages"}
    assert [done for what, done, _ in seen if what == "messages"] == [1_000, 2_000, 2_500]
    assert seen[-1][2] == 2_500
    assert all(2_000 <= total <= 3_500 for _, _, total in seen)
