"""`bench/eval.py summaries`: the figures, the formats, and the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from evaluation.commands import commands as app
from evaluation.summaries import load_chats
from evaluation.summaries.chats import Chat
from evaluation.summaries.content_metrics import facts_covered, small_talk
from evaluation.summaries.methods import METHODS
from evaluation.summaries.rouge import longest_common_subsequence, rouge
from typer.testing import CliRunner, Result

from aforesaid.errors import InvalidInput
from aforesaid.models.offline import Spoken, count_words
from benches import samples

TURNS = (
    Spoken("Ann", "Hello Bob! How are you?"),
    Spoken("Bob", "Fine, thanks."),
    Spoken("Ann", "I bought a small boat in Kiel, and we will sail it to Denmark in July with my two brothers."),
    Spoken("Bob", "Wow!"),
    Spoken("Bob", "My exam is on Monday."),
)


def test_rouge_by_hand() -> None:
    score = rouge("the cat sat on the mat", "the cat lay on a mat")
    assert score.one == pytest.approx(4 / 6)
    assert score.two == pytest.approx(1 / 5)
    assert score.longest == pytest.approx(4 / 6)
    assert rouge("cats", "cat").one == 1
    assert rouge("", "a cat") == rouge("dog", "") == (0, 0, 0)


@pytest.mark.parametrize(
    ("one", "other", "length"), [("abcbdab", "bdcaba", 4), ("abc", "abc", 3), ("abc", "xyz", 0), ("", "a", 0)]
)
def test_the_longest_common_subsequence(one: str, other: str, length: int) -> None:
    assert longest_common_subsequence(one, other) == length


def test_a_fact_is_covered_by_half_of_its_words_without_names() -> None:
    chat = Chat(TURNS, facts=("Ann bought a boat in Kiel", "Bob has an exam on Monday", "Ann loves skiing holidays"))
    assert facts_covered("Ann: bought a boat. Bob: nothing.", chat) == (1, 3)
    assert facts_covered("Bob: My exams start on Monday.", chat) == (1, 3)
    assert facts_covered("", chat) == (0, 3)


def test_small_talk_has_nothing_in_it() -> None:
    chat = Chat(TURNS, ("x",))
    summary = "Ann: Hello Bob! How are you? I bought a small boat.\nBob: That's great, Ann! My exam is on Monday."
    assert small_talk(summary, chat) == (3, 5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("words", [1, 7, 20, 200])
def test_every_method_keeps_to_the_room(method: str, words: int) -> None:
    assert count_words(METHODS[method](TURNS, words)) <= words


def test_the_simple_methods_do_what_they_are_called() -> None:
    assert METHODS["first three turns"](TURNS, 10) == "Ann: Hello Bob! How are you?\nBob: Fine, thanks.\nAnn:"
    assert METHODS["first turns"](TURNS, 200).endswith("Bob: My exam is on Monday.")
    assert METHODS["longest sentences"](TURNS, 21).startswith("Ann: I bought a small boat")


def test_the_room_does_not_depend_on_what_people_wrote() -> None:
    long = Spoken("Ann", "word " * 400)
    assert Chat((long,), ("short",)).room() == Chat((long,), ("a long summary " * 50,)).room() == 100
    assert Chat(TURNS, ("x",)).room() == 20
    assert Chat((long, long), ("x",)).room() == 120
    assert Chat(TURNS, facts=("x",)).room() == 120
    assert Chat(TURNS, facts=("x",)).room(33) == 33


DIALOGUE = "#Person1#: I lost my passport in Rome yesterday.\n#Person2#: Oh no!\nCall the embassy on Monday."
MEETING = {
    "meeting_transcripts": [
        {"speaker": "Chair", "content": "{vocalsound} Welcome ."},
        {"speaker": "Ann", "content": "The budget for the bridge is 40 million ."},
        {"speaker": "Bob", "content": "{disfmarker}"},
    ],
    "general_query_list": [{"query": "Summarize.", "answer": "The bridge costs 40 million."}],
    "specific_query_list": [{"query": "?", "answer": "The budget.", "relevant_text_span": [["1", "1"]]}],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    rows = [
        {"fname": "1", "dialogue": DIALOGUE, "summary": "#Person1# lost a passport."},
        {"fname": "2", "dialogue": DIALOGUE, "summary1": "A passport.", "summary2": "An embassy."},
        {"fname": "3", "dialogue": "#Person1#: ", "summary": "Nothing."},
    ]
    (folder / "dialogsum.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (folder / "chats.csv").write_text(
        'id,dialogue,summary\n1,"Ann: I sold the red car.\nBob: To whom?",Ann sold a car.\n', encoding="utf-8"
    )
    (folder / "meetings.jsonl").write_text(json.dumps(MEETING), encoding="utf-8")
    value = samples.locomo()
    value[0]["observation"] = {"session_2_observation": {"Tom": [["Tom owns a ladder.", "D1:2"]]}}
    samples.write(folder / "locomo.json", value)
    (folder / "other.json").write_text('{"a": 1} {"b": 2}', encoding="utf-8")
    return folder


def test_every_format_is_known_by_its_content(data: Path) -> None:
    found = {chats.format: chats for chats in load_chats(data)}
    assert set(found) == {"DialogSum", "SAMSum", "QMSum", "QMSum passages", "LoCoMo"}
    first, second = found["DialogSum"].chats
    assert first.turns == (
        Spoken("#Person1#", "I lost my passport in Rome yesterday."),
        Spoken("#Person2#", "Oh no! Call the embassy on Monday."),
    )
    assert second.summaries == ("A passport.", "An embassy.")
    assert [count.number for count in found["DialogSum"].left_out] == [1]
    assert found["SAMSum"].chats[0].summaries == ("Ann sold a car.",)
    assert [turn.text for turn in found["QMSum"].chats[0].turns] == [
        "Welcome .",
        "The budget for the bridge is 40 million .",
    ]
    assert [turn.speaker for turn in found["QMSum passages"].chats[0].turns] == ["Ann"]
    (session,) = found["LoCoMo"].chats
    assert session.facts == ("Tom owns a ladder.",)
    assert session.turns[0].at is not None


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.jsonl", '{"dialogue": ', "line 1 is not JSON"),
        ("a.csv", 'dialogue,summary\n"Ann: hi', "not valid CSV"),
        ("a.jsonl", '{"meeting_transcripts": []}', "has no 'general_query_list'"),
        (
            "a.jsonl",
            json.dumps({**MEETING, "specific_query_list": [{"answer": "x", "relevant_text_span": [["1"]]}]}),
            "first and a last",
        ),
        ("a.json", "[1, 2]", "no chats with summaries"),
        ("a.txt", "hello", "no chats with summaries"),
    ],
)
def test_wrong_files(tmp_path: Path, name: str, content: str, complaint: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(InvalidInput, match=complaint):
        load_chats(tmp_path)


def test_nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        load_chats(tmp_path / "nothing")


Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    def run(*words: str) -> Result:
        return CliRunner().invoke(app, [*words])

    return run


def as_json(result: Result) -> Any:  # noqa: ANN401
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["data_sets"]


def test_the_figures_as_json(run: Run, data: Path) -> None:
    reports = {report["format"]: report for report in as_json(run("summaries", str(data), "--json"))}
    locomo = reports["LoCoMo"]
    assert (locomo["chats"], locomo["facts"], locomo["room"]) == (1, 1, 120)
    assert [figures["method"] for figures in locomo["methods"]] == list(METHODS)
    assert locomo["methods"][-1]["facts_covered"] == 1
    assert locomo["methods"][-1]["rouge_1"] is None
    samsum = reports["SAMSum"]["methods"][-1]
    assert 0 < samsum["rouge_1"] <= 1
    assert samsum["facts_covered"] is None


def test_the_figures_as_tables(run: Run, data: Path) -> None:
    result = run("summaries", str(data), "--words", "30")
    assert result.exit_code == 0
    assert result.stdout.count("longest sentences") == 5
    assert "length of a summary: 30 words on average" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines() if str(data) not in line) <= 80


def test_recall_is_measured_with_and_without_its_name(run: Run, data: Path) -> None:
    options = [str(data / "locomo.json"), "--arms", "keyword", "--json"]
    for words in (options, ["recall", *options], [*options[1:], options[0]]):
        assert as_json(run(*words))[0]["rankings"][0]["ranking"] == "keyword"


def test_help_names_what_can_be_measured(run: Run) -> None:
    assert "summaries" in run("--help").stdout
    assert run().exit_code == 2


def test_a_wrong_path_is_told_in_a_line(run: Run, tmp_path: Path) -> None:
    result = run("summaries", str(tmp_path / "nothing"))
    assert (result.exit_code, "does not exist" in result.stderr) == (2, True)
