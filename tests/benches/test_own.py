"""`bench/eval.py own`: the benchmark on labelled transcripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from evaluation.commands import commands as app
from typer.testing import CliRunner, Result

from benches import samples

GERMAN = """# id: de-people-01
# lang: de
# kind: people
== 2025-01-12 19:40
Jonas: Ich wohne jetzt in Bremen, in der Nähe vom Hafen.
Eva: Mein Bruder Levin ist Zahnarzt geworden.
== 2025-02-20 09:00
Jonas: Bitte schreib mir immer auf Deutsch.
Q single | Wo lebt Jonas? | 1 | in Bremen
Q none | Wie heißt Evas Katze? | | nie gesagt
F Jonas | Jonas wohnt in Bremen. | home | 7 | 1
F Jonas | Jonas möchte immer auf Deutsch angeschrieben werden. | instruction | 8 | 3
"""

WISH = """\
# id: de-assistant-02
# lang: de
# kind: assistant
== 2025-02-20 09:00
Jonas: Bitte schreib mir immer auf Deutsch.
assistant: Gern, ab jetzt auf Deutsch.
F Jonas | Jonas möchte immer auf Deutsch angeschrieben werden. | instruction | 8 | 1
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "en.txt").write_text(samples.TRANSCRIPT, encoding="utf-8")
    (folder / "de.txt").write_text(GERMAN, encoding="utf-8")
    samples.write(folder / "other.json", samples.locomo())
    return folder


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["own", *words])


def report(*words: str) -> Any:  # noqa: ANN401
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_recall_and_contexts_by_language_chat_and_question(data: Path) -> None:
    found = report(str(data), "--parts", "recall,contexts")
    assert (found["conversations"], found["turns"], found["facts"]) == (2, 6, None)
    keyword, complete = found["recall"]["rankings"]
    assert (keyword["ranking"], complete["ranking"]) == ("keyword", "all")
    assert complete["overall"]["questions_by_turn"] == 3
    assert {name: each["questions_by_turn"] for name, each in complete["languages"].items()} == {"de": 1, "en": 2}
    assert {name: each["questions_by_turn"] for name, each in complete["kinds"].items()} == {
        "assistant": 2,
        "people": 1,
    }
    assert [each["category"] for each in complete["categories"]] == ["multi", "single"]
    by_turn = [each["by_turn"]["recall_at_10"] for each in complete["languages"].values()]
    # Everything of a conversation of three turns is among the first ten hits.
    assert by_turn == [1.0, 1.0]
    way = [each for each in found["contexts"]["ways"] if each["way"] == "default"]
    assert [each["budget"] for each in way] == [1_000, 2_000, 4_000, 8_000]
    assert way[-1]["languages"] == {"de": 100.0, "en": 100.0}
    assert way[-1]["kinds"] == {"assistant": 100.0, "people": 100.0}
    assert way[-1]["categories"] == {"multi": 100.0, "single": 100.0}


def test_what_was_never_said(data: Path) -> None:
    keyword, complete = report(str(data), "--parts", "recall")["recall"]["rankings"]
    assert keyword["never_said"] is None
    never_said = complete["never_said"]
    assert never_said["questions"] == 2
    assert never_said["nothing_found"] in {0, 0.5, 1}
    assert 0 <= never_said["told_apart"] <= 1


def test_facts_and_instructions(data: Path) -> None:
    (data / "wish.txt").write_text(WISH, encoding="utf-8")
    found = report(str(data), "--parts", "facts")
    assert (found["recall"], found["contexts"]) == (None, None)
    facts = found["facts"]
    assert (facts["overall"]["facts"], facts["overall"]["labelled_instructions"]) == (4, 2)
    assert facts["kinds"]["assistant"]["instructions"] == 1.0
    assert facts["kinds"]["people"]["instructions"] == 0.0, "Jonas asks it of Eva, not of an assistant"
    assert facts["languages"]["en"]["instructions"] is None
    assert set(facts["kinds"]) == {"assistant", "people"}


def test_tables_for_people(data: Path) -> None:
    result = run(str(data))
    assert result.exit_code == 0, result.output
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert "2 conversations, 6 turns" in lines
    starts = [line[:18].strip() for line in lines]
    for row in ("all", "de", "en", "chat: people", "question: multi"):
        assert any(start.startswith(row) for start in starts), row
    assert "2 questions about what was never said:" in lines
    assert max(len(line) for line in lines if str(data) not in line) <= 90


def test_what_weights_were_trained_on_is_marked(data: Path) -> None:
    """By their ids: de-people-01 was trained on, and de-work-33 is in the test part."""
    other = GERMAN.replace("de-people-01", "de-work-33")
    (data / "test.txt").write_text(other, encoding="utf-8")
    assert report(str(data), "--parts", "facts")["trained_on"] == 1
    assert "trained on: 1 of these" in run(str(data), "--parts", "facts").stdout
    assert "trained on" not in run(str(data / "test.txt"), "--parts", "facts").stdout


def test_a_part_of_the_transcripts(data: Path, tmp_path: Path) -> None:
    ids = tmp_path / "ids"
    ids.write_text("de-people-01\n", encoding="utf-8")
    found = report(str(data), "--parts", "facts", "--only", str(ids))
    assert (found["conversations"], list(found["facts"]["languages"])) == (1, ["de"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--parts", "speed"], "unknown parts 'speed'; use one or more of recall, contexts, facts"),
        (["--parts", ","], "unknown parts"),
        (["--only", "missing"], "missing cannot be read as a list of ids"),
        (["--only", "empty"], "empty lists no ids"),
        (["--only", "others"], "has no labelled transcripts with one of the given ids"),
    ],
)
def test_wrong_options(data: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], complaint: str) -> None:
    monkeypatch.chdir(data)
    Path("empty").touch()
    Path("others").write_text("xx-people-99\n", encoding="utf-8")
    result = run(str(data), *words)
    assert (result.exit_code, complaint in result.stderr) == (2, True), result.output


def test_no_transcripts(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(str(data / "other.json"))
    assert (result.exit_code, "has no labelled transcripts" in result.stderr) == (2, True)
    monkeypatch.chdir(data)
    result = run()
    assert (result.exit_code, "does not exist" in result.stderr) == (2, True)


def test_two_transcripts_with_one_id(data: Path) -> None:
    (data / "copy").mkdir()
    (data / "copy" / "de.txt").write_text(GERMAN, encoding="utf-8")
    result = run(str(data))
    assert (result.exit_code, "two transcripts with the same id" in result.stderr) == (2, True)
