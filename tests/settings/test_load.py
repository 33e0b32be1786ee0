"""Configuration: where values come from, and which one wins."""

from __future__ import annotations

from dataclasses import fields

import pytest

from aforesaid.errors import InvalidInput
from aforesaid.settings import OPERATIONS, Choice, Resilience, Spending, load_settings
from aforesaid.settings.load import effective, ollama_address
from settings.place import KEY, Place, all_keys


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
    settings = place.load(AFORESAID_MODEL="ollama:llama3.2:3b")
    assert settings.providers["ollama"].base_url == "http://localhost:11434/v1"
    for operation in OPERATIONS:
        expected = () if operation == "embed" else (Choice("ollama", "llama3.2:3b"),)
        assert settings.route(operation).chain == expected
        assert settings.origins[f"models.{operation}.chain"] == (
            "default" if operation == "embed" else "AFORESAID_MODEL"
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
    settings = place.load(AFORESAID_MODEL="ollama:llama3.2")
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
    file = str(place.here / "aforesaid.toml")
    known = place.load(text, OPENAI_API_KEY=KEY)
    assert known.providers["openai"].api_key == "sk-from-file-aaaaaaaaaa"
    assert known.origins["providers.openai.api_key"] == file
    assert known.origins["models.chat.chain"] == file
    over = place.load(None, AFORESAID_MODEL="openai:from-variable", AFORESAID_PROFILE="session")
    assert (str(over.route("chat").chain[0]), over.profile) == ("openai:from-variable", "session")
    assert (over.origins["models.chat.chain"], over.origins["profile"]) == ("AFORESAID_MODEL", "AFORESAID_PROFILE")
    assert over.origins["providers.openai.concurrency"] == file
    told = place.load(None, {"models.default": "openai:from-argument", "store": None}, AFORESAID_MODEL="openai:x")
    assert str(told.route("chat").chain[0]) == "openai:from-argument"
    assert told.origins["models.chat.chain"] == "argument"


def test_every_key_has_a_variable(place: Place) -> None:
    variables = {
        "AFORESAID_STORE": "m.db",
        "AFORESAID_REDO": "off",
        "AFORESAID_MODELS__TIMEOUT": "5",
        "AFORESAID_MODELS__EXTRACT__CHAIN": "my-box:a, none",
        "AFORESAID_MODELS__EXTRACT__TEMPERATURE": "default",
        "AFORESAID_PROVIDERS__MY_BOX__API_KEY": KEY,
        "AFORESAID_PROVIDERS__MY_BOX__STRUCTURED": "schema",
        "AFORESAID_PROVIDERS__OTHER__BASE_URL": "http://other/v1",
        "AFORESAID_RESILIENCE__PROBE_SECONDS": "2.5",
        "AFORESAID_SPENDING__TOKENS_PER_DAY": "1000",
        "AFORESAID_USER": "ann",
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
    assert "must contain a key" in settings.warnings[0]


def test_the_file_is_found_where_it_is_named_then_here_then_in_the_platforms_folder(place: Place) -> None:
    assert place.load().profile == "default"
    usual = place.home / "aforesaid" / "aforesaid.toml"
    usual.parent.mkdir()
    usual.write_text("profile = 'archive'", encoding="utf-8")
    assert place.load().profile == "archive"
    assert place.load("profile = 'session'").profile == "session"
    named = place.write("profile = 'community'", "other.toml")
    assert place.load(AFORESAID_CONFIG=str(named)).profile == "community"
    assert load_settings(named, env={"AFORESAID_CONFIG": "/nowhere"}).profile == "community"
    with pytest.raises(InvalidInput, match="there is no configuration file at"):
        load_settings(place.here / "missing.toml", env={})


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
    assert load_settings(path, env={"AFORESAID_STORE": "m.db"}).store == "m.db"


def test_the_embedder_and_the_model_that_embeds_are_one_thing_and_the_stronger_layer_has_it(place: Place) -> None:
    named = "[models.embed]\nchain = 'ollama:nomic-embed-text'"
    settings = place.load(named, AFORESAID_EMBEDDER="none")
    assert (settings.embedder, settings.route("embed").chain) == ("none", ())
    settings = place.load("embedder = 'local'", AFORESAID_MODELS__EMBED__CHAIN="ollama:nomic-embed-text")
    assert (settings.embedder, settings.route("embed").chain) == (None, (Choice("ollama", "nomic-embed-text"),))


def test_a_model_that_embeds_can_be_named_as_the_embedder(place: Place) -> None:
    settings = place.load(AFORESAID_EMBEDDER="ollama:nomic-embed-text:v1.5")
    assert (settings.embedder, settings.route("embed").chain) == (None, (Choice("ollama", "nomic-embed-text:v1.5"),))
    assert (settings.origins["models.embed.chain"], list(settings.providers)) == ("AFORESAID_EMBEDDER", ["ollama"])
    address = "nomic:v1@http://box:1/v1"
    assert place.load(AFORESAID_EMBEDDER=address).embedder == address
    with pytest.raises(InvalidInput, match="AFORESAID_EMBEDDER: there is no provider 'olama'; did you mean 'ollama'"):
        place.load(AFORESAID_EMBEDDER="olama:x")


def test_a_file_from_a_windows_editor_is_read(place: Place) -> None:
    (place.here / "aforesaid.toml").write_bytes(b"\xef\xbb\xbfprofile = 'archive'\r\n")
    assert place.load().profile == "archive"
    (place.here / "aforesaid.toml").write_bytes(b"profile = '\xff'")
    with pytest.raises(InvalidInput, match="cannot be read"):
        place.load()


def test_every_value_can_be_set_and_has_an_origin(place: Place) -> None:
    settings = place.load(AFORESAID_MODEL="openai:x", OPENAI_API_KEY=KEY)
    keys = set(all_keys())
    for table, kind in (("resilience", Resilience), ("spending", Spending)):
        assert {f"{table}.{field.name}" for field in fields(kind)} <= keys
    for row in effective(settings):
        assert row.key in settings.origins
        assert row.key.replace(".openai.", ".NAME.") in keys
