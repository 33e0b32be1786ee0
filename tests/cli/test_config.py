"""`aforesaid config`: effective values, their origins, and whether the models answer. `aforesaid settings`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import aforesaid
from aforesaid.cli import app
from aforesaid.testing import ScriptedModel, faults
from cli.typed import Run, as_json, ok

KEY = "sk-0123456789abcdefWXYZ"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for variable in (
        "AFORESAID_EMBEDDER",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OLLAMA_HOST",
        "ANTHROPIC_API_KEY",
        "GEMINI_API_KEY",
    ):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.chdir(tmp_path)

    def run(*words: str, **variables: str) -> Result:
        return CliRunner().invoke(app, ["config", *words], env=variables)

    return run


def configure(folder: Path, model: ScriptedModel, more: str = "") -> None:
    (folder / "aforesaid.toml").write_text(
        f"""
        [models]
        default = "home:scripted"
        [providers.home]
        base_url = "{model.base_url}"
        {more}
        """,
        encoding="utf-8",
    )


def test_with_nothing_configured_it_says_that_all_is_well_and_how_to_begin(run: Run, tmp_path: Path) -> None:
    page = ok(run())
    assert "Everything works without one" in page
    assert "  AFORESAID_MODEL=ollama:llama3.2\n" in page
    assert "  OPENAI_API_KEY=… AFORESAID_MODEL=openai:gpt-4o-mini\n" in page
    assert "  GEMINI_API_KEY=… AFORESAID_MODEL=gemini:" in page
    assert f"{tmp_path / 'home' / 'aforesaid' / 'aforesaid.toml'} (does not exist)" in page


def test_a_key_alone_is_shown_and_not_used_before_a_model_is_named(run: Run) -> None:
    page = ok(run(OPENAI_API_KEY=KEY))
    assert "OPENAI_API_KEY is set, but nothing is sent to openai until you configure one of its models." in page
    assert "\n  AFORESAID_MODEL=openai:gpt-4o-mini\n" in page
    assert "nothing to check" in ok(run("--check", OPENAI_API_KEY=KEY))
    named = ok(run(OPENAI_API_KEY=KEY, AFORESAID_MODEL="openai:gpt-4o-mini"))
    assert "until you configure" not in named
    assert "No model is configured" not in named


def test_values_are_shown_with_their_origin_and_keys_masked(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "aforesaid.toml"
    file.write_text(f'[models.day]\nchain = ["openai:big", "none"]\n[providers.openai]\napi_key = "{KEY}"', "utf-8")
    file.chmod(0o644)
    for words in ((), ("--json",), ("--check", "--json")):
        result = run(
            *words,
            AFORESAID_STORE="postgresql://me:hunter2@db/m",
            AFORESAID_PROVIDERS__OPENAI__BASE_URL="http://127.0.0.1:9/v1",
        )
        assert KEY not in result.output
        assert "hunter2" not in result.output
        assert "chmod 600" in result.output
    page = ok(run(AFORESAID_PROFILE="session"))
    day = next(line for line in page.splitlines() if line.startswith("  day "))
    assert day.split() == ["day", "openai:big", "0", "8,192", "180", "aforesaid.toml"]
    assert "…WXYZ" in page
    assert next(line for line in page.splitlines() if "profile" in line).split() == [
        "profile",
        "session",
        "AFORESAID_PROFILE",
    ]
    values = as_json(run("--json"))
    assert values["path"] == str(file)
    assert values["settings"]["models.day.chain"] == {"value": ["openai:big", "none"], "origin": str(file)}
    assert values["settings"]["providers.openai.api_key"] == {"value": "…WXYZ", "origin": str(file)}
    assert values["settings"]["models.merge.temperature"] == {"value": 0.0, "origin": "default"}


def test_it_says_which_file_is_read_or_would_be(run: Run, tmp_path: Path) -> None:
    usual = tmp_path / "home" / "aforesaid" / "aforesaid.toml"
    assert ok(run("--path")).strip() == str(usual)
    assert as_json(run("--path", "--json")) == {"path": str(usual), "exists": False}
    here = tmp_path / "aforesaid.toml"
    here.write_text("this is not TOML", encoding="utf-8")
    assert ok(run("--path")).strip() == str(here)
    other = tmp_path / "other.toml"
    other.write_text("profile = 'archive'", encoding="utf-8")
    assert as_json(run("--config", str(other), "--json"))["settings"]["profile"]["value"] == "archive"


def test_a_wrong_file_is_told_in_one_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "aforesaid.toml").write_text("[models.merge]\ntemprature = 0", encoding="utf-8")
    result = run()
    assert (result.exit_code, result.stdout) == (2, "")
    assert "did you mean 'models.merge.temperature'?" in result.stderr


def test_a_check_asks_each_model_once_and_says_that_it_works(run: Run, tmp_path: Path) -> None:
    with ScriptedModel(models=("scripted",), api_key=KEY) as model:
        configure(tmp_path, model, 'api_key_env = "HOME_KEY"\n[models.embed]\nchain = "home:embedder"')
        page = ok(run("--check", HOME_KEY=KEY))
        assert [line.split()[:2] for line in page.splitlines()[:2]] == [
            ["ok", "home:scripted"],
            ["ok", "home:embedder"],
        ]
        assert page.splitlines()[0].endswith("chat, summarize, day, merge, extract, route")
        assert "tokens are counted with " in page
        assert [(request.path, request.body["model"]) for request in model.requests] == [
            ("/v1/chat/completions", "scripted"),
            ("/v1/embeddings", "embedder"),
        ]
        checked = as_json(run("--check", "--json", HOME_KEY=KEY))
        assert [(one["model"], one["ok"]) for one in checked["models"]] == [
            ("home:scripted", True),
            ("home:embedder", True),
        ]


@pytest.mark.parametrize("words", [("--check",), ("--check", "--json")])
def test_a_check_fails_where_a_key_is_rejected_and_never_shows_it(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    with ScriptedModel(api_key=KEY) as model:
        configure(tmp_path, model, 'api_key_env = "HOME_KEY"')
        result = run(*words, HOME_KEY="sk-wrong-wrong-wrong-wrong")
        assert result.exit_code == 1
        assert "home:scripted" in result.stdout
        assert "key" in result.stdout
        assert "sk-wrong-wrong" not in result.output


def test_a_check_looks_behind_the_first_model_of_a_chain(run: Run, tmp_path: Path) -> None:
    with ScriptedModel() as model, ScriptedModel() as down:
        chain = 'chain = ["home:scripted", "down:x", "none"]'
        configure(tmp_path, model, f'[providers.down]\nbase_url = "{down.base_url}"\n[models.chat]\n{chain}')
        down.stop()
        result = run("--check")
        assert result.exit_code == 1
        assert [line.split()[:2] for line in result.stdout.splitlines() if "home:" in line] == [["ok", "home:scripted"]]
        assert [line.split()[:2] for line in result.stdout.splitlines() if line.startswith("FAILED")] == [
            ["FAILED", "down:x"]
        ]
        assert "cannot be reached" in result.stdout


def test_a_check_does_not_hide_a_failure_behind_a_second_try(run: Run, tmp_path: Path) -> None:
    with ScriptedModel() as model:
        configure(tmp_path, model)
        model.fail(faults.ServerError(), times=1)
        assert run("--check").exit_code == 1
        assert len(model.requests) == 1
        assert run("--check").exit_code == 0


def test_a_check_does_not_wait_longer_than_the_operation_would(run: Run, tmp_path: Path) -> None:
    with ScriptedModel() as model:
        configure(tmp_path, model, '[models.embed]\nchain = "home:embedder"')
        model.fail(faults.NeverAnswers())
        result = run("--check", "--json", AFORESAID_MODELS__TIMEOUT="0.3")
        assert result.exit_code == 1
        assert [one["ok"] for one in json.loads(result.stdout)["models"]] == [False, False]


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = tmp_path / "memory.db"
    with aforesaid.open(path, embedder="none") as memory:
        memory.user("ann").add("user", "hello")
    return str(path)


def run_settings(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["settings", *words])
    return result.exit_code, result.output


def test_a_setting_is_changed_shown_and_taken_back(store: str) -> None:
    assert run_settings("short_term_memory_limit", "5", "--store", store)[0] == 0
    assert run_settings("bot_persona", "a patient librarian", "--user", "ann", "--store", store)[0] == 0
    assert json.loads(run_settings("--store", store, "--json")[1]) == {"short_term_memory_limit": 5}
    assert json.loads(run_settings("--store", store, "--user", "ann", "--json")[1]) == {
        "bot_persona": "a patient librarian"
    }
    shown = run_settings("--store", store)[1]
    assert "short_term_memory_limit" in shown
    assert "from the profile" in shown
    assert run_settings("short_term_memory_limit", "--reset", "--store", store)[0] == 0
    assert json.loads(run_settings("--store", store, "--json")[1]) == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["short_term_memory_limit", "many"], "whole number"),
        (["short_term_memory_limit"], "a value for short_term_memory_limit is missing"),
        (["--reset"], "a setting's name and no value"),
        (["bot_person", "x"], "did you mean 'bot_persona'"),
    ],
)
def test_what_cannot_be_set_is_told(store: str, words: list[str], said: str) -> None:
    code, output = run_settings(*words, "--store", store)
    assert code == 2
    assert said in " ".join(output.split())


def test_a_setting_that_nothing_reads_is_stored_and_told(store: str) -> None:
    code, output = run_settings("favourite_colour", "blue", "--store", store)
    assert code == 0
    assert "Aforesaid has no setting of this name" in " ".join(output.split())
