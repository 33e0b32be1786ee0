"""Configuration: where values come from, which one wins, and what is said when one is wrong."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from pathlib import Path

import pytest

from recollect.errors import InvalidInput
from recollect.settings import OPERATIONS, Choice, Resilience, Secret, Settings, Spending, load_settings
from recollect.settings.describe import effective
from recollect.settings.keys import all_keys
from recollect.settings.secrets import mask, mask_url
from recollect.settings.well_known import ollama_address

KEY = "sk-0123456789abcdefWXYZ"


class Place:
    """A current folder and a folder for configuration that hold nothing but what a test puts there."""

    def __init__(self, root: Path) -> None:
        self.here = root / "here"
        self.home = root / "home"
        self.here.mkdir()
        self.home.mkdir()

    def write(self, text: str, name: str = "recollect.toml") -> Path:
        path = self.here / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return path

    def load(self, text: str | None = None, overrides: dict[str, object] | None = None, /, **env: str) -> Settings:
        if text is not None:
            self.write(text)
        return load_settings(env={"XDG_CONFIG_HOME": str(self.home), **env}, overrides=overrides)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.chdir(made.here)
    return made


def test_with_nothing_configured_no_model_is_used_and_nobody_is_known(place: Place) -> None:
    settings = place.load()
    assert (settings.store, settings.profile, settings.embedder, settings.redo) == (None, "default", None, True)
    assert settings.providers == {}
    assert {route.chain for route in settings.routes.values()} == {()}
    assert set(settings.origins.values()) == {"default"}
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("variables", "name", "base_url", "key"),
    [
        ({"OPENAI_API_KEY": KEY}, "openai", "https://api.openai.com/v1", KEY),
        (
            {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "http://proxy:8000/v1"},
            "openai",
            "http://proxy:8000/v1",
            KEY,
        ),
        ({"OLLAMA_HOST": "10.0.0.5"}, "ollama", "http://10.0.0.5:11434/v1", None),
        ({"GEMINI_API_KEY": KEY}, "gemini", "https://generativelanguage.googleapis.com/v1beta/openai/", KEY),
    ],
)
def test_variables_of_other_programs_make_a_provider_and_send_it_nothing(
    place: Place, variables: dict[str, str], name: str, base_url: str, key: str | None
) -> None:
    settings = place.load(**variables)
    assert list(settings.providers) == [name]
    assert (settings.providers[name].base_url, settings.providers[name].api_key) == (base_url, key)
    assert settings.origins[f"providers.{name}.{'api_key' if key else 'base_url'}"] in variables
    assert not any(route.chain for route in settings.routes.values())


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("box", "http://box:11434/v1"),
        ("box:9000", "http://box:9000/v1"),
        ("http://box:9000/", "http://box:9000/v1"),
        ("https://models.example/ollama", "https://models.example/ollama/v1"),
        ("0.0.0.0", "http://localhost:11434/v1"),  # noqa: S104 - what servers are told, not bound here
        ("0.0.0.0:9000", "http://localhost:9000/v1"),
        (":9000", "http://localhost:9000/v1"),
        ("[::1]:9000", "http://[::1]:9000/v1"),
        ("[::]", "http://localhost:11434/v1"),
    ],
)
def test_ollama_host_is_read_in_every_form_that_ollama_takes(host: str, address: str) -> None:
    assert ollama_address(host) == address


def test_a_variable_of_another_program_that_makes_no_sense_is_told_and_left_out(place: Place) -> None:
    settings = place.load(OLLAMA_HOST="box:port", OPENAI_API_KEY="two words")
    assert settings.providers == {}
    assert ["OLLAMA_HOST" in settings.warnings[0], "OPENAI_API_KEY" in settings.warnings[1]] == [True, True]
    assert "two words" not in " ".join(settings.warnings)


def test_one_variable_is_enough_to_use_a_model_for_everything_but_embedding(place: Place) -> None:
    settings = place.load(RECOLLECT_MODEL="ollama:llama3.2:3b")
    assert settings.providers["ollama"].base_url == "http://localhost:11434/v1"
    for operation in OPERATIONS:
        expected = () if operation == "embed" else (Choice("ollama", "llama3.2:3b"),)
        assert settings.route(operation).chain == expected
        assert settings.origins[f"models.{operation}.chain"] == (
            "default" if operation == "embed" else "RECOLLECT_MODEL"
        )
    assert settings.warnings == ()


def test_each_operation_can_use_its_own_model_temperature_length_and_time(place: Place) -> None:
    settings = place.load(
        """
        [models]
        default = "ollama:llama3.2"
        timeout = 90
        [models.day]
        chain = "gemini:gemini-2.5-flash"
        max_tokens = 4000
        [models.summarize]
        chain = ["ollama:llama3.2", "openai:gpt-4o-mini", "none"]
        temperature = 1
        timeout = 12.5
        [models.merge]
        temperature = "default"
        [models.embed]
        chain = "ollama:nomic-embed-text"
        [models.route]
        chain = "none"
        """,
        OPENAI_API_KEY=KEY,
        GEMINI_API_KEY=KEY,
    )
    summarize = settings.route("summarize")
    assert summarize.chain == (Choice("ollama", "llama3.2"), Choice("openai", "gpt-4o-mini"))
    assert (summarize.without, summarize.temperature, summarize.timeout) == (True, 1.0, 12.5)
    day = settings.route("day")
    assert (day.chain, day.without, day.max_tokens, day.timeout) == (
        (Choice("gemini", "gemini-2.5-flash"),),
        False,
        4000,
        90.0,
    )
    assert (settings.route("extract").temperature, settings.route("merge").temperature) == (0.3, None)
    assert settings.route("embed").chain == (Choice("ollama", "nomic-embed-text"),)
    assert settings.route("route").chain == ()
    assert settings.route("chat").chain == (Choice("ollama", "llama3.2"),)


def test_the_documented_temperatures_hold_without_a_word(place: Place) -> None:
    settings = place.load(RECOLLECT_MODEL="ollama:llama3.2")
    assert (settings.route("merge").temperature, settings.route("extract").temperature) == (0.0, 0.3)


def test_arguments_win_over_variables_those_over_the_file_and_the_file_over_other_programs(place: Place) -> None:
    text = """
        profile = "archive"
        [models]
        default = "openai:from-file"
        [providers.openai]
        api_key = "sk-from-file-aaaaaaaaaa"
        concurrency = 2
        """
    file = str(place.here / "recollect.toml")
    known = place.load(text, OPENAI_API_KEY=KEY)
    assert known.providers["openai"].api_key == "sk-from-file-aaaaaaaaaa"
    assert known.origins["providers.openai.api_key"] == file
    assert known.origins["models.chat.chain"] == file
    over = place.load(None, RECOLLECT_MODEL="openai:from-variable", RECOLLECT_PROFILE="session")
    assert (str(over.route("chat").chain[0]), over.profile) == ("openai:from-variable", "session")
    assert (over.origins["models.chat.chain"], over.origins["profile"]) == ("RECOLLECT_MODEL", "RECOLLECT_PROFILE")
    assert over.origins["providers.openai.concurrency"] == file
    told = place.load(None, {"models.default": "openai:from-argument", "store": None}, RECOLLECT_MODEL="openai:x")
    assert str(told.route("chat").chain[0]) == "openai:from-argument"
    assert told.origins["models.chat.chain"] == "argument"


def test_every_key_has_a_variable(place: Place) -> None:
    variables = {
        "RECOLLECT_STORE": "m.db",
        "RECOLLECT_REDO": "off",
        "RECOLLECT_MODELS__TIMEOUT": "5",
        "RECOLLECT_MODELS__EXTRACT__CHAIN": "my-box:a, none",
        "RECOLLECT_MODELS__EXTRACT__TEMPERATURE": "default",
        "RECOLLECT_PROVIDERS__MY_BOX__API_KEY": KEY,
        "RECOLLECT_PROVIDERS__MY_BOX__STRUCTURED": "schema",
        "RECOLLECT_PROVIDERS__OTHER__BASE_URL": "http://other/v1",
        "RECOLLECT_RESILIENCE__PROBE_SECONDS": "2.5",
        "RECOLLECT_SPENDING__TOKENS_PER_DAY": "1000",
        "RECOLLECT_USER": "ann",
    }
    settings = place.load('[providers.my-box]\nbase_url = "http://box/v1"', **variables)
    assert (settings.store, settings.redo) == ("m.db", False)
    extract = settings.route("extract")
    assert (extract.chain, extract.without, extract.temperature, extract.timeout) == (
        (Choice("my-box", "a"),),
        True,
        None,
        5.0,
    )
    assert (settings.providers["my-box"].api_key, settings.providers["my-box"].structured) == (KEY, "schema")
    assert settings.providers["other"].base_url == "http://other/v1"
    assert (settings.resilience.probe_seconds, settings.spending.tokens_per_day) == (2.5, 1000)
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[modles]\ndefault = "x:y"', "unknown key 'modles'; did you mean 'models'? allowed: store,"),
        ('[models]\ndefalt = "x:y"', "unknown key 'models.defalt'; did you mean 'models.default'?"),
        ("[models.summarise]\ntimeout = 3", "did you mean 'models.summarize'?"),
        ("[models.merge]\ntemprature = 3", "'models.merge.temperature'? allowed in [models.merge]: chain, temperature"),
        ("[models.merge]\ntemperature = 'hot'", "models.merge.temperature must be a number from 0 to 2, or"),
        ("[models.merge]\ntemperature = 3", 'from 0 to 2, or "default" to leave it to the provider, not 3'),
        ("[models.merge]\ntemperature = true", "must be a number from 0 to 2"),
        ("[models.merge]\ntimeout = inf", "must be a number from 0.001"),
        ("[models.merge]\nmax_tokens = 1.5", "models.merge.max_tokens must be a whole number"),
        ("[models.merge]\nchain = []", 'models.merge.chain must be "provider:model" or a list'),
        ("[models.merge]\nchain = ['none', 'ollama:x']", "where 'none' may stand last"),
        ("[models]\ndefault = 'gpt-4o'", 'models.default must be "provider:model"'),
        ("[models]\ndefault = 'olama:x'", "no provider 'olama'; did you mean 'ollama'?"),
        ("[models.chat]\nchain = 'box:x'", "models.chat.chain: there is no provider 'box'; ollama, openai, gemini"),
        ("[models.embed]\nchain = ['ollama:a', 'ollama:b']", "only one model can embed"),
        ("models = 3", "models is a table: write [models]"),
        ("store = 3", "store must be a text, not 3"),
        ("store = ''", "store must be a text"),
        ("[store]\nx = 1", "store must be a text, not {'x': 1}"),
        ("[providers.box]\nconcurrency = 2", "the provider 'box' has no base_url"),
        ("[providers.box]\nbase_url = 'localhost:80'", "providers.box.base_url must be an address such as"),
        ("[providers.box]\nbase_url = 'http://h:port/v1'", "must be an address such as"),
        ("[providers.none]\nbase_url = 'http://h/v1'", "no name for a provider"),
        ("[providers.'a b']\nbase_url = 'http://h/v1'", "no name for a provider"),
        ("[providers.box]\nstructured = 'maybe'", "must be one of auto, schema, instructed, not 'maybe'"),
        ("[providers.openai]\napi_key = 'a'\napi_key_env = 'B'", "has api_key and api_key_env; keep one of them"),
        ("redo = 'yes'", "redo must be true or false, not 'yes'"),
        ("[spending]\ntokens_per_day = 0", "tokens_per_day must be a whole number from 1"),
        ("embedder = 'local'\n[models.embed]\nchain = 'ollama:x'", "which is the same; remove one of them"),
        ("store = ", "is not valid TOML"),
    ],
)
def test_what_is_wrong_is_told_with_the_file_the_key_and_what_to_do(place: Place, text: str, said: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        place.load(text)
    assert said in str(raised.value)
    assert str(place.here / "recollect.toml") in str(raised.value)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("RECOLLECT_MODELS__MERGE__TEMPERATUR", "1", "unknown key 'models.merge.temperatur'; did you mean"),
        (
            "RECOLLECT_MODELS__MERGE__TEMPERATURE",
            "warm",
            "RECOLLECT_MODELS__MERGE__TEMPERATURE must be a number from 0",
        ),
        (
            "RECOLLECT_MODELS",
            "ollama:x",
            "RECOLLECT_MODELS is a table and cannot have a value; set a key in it: default",
        ),
        ("RECOLLECT_REDO", "perhaps", "RECOLLECT_REDO must be true or false, not 'perhaps'"),
        ("RECOLLECT_STORE__X", "1", "RECOLLECT_STORE__X: store is a value, not a table"),
        ("RECOLLECT_CONFIG", "/nowhere/x.toml", "there is no configuration file at /nowhere/x.toml (RECOLLECT_CONFIG)"),
    ],
)
def test_a_wrong_variable_is_told_by_its_name(place: Place, variable: str, value: str, said: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        place.load(**{variable: value})
    assert said in str(raised.value)
    assert variable in str(raised.value)


def test_two_variables_for_the_same_thing_are_refused(place: Place) -> None:
    with pytest.raises(InvalidInput, match="RECOLLECT_MODEL and RECOLLECT_MODELS__DEFAULT set the same thing"):
        place.load(RECOLLECT_MODEL="ollama:a", RECOLLECT_MODELS__DEFAULT="ollama:b")


def test_a_mistyped_variable_is_doubted_and_one_that_others_made_is_let_be(place: Place) -> None:
    settings = place.load(RECOLLECT_MODLE="ollama:x", RECOLLECT_SERVICE_HOST="10.0.0.1", RECOLLECT_PORT="tcp://x")
    assert settings.warnings == ("RECOLLECT_MODLE is not used; did you mean RECOLLECT_MODEL?",)


def test_a_wrong_key_is_never_repeated(place: Place) -> None:
    with pytest.raises(InvalidInput, match="must be a key: printable") as raised:
        place.load("[providers.openai]\napi_key = 'my secret words'")
    assert "my secret words" not in str(raised.value)


def test_keys_come_from_variables_and_files_that_are_named(place: Place) -> None:
    text = """
        [providers.openai]
        api_key_env = "TEAM_KEY"
        [providers.box]
        base_url = "http://box/v1"
        api_key_file = "keys/box"
        """
    (place.here / "keys").mkdir()
    key_file = place.here / "keys" / "box"
    key_file.write_text(f"{KEY}\n", encoding="utf-8")
    key_file.chmod(0o600)
    settings = place.load(text, TEAM_KEY="sk-team", OPENAI_API_KEY="sk-other")
    assert (settings.providers["openai"].api_key, settings.providers["box"].api_key) == ("sk-team", KEY)
    assert settings.origins["providers.openai.api_key"].startswith("TEAM_KEY, named by ")
    assert settings.origins["providers.box.api_key"].startswith(f"{key_file}, named by ")
    assert settings.warnings == ()
    key_file.write_text("", encoding="utf-8")
    settings = place.load(text)
    assert (settings.providers["openai"].api_key, settings.providers["box"].api_key) == (None, None)
    assert "names TEAM_KEY, which is not set" in settings.warnings[1]
    assert "does not hold a key" in settings.warnings[0]


def test_a_file_with_a_key_that_others_can_read_is_warned_about(place: Place) -> None:
    path = place.write(f"[providers.openai]\napi_key = '{KEY}'")
    assert place.load().warnings == ()
    path.chmod(0o644)
    assert place.load().warnings == (f"{path} holds a key and can be read by others: chmod 600 {path}",)


def test_a_model_without_its_key_is_warned_about(place: Place) -> None:
    assert place.load(RECOLLECT_MODEL="openai:gpt-4o-mini").warnings == (
        "openai needs a key: set OPENAI_API_KEY, or providers.openai.api_key",
    )
    assert place.load(RECOLLECT_MODEL="openai:x", OPENAI_BASE_URL="http://localhost:1/v1").warnings == ()


def test_a_key_in_the_environment_does_not_go_where_a_file_sends_it_without_asking(place: Place) -> None:
    elsewhere = "[providers.openai]\nbase_url = 'http://evil.example/v1'\n"
    settings = place.load(elsewhere, OPENAI_API_KEY=KEY)
    assert settings.providers["openai"].api_key is None
    assert 'not sent to evil.example; if that is meant, add api_key_env = "OPENAI_API_KEY"' in settings.warnings[0]
    assert (
        place.load(elsewhere + "api_key_env = 'OPENAI_API_KEY'", OPENAI_API_KEY=KEY).providers["openai"].api_key == KEY
    )
    own = place.load("[providers.openai]\nbase_url = 'https://api.openai.com/v2'", OPENAI_API_KEY=KEY)
    assert own.providers["openai"].api_key == KEY
    said = place.load(None, OPENAI_API_KEY=KEY, RECOLLECT_PROVIDERS__OPENAI__BASE_URL="http://proxy/v1")
    assert said.providers["openai"].api_key == KEY


def test_the_file_is_found_where_it_is_named_then_here_then_in_the_platforms_folder(place: Place) -> None:
    assert place.load().profile == "default"
    usual = place.home / "recollect" / "recollect.toml"
    usual.parent.mkdir()
    usual.write_text("profile = 'archive'", encoding="utf-8")
    assert place.load().profile == "archive"
    assert place.load("profile = 'session'").profile == "session"
    named = place.write("profile = 'community'", "other.toml")
    assert place.load(RECOLLECT_CONFIG=str(named)).profile == "community"
    assert load_settings(named, env={"RECOLLECT_CONFIG": "/nowhere"}).profile == "community"
    with pytest.raises(InvalidInput, match="there is no configuration file at"):
        load_settings(place.here / "missing.toml", env={})


def test_a_file_that_somebody_else_laid_into_the_folder_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.write("profile = 'archive'")
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 4711)
    if path.stat().st_uid == 0:
        # Files of root are trusted: give it away, which only root can.
        os.chown(path, 12345, -1)
    with pytest.raises(InvalidInput, match="belongs to another user; if you trust it, name it: RECOLLECT_CONFIG="):
        place.load()
    assert place.load(RECOLLECT_CONFIG=str(path)).profile == "archive"


@pytest.mark.parametrize(
    ("store", "seen"),
    [
        ("memory.db", "{here}/memory.db"),
        ("sqlite:memory.db", "sqlite:{here}/memory.db"),
        ("json:memory.json", "json:{here}/memory.json"),
        ("/var/memory.db", "/var/memory.db"),
        ("~/memory.db", "~/memory.db"),
        (":memory:", ":memory:"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
    ],
)
def test_a_relative_path_in_a_file_is_seen_from_the_file(
    place: Place, monkeypatch: pytest.MonkeyPatch, store: str, seen: str
) -> None:
    path = place.write(f"store = '{store}'\nprofile = 'mine.toml'")
    monkeypatch.chdir("/")
    settings = load_settings(path, env={})
    assert settings.store == seen.format(here=place.here)
    assert settings.profile == str(place.here / "mine.toml")
    assert load_settings(path, env={"RECOLLECT_STORE": "m.db"}).store == "m.db"


def test_the_embedder_and_the_model_that_embeds_are_one_thing_and_the_stronger_layer_has_it(place: Place) -> None:
    named = "[models.embed]\nchain = 'ollama:nomic-embed-text'"
    settings = place.load(named, RECOLLECT_EMBEDDER="none")
    assert (settings.embedder, settings.route("embed").chain) == ("none", ())
    settings = place.load("embedder = 'local'", RECOLLECT_MODELS__EMBED__CHAIN="ollama:nomic-embed-text")
    assert (settings.embedder, settings.route("embed").chain) == (None, (Choice("ollama", "nomic-embed-text"),))


def test_a_model_that_embeds_can_be_named_as_the_embedder(place: Place) -> None:
    settings = place.load(RECOLLECT_EMBEDDER="ollama:nomic-embed-text:v1.5")
    assert (settings.embedder, settings.route("embed").chain) == (None, (Choice("ollama", "nomic-embed-text:v1.5"),))
    assert (settings.origins["models.embed.chain"], list(settings.providers)) == ("RECOLLECT_EMBEDDER", ["ollama"])
    address = "nomic:v1@http://box:1/v1"
    assert place.load(RECOLLECT_EMBEDDER=address).embedder == address
    with pytest.raises(InvalidInput, match="RECOLLECT_EMBEDDER: there is no provider 'olama'; did you mean 'ollama'"):
        place.load(RECOLLECT_EMBEDDER="olama:x")


def test_a_file_from_a_windows_editor_is_read(place: Place) -> None:
    (place.here / "recollect.toml").write_bytes(b"\xef\xbb\xbfprofile = 'archive'\r\n")
    assert place.load().profile == "archive"
    (place.here / "recollect.toml").write_bytes(b"profile = '\xff'")
    with pytest.raises(InvalidInput, match="cannot be read"):
        place.load()


def test_every_value_can_be_set_and_has_an_origin(place: Place) -> None:
    settings = place.load(RECOLLECT_MODEL="openai:x", OPENAI_API_KEY=KEY)
    keys = set(all_keys())
    for table, kind in (("resilience", Resilience), ("spending", Spending)):
        assert {f"{table}.{field.name}" for field in fields(kind)} <= keys
    for row in effective(settings):
        assert row.key in settings.origins
        assert row.key.replace(".openai.", ".NAME.") in keys


def test_secrets_do_not_show_themselves(place: Place) -> None:
    settings = place.load(RECOLLECT_MODEL="openai:x", OPENAI_API_KEY=KEY, RECOLLECT_STORE="postgresql://me:pass@h/d")
    shown = json.dumps(effective(settings), default=str) + repr(settings.providers)
    assert KEY not in shown
    assert KEY[:-4] not in shown
    assert '"…WXYZ"' in shown.replace("\\u2026", "…")
    assert "pass@" not in shown
    assert repr(Secret(KEY)) == "'…'"
    assert (mask("short"), mask("sk-012345678901234")) == ("…", "…1234")
    assert mask_url("nomic@http://me:pa55@h/v1") == "nomic@http://me:…@h/v1"
    assert mask_url("/home/ann/memory.db") == "/home/ann/memory.db"
