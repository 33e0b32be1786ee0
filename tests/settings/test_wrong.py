"""What is said when configuration is wrong, or gives away what it should not."""

from __future__ import annotations

import json
import os

import pytest

from aforesaid.errors import InvalidInput
from aforesaid.settings import Secret, mask, mask_url
from aforesaid.settings.load import effective
from settings.place import KEY, Place


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
        (
            "[models.chat]\nchain = 'box:x'",
            "models.chat.chain: there is no provider 'box'; ollama, openai, anthropic, gemini",
        ),
        (
            "[models]\ndefault = 'scripted@http://127.0.0.1:9/v1'",
            'set providers.local.base_url = "http://127.0.0.1:9/v1", and write "local:scripted" here',
        ),
        ("[models.chat]\nchain = 'qwen:7b@http://me:pa55@h/v1'", '"http://me:…@h/v1", and write "local:qwen:7b" here'),
        ("[models.embed]\nchain = ['ollama:a', 'ollama:b']", "only one model can embed"),
        ("models = 3", "models is a table: write [models]"),
        ("store = 3", "store must be a text, not 3"),
        ("store = ''", "store must be a text"),
        ("[store]\nx = 1", "store must be a text, not {'x': 1}"),
        ("[providers.box]\nconcurrency = 2", "the provider 'box' has no base_url"),
        ("[providers.box]\nbase_url = 'localhost:80'", "providers.box.base_url must be an address such as"),
        ("[providers.box]\nbase_url = 'http://h:port/v1'", "must be an address such as"),
        ("[providers.none]\nbase_url = 'http://h/v1'", "not a valid provider name"),
        ("[providers.'a b']\nbase_url = 'http://h/v1'", "not a valid provider name"),
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
    assert str(place.here / "aforesaid.toml") in str(raised.value)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        ("AFORESAID_MODELS__MERGE__TEMPERATUR", "1", "unknown key 'models.merge.temperatur'; did you mean"),
        (
            "AFORESAID_MODELS__MERGE__TEMPERATURE",
            "warm",
            "AFORESAID_MODELS__MERGE__TEMPERATURE must be a number from 0",
        ),
        (
            "AFORESAID_MODELS",
            "ollama:x",
            "AFORESAID_MODELS is a table and cannot have a value; set a key in it: default",
        ),
        ("AFORESAID_REDO", "perhaps", "AFORESAID_REDO must be true or false, not 'perhaps'"),
        ("AFORESAID_STORE__X", "1", "AFORESAID_STORE__X: store is a value, not a table"),
        ("AFORESAID_CONFIG", "/nowhere/x.toml", "there is no configuration file at /nowhere/x.toml (AFORESAID_CONFIG)"),
    ],
)
def test_a_wrong_variable_is_told_by_its_name(place: Place, variable: str, value: str, said: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        place.load(**{variable: value})
    assert said in str(raised.value)
    assert variable in str(raised.value)


def test_two_variables_for_the_same_thing_are_refused(place: Place) -> None:
    with pytest.raises(InvalidInput, match="AFORESAID_MODEL and AFORESAID_MODELS__DEFAULT set the same thing"):
        place.load(AFORESAID_MODEL="ollama:a", AFORESAID_MODELS__DEFAULT="ollama:b")


def test_a_mistyped_variable_is_doubted_and_one_that_others_made_is_let_be(place: Place) -> None:
    settings = place.load(AFORESAID_MODLE="ollama:x", AFORESAID_SERVICE_HOST="10.0.0.1", AFORESAID_PORT="tcp://x")
    assert settings.warnings == ("AFORESAID_MODLE is not used; did you mean AFORESAID_MODEL?",)


def test_a_wrong_key_is_never_repeated(place: Place) -> None:
    with pytest.raises(InvalidInput, match="must be a key: printable") as raised:
        place.load("[providers.openai]\napi_key = 'my secret words'")
    assert "my secret words" not in str(raised.value)


def test_a_file_with_a_key_that_others_can_read_is_warned_about(place: Place) -> None:
    path = place.write(f"[providers.openai]\napi_key = '{KEY}'")
    assert place.load().warnings == ()
    path.chmod(0o644)
    assert place.load().warnings == (f"{path} contains a key and is readable by other users; run: chmod 600 {path}",)


def test_a_model_without_its_key_is_warned_about(place: Place) -> None:
    assert place.load(AFORESAID_MODEL="openai:gpt-4o-mini").warnings == (
        "openai needs a key: set OPENAI_API_KEY, or providers.openai.api_key",
    )
    assert place.load(AFORESAID_MODEL="openai:x", OPENAI_BASE_URL="http://localhost:1/v1").warnings == ()


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
    said = place.load(None, OPENAI_API_KEY=KEY, AFORESAID_PROVIDERS__OPENAI__BASE_URL="http://proxy/v1")
    assert said.providers["openai"].api_key == KEY


def test_a_file_that_somebody_else_laid_into_the_folder_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.write("profile = 'archive'")
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 4711)
    if path.stat().st_uid == 0:
        # Files of root are trusted: give it away, which only root can.
        os.chown(path, 12345, -1)
    with pytest.raises(InvalidInput, match="belongs to another user; if you trust it, set AFORESAID_CONFIG="):
        place.load()
    assert place.load(AFORESAID_CONFIG=str(path)).profile == "archive"


def test_secrets_do_not_show_themselves(place: Place) -> None:
    settings = place.load(AFORESAID_MODEL="openai:x", OPENAI_API_KEY=KEY, AFORESAID_STORE="postgresql://me:pass@h/d")
    shown = json.dumps(effective(settings), default=str) + repr(settings.providers)
    assert KEY not in shown
    assert KEY[:-4] not in shown
    assert '"…WXYZ"' in shown.replace("\\u2026", "…")
    assert "pass@" not in shown
    assert repr(Secret(KEY)) == "'…'"
    assert (mask("short"), mask("sk-012345678901234")) == ("…", "…1234")
    assert mask_url("nomic@http://me:pa55@h/v1") == "nomic@http://me:…@h/v1"
    assert mask_url("/home/ann/memory.db") == "/home/ann/memory.db"
