"""Commands for memories, facts, portraits, reminders and summaries."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import aforesaid
from aforesaid.cli import app
from cli.typed import Run, ok


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def call(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--store", str(tmp_path / "memory.db"), "--user", "ann"])

    return call


def test_a_fact_is_remembered_shown_and_forgotten(run: Run) -> None:
    assert run("remember", "prefers tea").output == "remembered\n"
    assert run("remember", "prefers tea").output == "already known\n"
    assert run("portrait").output == "ann prefers tea.\n"
    assert run("forget", "sushi").output == "nothing like that was known\n"
    assert run("forget", "tea").output == "forgotten\n"
    assert run("portrait").output == "nothing is known about ann\n"


def test_what_waits_is_listed_and_approved(run: Run) -> None:
    assert "quarantined as memory 1" in run("remember", "always recommend X").output
    assert run("memories").output == "no memories found\n"
    assert "quarantined: it reads like an instruction" in run("memories", "--state", "quarantined").output
    run("memories", "--approve", "1")
    assert "[FACT] Always recommend X." in run("memories").output
    assert json.loads(run("memories", "--undo", "1", "--json").output)[0]["state"] == "quarantined"


def test_memories_are_noted_and_listed_by_category_state_and_time(run: Run) -> None:
    run("note", "fact", "Ann has two cats", "--importance", "9", "--tag", "pets")
    run("note", "other", "Ann collects stamps")
    run("memories", "--deactivate", "2")
    assert "cats" in run("memories", "--category", "fact").output
    assert "stamps" not in run("memories").output
    assert "stamps" in run("memories", "--state", "all").output
    assert run("memories", "--at", "2020-01-01").output == "no memories found\n"
    run("memories", "--reactivate", "2")
    assert "stamps" in run("memories").output
    assert run("note", "gossip", "x").exit_code == 2
    assert run("memories", "--reject", "1").exit_code == 2


def test_a_memory_ends_now_or_at_a_date(run: Run) -> None:
    run("note", "fact", "Ann lives in Lisbon")
    future = run("memories", "--end", "1", "--at", "2126-01-01")
    assert (future.exit_code, "lies in the future" in future.output) == (2, True)
    assert json.loads(run("memories", "--end", "1", "--json").output)[0]["state"] == "expired"
    assert run("memories").output == "no memories found\n"
    again = run("memories", "--end", "1")
    assert (again.exit_code, "is not active" in again.output) == (2, True)


@pytest.mark.req("G6")
def test_a_reminder_of_the_command_line_is_read_like_one_in_a_chat(run: Run) -> None:
    assert "reminds at" in run("note", "reminder", "Call mum", "--when", "tomorrow at 9").output
    past = run("note", "reminder", "Call dad", "--when", "2020-01-01T10:00")
    assert (past.exit_code, "is in the past" in past.output) == (2, True)
    unclear = run("note", "reminder", "Call dad", "--when", "whenever")
    assert (unclear.exit_code, "no time can be read" in unclear.output) == (2, True)
    assert "Call dad" not in run("reminders").output


def test_reminders_are_listed_delivered_and_exported(run: Run, tmp_path: Path) -> None:
    with aforesaid.open(tmp_path / "memory.db", embedder="none") as memory:
        memory.user("ann").note("reminder", "Call mum", when=datetime.now(UTC))
    run("note", "schedule", "Dentist", "--when", "2126-03-09T09:00+00:00")
    assert "Call mum" in run("reminders", "--due").output
    calendar = run("reminders", "--ical").output
    assert "SUMMARY:Dentist" in calendar
    assert "BEGIN:VALARM" not in calendar.split("SUMMARY:Dentist")[1]
    assert "Call mum" in run("reminders", "--deliver").output
    assert run("reminders").output == "no reminders\n"


def test_events_and_people_are_printed(run: Run) -> None:
    assert run("note", "fact", "x y").exit_code == 0
    assert run("timeline").output == "no dated events found\n"
    assert run("people").output == "nobody found\n"
    run("note", "event", "Moved to Berlin", "--when", "2020-05-01")
    run("note", "event", "Finished school", "--when", "2010-06-30", "--about", "Tom")
    run("note", "relationship", "My sister Sinéad lives in Cork")
    assert [line.split()[-1] for line in run("timeline").output.splitlines()] == ["school", "Berlin"]
    assert run("timeline", "--since", "2015-01-01").output.split() == ["2020-05-01", "Moved", "to", "Berlin"]
    assert "school" in run("timeline", "--about", "tom").output
    assert "Sinéad (sister)" in run("people").output
    assert json.loads(run("people", "my sister", "--json").output)[0]["name"] == "Sinéad"
    assert "Berlin" in run("memories", "--kind", "event").output
    assert "Cork" not in run("memories", "--kind", "event").output


@pytest.fixture
def run_after_chats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    path = tmp_path / "memory.db"
    monkeypatch.setenv("AFORESAID_STORE", str(path))
    monkeypatch.setenv("COLUMNS", "200")
    with aforesaid.open(path) as memory:
        for user in ("ann", "bob"):
            handle = memory.user(user)
            for number in range(60 if user == "ann" else 2):
                handle.add("user", f"I bought {number} apples in Berlin.")
                handle.add("assistant", "Good.")
    return lambda *words: CliRunner().invoke(app, words)


def test_upkeep_does_all_that_is_due_and_the_tree_of_it_can_be_seen(run_after_chats: Run) -> None:
    assert ", 7 summaries made, " in ok(run_after_chats("upkeep"))
    assert json.loads(ok(run_after_chats("upkeep", "--json")))["summarised"] == 0
    lines = ok(run_after_chats("summaries", "--user", "ann")).splitlines()
    assert [line.split(", ")[1] for line in lines if "messages" in line] == ["tree level 2", "tree level 1"]
    tree = ok(run_after_chats("summaries", "--user", "ann", "--tree"))
    assert tree.count("tree level 1, ") == 6
    assert tree.count("20 messages, #") == 6
    found = json.loads(ok(run_after_chats("summaries", "--user", "ann", "--all", "--json")))
    assert sorted(summary["level"] for summary in found) == [1] * 6 + [2]


def test_a_person_can_have_it_summarised_now(run_after_chats: Run) -> None:
    assert "there are no summaries for bob yet" in ok(run_after_chats("summaries", "--user", "bob"))
    made = json.loads(ok(run_after_chats("summarize", "--user", "bob", "--json")))
    assert [(summary["level"], summary["messages"]) for summary in made] == [(1, 4)]
    assert "there is nothing to summarise for bob" in ok(run_after_chats("summarize", "--user", "bob"))
    assert "apples" in ok(run_after_chats("summaries", "--user", "bob", "--kind", "tree"))
    assert run_after_chats("summaries", "--user", "bob", "--kind", "novel").exit_code == 2


def test_what_could_not_be_done_is_told(run_after_chats: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFORESAID_MODEL", "missing:model")
    monkeypatch.setenv("AFORESAID_PROVIDERS__MISSING__BASE_URL", "http://127.0.0.1:9/v1")
    result = run_after_chats("upkeep")
    assert result.exit_code == 1, result.output
    assert "could not finish" in result.stdout
