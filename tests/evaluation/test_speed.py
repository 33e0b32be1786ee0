"""`aforesaid bench`: it measures a memory of its own, and tells when that is not sound."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from aforesaid.cli import app, bench
from aforesaid.evaluation.speed import SpeedReport, measure_speed
from aforesaid.evaluation.synthetic_chat import SyntheticChat
from aforesaid.testing import ScriptedModel

Run = Callable[..., Result]


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
            return CliRunner().invoke(app, ["bench", "--messages", "100", *words])

        yield run
        assert not model.requests, "a model was asked"
    assert mine.read_bytes() == b"not to be touched"
    assert not list((tmp_path / "temporary").iterdir())


def test_scripts_get_every_figure(run: Run, tmp_path: Path) -> None:
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


def test_people_get_a_table(run: Run) -> None:
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


def test_a_memory_that_is_not_sound_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def measure(messages: int, folder: Path | None, progress: Callable[[str, int, int], None]) -> SpeedReport:
        return replace(await measure_speed(messages, folder, progress), sound=False)

    monkeypatch.setattr(bench, "measure_speed", measure)
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
