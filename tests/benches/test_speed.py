"""`bench/eval.py speed`: it measures a memory of its own, and tells when that is not sound."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from evaluation import speed, speed_command
from evaluation.commands import commands as app
from evaluation.speed import Latency, SpeedReport
from evaluation.synthetic_chat import SyntheticChat
from typer.testing import CliRunner, Result

from aforesaid.testing import ScriptedModel

Run = Callable[..., Result]

FIGURES = SpeedReport(
    python="3.13.1",
    sqlite="3.51.3",
    machine="Linux aarch64",
    cores=2,
    folder="/tmp",  # noqa: S108 - only printed
    file_system="ext4",
    messages=100,
    sync=Latency(1.0, 2.0),
    add=Latency(1.5, 3.0),
    adds_together_per_second=2_000.0,
    upkeep_per_second=900.0,
    open_ms=12.0,
    first_search_ms=300.0,
    search=Latency(2.0, 4.0),
    context=Latency(5.0, 9.0),
    bytes_per_message=700.0,
    sound=True,
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run it where a model and a store are configured, neither of which is to be used."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    mine = tmp_path / "mine.db"
    mine.write_bytes(b"not to be touched")
    with ScriptedModel("I am asked.") as model:
        monkeypatch.setenv("AFORESAID_STORE", str(mine))
        monkeypatch.setenv("AFORESAID_PROVIDERS__SCRIPTED__BASE_URL", model.base_url)
        monkeypatch.setenv("AFORESAID_MODELS__DEFAULT", "scripted:scripted")
        monkeypatch.setenv("AFORESAID_EMBEDDER", f"scripted@{model.base_url}")

        def run(*words: str) -> Result:
            return CliRunner().invoke(app, ["speed", "--messages", "100", *words])

        yield run
        assert not model.requests, "a model was asked"
    assert mine.read_bytes() == b"not to be touched"
    assert not list((tmp_path / "temporary").iterdir())


def test_scripts_get_every_figure(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "_ASKED", 20)
    place = tmp_path / "on this disk"
    place.mkdir()
    ran = run("--json", "--folder", str(place))
    assert ran.exit_code == 0, ran.output
    report = json.loads(ran.stdout)
    assert (report["messages"], report["folder"], report["sound"]) == (100, str(place), True)
    rates = [name for name in report if name.endswith("_per_second")]
    assert len(rates) == 2
    assert all(report[name] > 0 for name in (*rates, "open_ms", "first_search_ms", "bytes_per_message"))
    for name in ("sync", "add", "search", "context"):
        assert 0 < report[name]["p50_ms"] <= report[name]["p99_ms"]
    assert not list(place.iterdir())


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[[SpeedReport], None]:
    """Report given figures instead of measuring: what is printed does not depend on where they come from."""

    def report(given: SpeedReport) -> None:
        async def measure(messages: int, folder: Path | None, progress: Callable[[str, int, int], None]) -> SpeedReport:
            progress("adding", messages, messages)
            return replace(given, messages=messages, folder=str(folder))

        monkeypatch.setattr(speed_command, "measure_speed", measure)

    return report


def test_people_get_a_table(run: Run, measured: Callable[[SpeedReport], None]) -> None:
    measured(FIGURES)
    ran = run()
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.startswith("100 messages in ")
    for line in (
        "the disk's limit",
        "durable adds, 16 callers",
        "search, p50",
        "context of 8,000 tokens",
        "verification",
    ):
        assert line in ran.stdout


def test_a_memory_that_is_not_sound_is_told(run: Run, measured: Callable[[SpeedReport], None]) -> None:
    measured(replace(FIGURES, sound=False))
    ran = run()
    assert ran.exit_code == 1
    assert "WRONG" in ran.stdout
    assert "missing or damaged" in ran.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--folder", "nowhere"), "there is no folder nowhere"), (("--messages", "7"), "greater than or equal to 100")],
)
def test_what_cannot_be_measured_is_refused(run: Run, words: tuple[str, ...], said: str) -> None:
    ran = run(*words)
    assert ran.exit_code == 2
    assert said in " ".join(ran.stderr.split())


def test_made_up_talk_is_the_same_for_the_same_seed() -> None:
    first, second, other = SyntheticChat(1), SyntheticChat(1), SyntheticChat(2)
    said = list(first.texts(50))
    assert said == list(second.texts(50))
    assert said != list(other.texts(50))
    words = [word for text in said for word in text.split()]
    assert words.count(first.words[0]) > 5 * words.count(first.words[1_000])
