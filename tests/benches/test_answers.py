"""`bench/eval.py answers`: a model answers, another one judges, and a run that was stopped goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from evaluation.answers import choose_model
from evaluation.answers.run import MOST_FAILURES, MOST_UNREADABLE
from evaluation.commands import commands as app
from evaluation.metrics import wilson
from typer.testing import CliRunner, Result

from aforesaid.errors import InvalidInput
from aforesaid.testing import Request, ScriptedModel, faults
from benches import samples

ANSWERS = {
    "What drips?": "The roof drips.",
    "Who mended it, and what?": "I do not know.",
    "Who painted the door?": "It was not mentioned.",
}


def answers(request: Request) -> str:
    return next((answer for question, answer in ANSWERS.items() if question in request.asked), "Nobody said so.")


def judges(request: Request) -> dict[str, Any]:
    """Judge as the schema of the request allows: by words that decline, and by the word of the expected answer."""
    declines = "not mentioned" in request.asked or "not know" in request.asked
    other = "claimed" if "<expected>" not in request.asked else "correct"
    return {"reason": "Because.", "verdict": "declined" if declines else other}


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(answers, models=("writer",)) as scripted:
        yield scripted


@pytest.fixture
def judge() -> Iterator[ScriptedModel]:
    with ScriptedModel(judges, models=("org/judge",)) as scripted:
        yield scripted


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AFORESAID_EMBEDDER", "none")
    Path("chat.txt").write_text(samples.TRANSCRIPT, encoding="utf-8")
    return tmp_path


def many(questions: int) -> None:
    """Write a transcript with many questions."""
    asked = "".join(f"Q single | Question number {number}? | 1 | the roof\n" for number in range(questions))
    Path("chat.txt").write_text(samples.TRANSCRIPT.partition("Q single")[0] + asked, encoding="utf-8")


def words_of(model: ScriptedModel, judge: ScriptedModel) -> list[str]:
    named = ["--model", f"{model.base_url}/writer", "--judge", f"{judge.base_url}/org/judge"]
    return ["answers", "chat.txt", *named, "--parallel", "1", "--timeout", "30"]


def run(model: ScriptedModel, judge: ScriptedModel, *more: str) -> Result:
    return CliRunner().invoke(app, [*words_of(model, judge), *more])


def report(result: Result) -> Any:  # noqa: ANN401
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def lines() -> list[Any]:
    return [json.loads(line) for line in Path("answers.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.usefixtures("place")
def test_answers_are_asked_judged_and_counted(model: ScriptedModel, judge: ScriptedModel) -> None:
    prices = ("--model-price", "1,2", "--judge-price", "10,20")
    found = report(run(model, judge, *prices, "--json"))
    assert (found["questions"], found["judged"], found["failed"], found["left"]) == (3, 3, 0, 0)
    assert (found["right"]["count"], found["answered"]["count"], found["answered"]["questions"]) == (2, 1, 2)
    assert (found["declined"]["share"], found["wrongly_declined"]["share"]) == (1.0, 0.5)
    # One of two that were declined was never said, and all that was never said was declined.
    assert found["refusal_score"] == pytest.approx(2 / 3)
    assert {name: each["share"] for name, each in found["categories"].items()} == {
        "multi": 0.0,
        "none": 1.0,
        "single": 1.0,
    }
    assert (found["languages"]["en"]["count"], found["kinds"]["assistant"]["questions"]) == (2, 3)
    assert found["with_evidence"]["questions"] == 2
    header, *results = lines()
    assert header["model"] == f"{model.base_url}/writer"
    assert header["judge"] == f"{judge.base_url}/org/judge"
    spent = sum(each["prompt_tokens"] + 2 * each["reply_tokens"] for each in results) / 1e6
    assert spent > 0
    assert found["model"]["total_cost"] == pytest.approx(spent)
    assert found["model"]["cost"] == pytest.approx(spent / 3)
    assert found["judge"]["cost"] > 0
    assert {each["answer"] for each in results} == set(ANSWERS.values())


@pytest.mark.usefixtures("place")
def test_the_model_is_asked_with_a_context_and_the_judge_with_the_expected_answer(
    model: ScriptedModel, judge: ScriptedModel
) -> None:
    report(run(model, judge, "--json"))
    (asked,) = [each for each in model.requests if "What drips?" in each.asked]
    assert asked.body["model"] == "writer"
    everything = json.dumps(asked.messages)
    assert "If what is asked was never said" in everything
    assert "the roof leaks" in everything
    (judged,) = [each for each in judge.requests if "What drips?" in each.asked]
    assert "<expected>the roof</expected>\n<answer>The roof drips.</answer>" in judged.asked
    (refusal,) = [each for each in judge.requests if "Who painted" in each.asked]
    assert "expected" not in refusal.asked
    assert refusal.schema is not None
    assert refusal.schema["properties"]["verdict"]["enum"] == ["declined", "claimed"]


@pytest.mark.usefixtures("place")
def test_the_same_model_with_the_newest_messages_only(model: ScriptedModel, judge: ScriptedModel) -> None:
    padding = "".join(f"Mara: {number} slates, and another long evening on the ladder\n" for number in range(40))
    text = samples.TRANSCRIPT.replace("Mara: the roofer came at last\n", f"Mara: the roofer came at last\n{padding}")
    Path("chat.txt").write_text(text, encoding="utf-8")
    found = report(run(model, judge, "--newest-only", "--budget", "500", "--json"))
    assert found["run"]["profile"] == "default, newest messages only"
    (asked,) = [each for each in model.requests if "What drips?" in each.asked]
    everything = json.dumps(asked.messages)
    assert "39 slates" in everything
    assert "the roof leaks" not in everything
    assert found["with_evidence"]["questions"] == 0
    result = run(model, judge, "--budget", "500")
    assert (result.exit_code, "its profile is 'default, newest messages only'" in result.stderr) == (2, True)


@pytest.mark.usefixtures("place")
def test_tables_for_people(model: ScriptedModel, judge: ScriptedModel) -> None:
    result = run(model, judge)
    assert result.exit_code == 0, result.output
    found = [line.split() for line in result.stdout.splitlines()]
    low, high = wilson(2, 3)
    assert ["right", "3", "66.7", f"{100 * low:.1f}", "to", f"{100 * high:.1f}"] in found
    assert "refusal score (F1 of declining what was never said): 0.667" in result.stdout
    assert "asked 3 of 3" in result.stderr
    assert max(len(line) for line in result.stdout.splitlines()) <= 80


def test_a_run_that_was_killed_goes_on(place: Path, model: ScriptedModel, judge: ScriptedModel) -> None:
    many(6)
    started: list[subprocess.Popen[bytes]] = []

    def kills(request: Request) -> str:
        if len(model.requests) == 4:
            started[0].send_signal(signal.SIGKILL)
            started[0].wait()
        return answers(request)

    model.say(kills)
    program = Path(__file__).parents[2] / "bench" / "eval.py"
    command = [sys.executable, str(program), *words_of(model, judge)]
    gate, opened = os.pipe()
    with subprocess.Popen(["/bin/sh", "-c", 'read _; exec "$@"', "sh", *command], cwd=place, stdin=gate) as process:
        # The command begins once the model knows whom to kill.
        started.append(process)
        os.write(opened, b"\n")
        assert process.wait() == -signal.SIGKILL
    os.close(gate)
    os.close(opened)
    assert len(lines()) == 1 + 3
    with Path("answers.jsonl").open("ab") as file:
        file.write(b'{"format": "transcripts", "conv')  # a line that the process did not finish
    model.say(answers)
    found = run(model, judge, "--json")
    assert report(found)["judged"] == 6
    assert "results of 3 questions already" in found.stderr
    # Four before the kill, of which the last has no result, and the three that were left.
    assert len(model.requests) == 4 + 3
    assert len({each["question"] for each in lines()[1:]}) == len(lines()) - 1 == 6


@pytest.mark.usefixtures("place")
def test_a_finished_run_asks_nobody(model: ScriptedModel, judge: ScriptedModel) -> None:
    first = report(run(model, judge, "--json"))
    asked = len(model.requests), len(judge.requests)
    assert report(run(model, judge, "--json")) == first
    assert (len(model.requests), len(judge.requests)) == asked


@pytest.mark.usefixtures("place")
def test_a_sample_is_part_of_the_whole(model: ScriptedModel, judge: ScriptedModel) -> None:
    assert report(run(model, judge, "--limit", "2", "--json"))["judged"] == 2
    assert report(run(model, judge, "--json"))["judged"] == 3
    assert len(model.requests) == 3


@pytest.mark.parametrize(
    "lie",
    ["Correct!", '{"verdict": "correct"}', '{"reason": "", "verdict": "CORRECT"}', '["correct"]', '{"reason": "a'],
)
@pytest.mark.usefixtures("place")
def test_a_verdict_in_a_wrong_form_is_no_verdict(model: ScriptedModel, judge: ScriptedModel, lie: str) -> None:
    judge.say(lambda request: lie if "What drips?" in json.dumps(request.messages) else judges(request))
    found = run(model, judge, "--json")
    assert (report(found)["judged"], report(found)["failed"]) == (2, 1)
    assert "1 question without a verdict; run the same command again" in found.stderr
    (failed,) = [each for each in lines()[1:] if each["verdict"] is None]
    assert failed["error"].startswith("the verdict cannot be read: ")
    assert failed["answer"] == "The roof drips."
    # It is told once what was wrong.
    assert len(judge.requests) == 4
    judge.say(judges)
    assert report(run(model, judge, "--json"))["judged"] == 3
    # The answer was kept, so the model is not asked again.
    assert len(model.requests) == 3


@pytest.mark.usefixtures("place")
def test_a_judge_that_never_writes_a_verdict_ends_the_run(model: ScriptedModel, judge: ScriptedModel) -> None:
    many(MOST_UNREADABLE + 5)
    judge.say(lambda _: "Who am I to judge?")
    result = run(model, judge)
    assert (result.exit_code, "the verdict cannot be read" in result.stderr) == (1, True), result.output
    assert len(model.requests) == MOST_UNREADABLE


@pytest.mark.parametrize("fails", ["the model", "the judge"])
@pytest.mark.usefixtures("place")
def test_a_model_that_fails_ends_the_run_and_it_goes_on_later(
    model: ScriptedModel, judge: ScriptedModel, fails: str
) -> None:
    many(MOST_FAILURES + 2)
    broken = model if fails == "the model" else judge
    broken.fail(faults.WrongKey())
    result = run(model, judge)
    assert result.exit_code == 1
    assert f"{fails} failed: " in result.stderr
    assert "answers.jsonl: run the same command again to go on" in result.stderr.replace("\n", " ")
    assert len(broken.requests) == MOST_FAILURES
    broken.heal()
    assert report(run(model, judge, "--json"))["judged"] == MOST_FAILURES + 2
    assert lines()[1]["verdict"] is None


@pytest.mark.usefixtures("place")
def test_a_model_that_fails_once_is_asked_again(model: ScriptedModel, judge: ScriptedModel) -> None:
    model.fail(faults.ServerError(), times=1)
    assert report(run(model, judge, "--json"))["judged"] == 3


@pytest.mark.usefixtures("place")
def test_a_model_that_cannot_be_reached(model: ScriptedModel, judge: ScriptedModel) -> None:
    model.stop()
    result = run(model, judge)
    assert (result.exit_code, "the model failed: " in result.stderr) == (1, True), result.output


@pytest.mark.usefixtures("place")
def test_a_file_of_something_else_is_not_touched(model: ScriptedModel, judge: ScriptedModel) -> None:
    Path("answers.jsonl").write_text("my notes\n", encoding="utf-8")
    result = run(model, judge)
    assert (result.exit_code, "line 1 is not their header" in result.stderr) == (2, True)
    assert Path("answers.jsonl").read_text(encoding="utf-8") == "my notes\n"
    assert model.requests == []


@pytest.mark.usefixtures("place")
def test_results_of_another_run_are_not_mixed(model: ScriptedModel, judge: ScriptedModel) -> None:
    report(run(model, judge, "--json"))
    result = run(model, judge, "--budget", "2000")
    assert (result.exit_code, "its budget is 4000, not 2000" in result.stderr) == (2, True)
    assert report(run(model, judge, "--budget", "2000", "--results", "other.jsonl", "--json"))["judged"] == 3


@pytest.mark.usefixtures("place")
def test_a_damaged_line_is_named(model: ScriptedModel, judge: ScriptedModel) -> None:
    report(run(model, judge, "--json"))
    with Path("answers.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"question": "What drips?"}\n')
    result = run(model, judge)
    assert (result.exit_code, "is damaged: line 5 is not a result" in result.stderr) == (2, True), result.output


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--model", "llama3"], "is not a model; write URL/NAME"),
        (["--model", "http://localhost:9/v1/"], "names no model"),
        (["--judge", "https://x"], "names no model"),
        (["--model-key-env", "NO_SUCH_KEY"], "the variable NO_SUCH_KEY is not set"),
        (["--model-price", "1"], "--model-price must be two prices"),
        (["--judge-price", "1,-2"], "--judge-price must be two prices"),
        (["--judge-price", "nan,inf"], "--judge-price must be two prices"),
        (["--profile", "gossip"], "unknown profile 'gossip'"),
        (["--results", "missing/answers.jsonl"], "cannot be opened"),
    ],
)
@pytest.mark.usefixtures("place")
def test_wrong_options(model: ScriptedModel, judge: ScriptedModel, words: list[str], complaint: str) -> None:
    result = run(model, judge, *words)
    assert (result.exit_code, complaint in result.stderr.replace("\n", " ")) == (2, True), result.output
    assert not Path("answers.jsonl").exists()


@pytest.mark.usefixtures("place")
def test_an_empty_folder(model: ScriptedModel, judge: ScriptedModel) -> None:
    Path("chat.txt").unlink()
    Path("chat.txt").mkdir()
    result = run(model, judge)
    assert (result.exit_code, "no labelled conversations in chat.txt" in result.stderr) == (2, True)
    assert not Path("answers.jsonl").exists()


@pytest.mark.usefixtures("place")
def test_data_without_expected_answers(model: ScriptedModel, judge: ScriptedModel) -> None:
    text = samples.TRANSCRIPT.partition("Q single")[0] + "Q single | What drips? | 1 |\n"
    Path("chat.txt").write_text(text, encoding="utf-8")
    result = run(model, judge)
    assert (result.exit_code, "no questions with an expected answer" in result.stderr) == (2, True)
    assert not Path("answers.jsonl").exists()


@pytest.mark.usefixtures("place")
def test_a_key_is_sent_and_never_written(
    model: ScriptedModel, judge: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-of-the-judge")
    judge.api_key = "sk-of-the-judge"
    assert report(run(model, judge, "--judge-key-env", "MY_KEY", "--json"))["judged"] == 3
    assert "sk-of-the-judge" not in Path("answers.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "base", "name"),
    [
        ("http://localhost:8000/v1/llama3.2", "http://localhost:8000/v1", "llama3.2"),
        ("https://example.org/api/v1/meta/llama", "https://example.org/api/v1", "meta/llama"),
        ("https://example.org/v1beta/openai/gemini", "https://example.org/v1beta/openai", "gemini"),
    ],
)
def test_the_name_of_a_model_follows_its_base_url(text: str, base: str, name: str) -> None:
    chosen = choose_model(text)
    assert (chosen.provider.base_url, chosen.model, chosen.label) == (base, name, text)


def test_a_configured_provider_brings_its_address_and_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine-and-only-mine")
    chosen = choose_model("openai:some-model")
    assert (chosen.provider.api_key, chosen.model) == ("sk-mine-and-only-mine", "some-model")
    with pytest.raises(InvalidInput, match="there is no provider 'nobody'"):
        choose_model("nobody:some-model")


def test_the_interval_of_a_share() -> None:
    assert wilson(0, 0) == (0, 1)
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 10)[0] == 0
    assert wilson(10, 10)[1] == pytest.approx(1)
