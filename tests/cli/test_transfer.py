"""Taking data out and in, and erasing people, from the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import count
from pathlib import Path

import apsw
import pytest
from typer.testing import CliRunner, Result

import aforesaid
from aforesaid.cli import app
from aforesaid.server.auth import Keys
from cli.typed import Run, as_json, ok
from pg import clean_database


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("AFORESAID_STORE", str(tmp_path / "memory.db"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        memory.user("ann").add("user", "I live in Berlin")
        memory.user("bob").add("user", "so do I")

    def run(*words: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, words, input=stdin)

    return run


def test_export_and_import(run: Run) -> None:
    assert "2 messages" in ok(run("export", "all.jsonl"))
    assert as_json(run("export", "all.jsonl.gz", "--json"))["rows"]["message"] == 2
    shown = ok(run("import", "all.jsonl", "--store", "new.db", "--dry-run"))
    assert "nothing was stored" in shown
    assert as_json(run("import", "all.jsonl.gz", "--store", "new.db", "--json"))["new"]["message"] == 2
    assert as_json(run("import", "all.jsonl", "--store", "new.db", "--json"))["new"].get("message", 0) == 0
    again = run("export", "all.jsonl")
    assert (again.exit_code, "exists already" in again.output) == (2, True)


def test_one_users_data_is_exported_to_load_or_to_read(run: Run, tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        memory.user("ann", space="guild").add("user", "elsewhere")
        memory.user("ann").add("user", "look", parts=[aforesaid.Part.of(b"a cat", name="cat.png")])
    assert "2 messages" in ok(run("export", "ann.jsonl", "--user", "ann"))
    assert "so do I" not in (tmp_path / "ann.jsonl").read_text("utf-8")
    assert "2 messages and 1 attachment" in ok(run("export", "ann.md", "--user", "ann"))
    text = (tmp_path / "ann.md").read_text("utf-8")
    assert "**ann**: I live in Berlin\n" in text
    assert "elsewhere" not in text
    assert (tmp_path / "ann.md.attachments/cat.png").read_bytes() == b"a cat"
    ok(run("export", "away.txt", "-u", "ann", "--space", "guild", "--format", "markdown"))
    assert "**ann**: elsewhere\n" in (tmp_path / "away.txt").read_text("utf-8")


def test_an_export_names_what_is_missing_in_the_command(run: Run, tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        memory.user("cid", space="guild").add("user", "hello")
    everybody = run("export", "all.md")
    assert (everybody.exit_code, "is of one user" in everybody.stderr) == (2, True)
    nobody = run("export", "x.md", "--user", "nobody")
    assert (nobody.exit_code, "there is no user 'nobody'; run: aforesaid users" in nobody.stderr) == (1, True)
    elsewhere = run("export", "x.md", "--user", "cid")
    assert (elsewhere.exit_code, "has data in the space guild: pass --space" in elsewhere.stderr) == (1, True)
    assert run("export", "x.jsonl", "--space", "guild").exit_code == 2
    assert not (tmp_path / "x.md").exists()


def test_the_counts_of_an_export_read_right(run: Run, tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        ann = memory.user("ann", actor="ann")
        ann.remember("I like tea")
        ann.remember("I live in Bern")
        ann.forget("tea")
        ann.forget("Bern")
    told = ok(run("export", "all.jsonl"))
    assert "versions of the facts" in told
    assert "forgotten statements" in told
    assert "audit rows" in told
    assert not any(wrong in told for wrong in ("factss", "forgottens", "audits"))


def test_two_stores_connected_by_a_pipe(run: Run, tmp_path: Path) -> None:
    del run
    command = str(Path(sys.executable).with_name("aforesaid"))

    def call(*words: str, given: bytes = b"") -> bytes:
        done = subprocess.run([command, *words], input=given, capture_output=True, cwd=tmp_path, check=True)
        return done.stdout

    written = call("export", "-", "--store", "memory.db")
    read = call("import", "-", "--store", "piped.db", "--json", given=written)
    assert json.loads(read)["new"]["message"] == 2


def test_damaged_lines_are_listed_and_the_exit_code_is_1(run: Run, tmp_path: Path) -> None:
    ok(run("export", "all.jsonl"))
    path = tmp_path / "all.jsonl"
    path.write_text(path.read_text("utf-8").replace("Berlin", "Munich"), "utf-8")
    result = run("import", "all.jsonl", "--store", "new.db")
    assert result.exit_code == 1
    assert "line 2: its hash does not match: it is not what was stored" in result.stdout


@pytest.mark.defect("N4")
def test_an_import_says_whose_memory_it_became_and_what_to_type_next(run: Run, tmp_path: Path) -> None:
    chat = tmp_path / "WhatsApp Chat with Bob.txt"
    chat.write_text(
        "14.03.26, 21:05 - Ann Lee: tea?\n14.03.26, 21:06 - Ann Lee: green\n14.03.26, 21:07 - Bob: yes\n", "utf-8"
    )
    tried = ok(run("import", str(chat), "--dry-run", "--store", "new store.db"))
    assert f"next: aforesaid import '{chat}' --store 'new store.db'" in tried
    shown = ok(run("import", str(chat)))
    assert "memory of Ann Lee: 2 messages" in shown
    assert "memory of Bob: 1 message" in shown
    assert "next: aforesaid history --user 'Ann Lee'" in shown
    assert "green" in ok(run("history", "--user", "Ann Lee"))
    assert as_json(run("import", str(chat), "--json"))["users"][0] == {
        "id": "Ann Lee",
        "name": "Ann Lee",
        "messages": 2,
        "memories": 0,
    }


def test_migrate(run: Run) -> None:
    assert "counts and message hashes match" in ok(run("migrate", "memory.db", "other.db"))
    assert as_json(run("migrate", "memory.db", "other.db", "--json"))["new"] == {}
    same = run("migrate", "memory.db", "sqlite:memory.db")
    assert (same.exit_code, "are the same store" in same.output) == (2, True)
    assert run("migrate", "missing.db", "other.db").exit_code == 2


def test_migrate_copies_attachments_and_lists_those_that_are_lost(run: Run, tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        parts = [aforesaid.Part.of(b"a cat"), aforesaid.Part.of(b"a dog")]
        cat, dog = (part.hash or "" for part in memory.user("ann").add("user", "look", parts=parts).message.parts)
    (tmp_path / "memory.db.attachments" / dog[:2] / dog).unlink()
    done = run("migrate", "memory.db", "files:other")
    assert "1 attachment;" in ok(done)
    assert f"1 attachment could not be read from FROM: {dog}" in done.stderr
    with aforesaid.open(f"files:{tmp_path / 'other'}", embedder="none") as memory:
        assert memory.attachment(cat) == b"a cat"


def test_migrate_refuses_a_target_without_a_folder_for_attachments_before_it_copies(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        (part,) = memory.user("ann").add("user", parts=[aforesaid.Part.of(b"a cat")]).message.parts
    postgres = clean_database()
    refused = run("migrate", "memory.db", postgres)
    assert (refused.exit_code, "name one with the setting `attachments`" in refused.stderr) == (1, True)
    assert as_json(run("users", "--store", postgres, "--json")) == []
    monkeypatch.setenv("AFORESAID_ATTACHMENTS", str(tmp_path / "bytes"))
    ok(run("migrate", "memory.db", postgres))
    with aforesaid.open(postgres, embedder="none") as memory:
        assert memory.attachment(part.hash or "") == b"a cat"


def test_after_an_import_of_memories_alone_the_next_command_shows_them(run: Run, tmp_path: Path) -> None:
    entry = {"id": "1", "memory": "likes tea", "user_id": "cid", "created_at": "2026-03-01T10:00:00Z"}
    (tmp_path / "mem0.json").write_text(json.dumps([entry]), "utf-8")
    assert "next: aforesaid memories --user cid" in ok(run("import", "mem0.json", "--format", "mem0"))
    assert "likes tea" in ok(run("memories", "--user", "cid"))


def test_purge_asks_first(run: Run) -> None:
    refused = run("purge", "ann")
    assert (refused.exit_code, "pass --yes" in refused.output) == (2, True)
    assert "deleted ann: 1 message, 0 summaries, 0 memories" in ok(run("purge", "ann", "--yes"))
    assert [user["id"] for user in as_json(run("users", "--json"))] == ["bob"]
    unknown = run("purge", "carol", "--yes")
    assert (unknown.exit_code, "there is no user 'carol'" in unknown.output) == (1, True)
    assert as_json(run("purge", "bob", "--yes", "--json"))["purged"]["messages"] == 1


def test_purge_names_the_keys_of_the_user_that_are_still_valid(run: Run, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "memory.db.keys.json")
    phone, _ = keys.add("phone", "app", space="default", user="ann")
    for name, user, space in (("app", None, None), ("bobs", "bob", "default"), ("guilds", "ann", "guild")):
        keys.add(name, "app", space=space, user=user)
    told = run("purge", "ann", "--yes").stderr
    assert told == (
        f"the API key phone ({phone.id}) is still valid for ann: what it stores creates the user again; "
        f"to revoke it, run: aforesaid key remove {phone.id}\n"
    )
    assert "the API key guilds" in run("purge", "ann", "--every-space", "--yes").stderr
    ok(run("key", "remove", phone.id))
    assert run("purge", "ann", "--yes").stderr == ""


def test_a_purge_that_was_hindered_is_repeated_until_nothing_is_left(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = count(step=30.0)  # a minute passes in three looks at it
    monkeypatch.setattr("aforesaid.store.sqlite.writer.monotonic", lambda: next(clock))
    reader = apsw.Connection(str(tmp_path / "memory.db"))
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM metadata").fetchall()
    for _ in range(2):
        hindered = run("purge", "ann", "--yes")
        assert (hindered.exit_code, "another process still reads" in hindered.stderr) == (1, True)
    reader.close()
    assert ok(run("purge", "ann", "--yes")).splitlines()[0] == "nothing is left of ann, who was deleted before"
    again = as_json(run("purge", "ann", "--yes", "--json"))
    assert (again["space"], again["purged"]["messages"], again["other_spaces"]) == ("default", 0, [])
    unknown = run("purge", "carol", "--yes")
    assert (unknown.exit_code, "there is no user 'carol'" in unknown.output) == (1, True)


def test_purge_names_the_other_spaces_of_a_user_and_deletes_in_all_if_asked(run: Run, tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        for space in ("guild", "my club"):
            memory.user("ann", space=space).add("user", f"hello {space}")
        memory.user("bob", space="guild").add("user", "hello")
    one = run("purge", "ann", "--yes")
    assert "deleted ann: 1 message" in ok(one)
    assert (
        "ann also has 1 message in the space guild; to delete them, run: aforesaid purge ann --space guild"
        in one.stderr
    )
    assert "run: aforesaid purge ann --space 'my club'" in one.stderr
    unknown = run("purge", "ann", "--space", "typo", "--yes")
    assert (unknown.exit_code, "has data in the spaces guild, my club: pass --space" in unknown.stderr) == (1, True)
    gone = run("purge", "ann", "--yes")
    assert "nothing is left of ann, who was deleted before" in ok(gone)
    assert "run: aforesaid purge ann --space guild" in gone.stderr
    both = run("purge", "ann", "--space", "guild", "--every-space", "--yes")
    assert (both.exit_code, "either --space or --every-space" in both.stderr) == (2, True)
    told = ok(run("purge", "ann", "--every-space", "--yes"))
    assert "deleted ann in the space guild: 1 message" in told
    assert "deleted ann in the space my club: 1 message" in told
    assert [(user["space"], user["id"]) for user in as_json(run("users", "--json"))] == [
        ("default", "bob"),
        ("guild", "bob"),
    ]
    assert "nothing is left of ann in the space guild" in ok(run("purge", "ann", "--every-space", "--yes"))
    done = as_json(run("purge", "bob", "--yes", "--json"))
    assert (done["space"], done["purged"]["messages"], done["other_spaces"]) == ("default", 1, ["guild"])


def test_the_terminal_chat_writes_the_copy_to_a_new_file_and_prints_its_path(run: Run, tmp_path: Path) -> None:
    (tmp_path / "my-data.json").write_text("mine")
    shown = ok(run("chat", "--user", "ann", stdin="/export\n/quit\n"))
    written = tmp_path / "my-data-2.json"
    assert f"wrote {written}" in shown
    assert json.loads(written.read_text("utf-8"))["messages"][0]["text"] == "I live in Berlin"
    assert written.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "my-data.json").read_text() == "mine"


def test_the_terminal_chat_erases_after_a_yes(run: Run) -> None:
    assert "Everything is erased: 1 message" in ok(
        run("chat", "--user", "ann", stdin="/forget_me\nerase everything\n/quit\n")
    )
    assert [user["id"] for user in as_json(run("users", "--json"))] == ["bob"]


def test_what_is_restored_is_verified(run: Run, tmp_path: Path) -> None:
    ok(run("backup", "copy.db"))
    assert as_json(run("restore", "copy.db", "--store", "back.db", "--json"))["verified"] is True
    connection = apsw.Connection(str(tmp_path / "copy.db"))
    connection.execute("UPDATE log SET text = 'I live in Munich' WHERE seq = 1")
    connection.close()
    wrong = run("restore", "copy.db", "--store", "wrong.db")
    assert (wrong.exit_code, "#1 is not what was stored" in wrong.stdout) == (1, True)


@pytest.mark.defect("N4")
def test_a_chat_from_standard_input_is_read_as_a_whole(run: Run) -> None:
    long_ago = "".join(f"02/03/26, 21:05 - Ann: {number} {'x' * 200}\n" for number in range(1_500))
    chat = f"{long_ago}03/25/26, 21:06 - Ann: the first day above twelve\n"
    found = as_json(run("import", "-", "--store", "piped.db", "--json", stdin=chat.encode()))
    assert (found["format"], found["new"]["message"]) == ("whatsapp", 1_501)
    first, *_ = as_json(run("history", "--store", "piped.db", "--user", "Ann", "--limit", "2000", "--json"))
    assert first["at"].startswith("2026-02-03")


def test_memories_of_mem0_are_read_from_standard_input(run: Run) -> None:
    memory = {"user_id": "ann", "created_at": "2026-03-01T12:00:00Z"}
    lines = "".join(json.dumps({"id": str(n), "memory": f"likes tea {n}", **memory}) + "\n" for n in range(3))
    found = as_json(run("import", "-", "--store", "piped.db", "--json", stdin=lines.encode()))
    assert (found["format"], found["found"]) == ("mem0", {"memory": 3})
