"""Commands for messages, batches, filters and threads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from aforesaid.cli import app
from cli.typed import Run, as_json, ok


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("AFORESAID_STORE", str(tmp_path / "memory.db"))
    monkeypatch.setenv("AFORESAID_USER", "ann")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TZ", "UTC")

    def run(*words: str, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, words, input=stdin)

    return run


def lines(*messages: object) -> str:
    return "".join(json.dumps(message) + "\n" for message in messages)


BATCH = lines(
    {"role": "user", "text": "a blue boat", "at": "2026-03-01T09:00", "id": "m1", "metadata": {"n": 1}},
    {"role": "assistant", "text": "which boat", "at": "2026-03-02T09:00", "id": "m2"},
    {"role": "user", "text": "the boat of bob", "at": "2026-03-03T09:00", "id": "m3", "author": "bob"},
)


def test_a_file_of_messages_is_stored_at_once_and_twice_is_as_good_as_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / "batch.jsonl").write_text(BATCH)
    assert "stored 3 messages" in ok(run("add-many", str(tmp_path / "batch.jsonl")))
    assert "stored 0 messages; 3 were stored before" in ok(run("add-many", "-", stdin=BATCH))
    assert ok(run("count")).strip() == "3"
    done = as_json(run("add-many", "-", "--json", "--thread", "other", stdin=BATCH))
    assert done == {"ids": ["m1", "m2", "m3"], "durable": True, "stored": 3, "duplicates": 0}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("{", "line 1 of standard input is not a JSON object"),
        (lines({"role": "user", "text": "x"}) + "[]", "line 2 of standard input is not a JSON object"),
        (lines({"role": "user", "text": "x", "at": "soon"}), "line 1 of standard input: 'soon' is not a time"),
        (lines({"role": "user", "text": "x"}, {"role": "user"}), "message 1 of the batch"),
        (b"\xff\xfe", "line 1 of standard input is not a JSON object"),
    ],
    ids=["broken", "no object", "time", "no text", "not UTF-8"],
)
def test_a_batch_with_something_wrong_stores_nothing(run: Run, given: str | bytes, told: str) -> None:
    refused = run("add-many", "-", stdin=given)
    assert (refused.exit_code, told in refused.stderr) == (2, True), refused.stderr
    assert ok(run("count")).strip() == "0"
    assert run("add-many", "missing.jsonl").exit_code == 2


def test_a_file_is_attached_and_written_again(run: Run, tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(b"\x89PNG a cat")
    ok(run("add", "--attach", str(tmp_path / "cat.png")))
    (part,) = json.loads(as_json(run("history", "--json"))[0]["details"])["parts"]
    assert (part["type"], part["media_type"], part["name"]) == ("image", "image/png", "cat.png")
    assert run("attachment", part["hash"]).stdout_bytes == b"\x89PNG a cat"
    copy = str(tmp_path / "copy.png")
    ok(run("attachment", part["hash"], "--output", copy))
    assert Path(copy).read_bytes() == b"\x89PNG a cat"
    assert run("attachment", part["hash"], "--output", copy).exit_code == 2, "it exists"
    assert run("attachment", "0" * 64).exit_code == 1


def test_history_shows_tool_calls(run: Run) -> None:
    call = {"id": "c1", "name": "weather", "arguments": "{}"}
    ok(run("add-many", "-", stdin=json.dumps({"role": "assistant", "tool_calls": [call]})))
    assert "[called weather: {}]" in ok(run("history"))


def test_history_search_and_count_take_the_same_filters(run: Run) -> None:
    ok(run("add-many", "-", stdin=BATCH))
    filters = {
        "a blue boat": ("--metadata", '{"n": 1}'),
        "which boat": ("--role", "assistant"),
        "the boat of bob": ("--author", "bob"),
    }
    for text, where in filters.items():
        assert [each["text"] for each in as_json(run("history", "--json", *where))] == [text]
        found = as_json(run("search", "boat", "--json", "--arms", "keyword", *where))
        assert [each["text"] for each in found] == [text]
        assert as_json(run("count", "--json", *where)) == {"count": 1}
    assert ok(run("count", "--since", "2026-03-02", "--until", "2026-03-03")).strip() == "1"
    wrong = run("count", "--metadata", "n=1")
    assert (wrong.exit_code, "--metadata must be a JSON object" in wrong.stderr) == (2, True)


def test_threads_are_listed_newest_first(run: Run) -> None:
    assert "there are no messages for bob" in ok(run("add", "hi", "--user", "ann")) + ok(
        run("threads", "--user", "bob")
    )
    ok(run("add-many", "-", "--thread", "boats", stdin=BATCH))
    first, second = ok(run("threads")).splitlines()
    assert "direct:ann  1 message: hi" in first
    assert "boats  3 messages: the boat of bob" in second
    assert [each["id"] for each in as_json(run("threads", "--json", "--before", "direct:ann"))] == ["boats"]


def test_a_message_can_be_stored_with_metadata_and_what_it_replies_to(run: Run) -> None:
    ok(
        run(
            "add", "hello", "--metadata", '{"topic": "home"}', "--reply-to", "m1", "--kind", "voice", "--language", "en"
        )
    )
    assert ok(run("count", "--metadata", '{"topic": "home"}')).strip() == "1"


def test_a_message_is_edited_taken_back_and_erased(run: Run) -> None:
    ok(run("add-many", "-", stdin=BATCH))
    assert "ann: a red boat" in ok(run("edit", "m1", "a red boat"))
    assert run("edit", "m1").exit_code == 2
    assert "m2 is taken back" in ok(run("take-back", "m2"))
    assert "m2 was taken back before" in ok(run("take-back", "m2"))
    assert run("erase", "m3", stdin="n\n").exit_code == 1
    assert "erased 1 message" in ok(run("erase", "m3", "--yes"))
    assert [each["text"] for each in as_json(run("history", "--json"))] == ["a red boat"]
    assert run("take-back", "never").exit_code == 1


def test_a_thread_is_cleared(run: Run) -> None:
    ok(run("add-many", "-", "--thread", "boats", stdin=BATCH))
    ok(run("add", "hi"))
    assert run("clear", "--thread", "boats", stdin="n\n").exit_code == 1
    assert "took back 3 messages in boats" in ok(run("clear", "--thread", "boats", "--yes"))
    assert as_json(run("clear", "--thread", "boats", "--erase", "--yes", "--json")) == {"count": 0}
    assert [each["text"] for each in as_json(run("history", "--json"))] == ["hi"]


def test_ids_are_shown_and_taken_with_and_without_the_hash(run: Run) -> None:
    ok(run("add", "the sun is out", "--at", "2026-03-01T09:00"))
    ok(run("add", "the moon is out", "--at", "2026-03-01T09:01", "--id", "m-2"))
    assert ok(run("history")).splitlines() == [
        "#1   2026-03-01 09:00  ann: the sun is out",
        "m-2  2026-03-01 09:01  ann: the moon is out",
    ]
    assert "  #1  2026-03-01 09:00  ann: the sun is out" in ok(run("search", "sun"))
    ok(run("edit", "1", "the sun is gone"))
    assert "the sun is gone" in ok(run("history", "--before", "m-2"))
    ok(run("add", "wrong", "--at", "2026-03-01T09:02"))
    assert "wrong" not in ok(run("history", "--before", "4"))
    ok(run("take-back", "4"))
    ok(run("erase", "#4", "1", "--yes"))
    assert ok(run("history")).splitlines() == ["m-2  2026-03-01 09:01  ann: the moon is out"]


def test_the_id_of_a_platform_comes_before_a_number(run: Run) -> None:
    ok(run("add", "first"))
    ok(run("add", "second", "--id", "1"))
    ok(run("edit", "1", "changed"))
    shown = ok(run("history"))
    assert "first" in shown
    assert "second" not in shown


def test_an_id_that_is_missing_or_unknown_says_how_to_write_it(run: Run) -> None:
    ok(run("add", "hello"))
    for words in (["edit"], ["take-back"], ["erase"]):
        missing = run(*words)
        assert missing.exit_code == 2
        assert "write '#2' in quotes, or 2" in " ".join(missing.stderr.split())
    for words in (["edit", "9", "x"], ["take-back", "#9"], ["erase", "9", "--yes"], ["history", "--before", "#9"]):
        unknown = run(*words)
        assert unknown.exit_code == 1
        assert "'ann' has no message '" in unknown.stderr
        assert "write '#2' in quotes, or 2" in unknown.stderr


def test_a_user_nobody_knows_is_named(run: Run) -> None:
    ok(run("add", "hello"))
    assert "there is no user 'nobody'; run: aforesaid users" in ok(run("search", "hello", "--user", "nobody"))
    assert "there is no user 'nobody'; run: aforesaid users" in ok(run("history", "--user", "nobody"))
    assert "has data in the space default" in ok(run("search", "hello", "--space", "guild"))
    assert "nothing found; --min-score 0" in ok(run("search", "zebra"))


@pytest.mark.parametrize("command", ["history", "portrait", "memories", "summaries"])
def test_a_user_as_an_argument_is_told_to_be_an_option(run: Run, command: str) -> None:
    refused = run(command, "bob")
    assert refused.exit_code == 2
    assert "use --user bob" in " ".join(refused.stderr.split())


def test_words_without_quotes_are_told_to_be_quoted(run: Run) -> None:
    refused = run("search", "berlin", "flat")
    assert refused.exit_code == 2
    assert "Put a text of several words in quotes" in " ".join(refused.stderr.split())
