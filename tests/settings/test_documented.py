"""The pages on configuration say everything, and nothing that is not so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from aforesaid.profiles.effective import RUNTIME_SETTINGS
from aforesaid.settings import OPERATIONS, load_settings
from aforesaid.settings.load import DEFAULT_ROUTES, KNOWN_PROVIDERS, effective
from settings.place import all_keys

DOCS = Path(__file__).parent.parent.parent / "docs"
REFERENCE = DOCS / "reference" / "configuration.md"
PAGES = [REFERENCE, DOCS / "how-to" / "connect-a-model.md"]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_key_and_every_variable_is_documented() -> None:
    page = REFERENCE.read_text(encoding="utf-8")
    for key in all_keys():
        documented = re.sub(rf"^models\.({'|'.join(OPERATIONS)})\.", "models.OPERATION.", key)
        assert f"| `{documented}` |" in page, key
    for known in KNOWN_PROVIDERS.values():
        for variable in (known.address_variable, known.key_variable):
            assert variable is None or f"`{variable}`" in page


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_documented_defaults_of_operations_are_the_real_ones(operation: str) -> None:
    row = re.search(rf"^\| `{operation}` \|(.*)\|$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    assert row is not None
    _, temperature, tokens, timeout = (cell.strip() for cell in row[1].split("|"))
    route = DEFAULT_ROUTES[operation]  # type: ignore[index]
    unset = {"the provider's", "–"}
    assert (temperature in unset) if route.temperature is None else float(temperature) == route.temperature
    assert (tokens in unset) if route.max_tokens is None else int(tokens) == route.max_tokens
    assert float(timeout) == route.timeout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_that_is_shown_can_be_used(page: Path, tmp_path: Path) -> None:
    shown = [text for language, text in BLOCK.findall(page.read_text(encoding="utf-8")) if not language]
    assert shown
    for text in shown:
        path = tmp_path / "aforesaid.toml"
        path.write_text(text, encoding="utf-8")
        settings = load_settings(path, env={})
        assert settings.route("chat").chain


def test_the_page_on_runtime_settings_is_made_from_their_declarations() -> None:
    rows = [f"| `{key}` | {each.allowed} | {each.help} |" for key, each in RUNTIME_SETTINGS.items()]
    page = (DOCS / "reference" / "runtime-settings.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `.*\|$", page, re.MULTILINE) == rows, "\n".join(rows)


def test_every_key_has_an_effective_value_and_the_documented_default_is_the_real_one(tmp_path: Path) -> None:
    empty = tmp_path / "aforesaid.toml"
    empty.touch()
    shown = {row.key: row.value for row in effective(load_settings(empty, env={}))}
    single = {key for key in all_keys() if not key.startswith(("models.", "providers."))}
    # A secret in a file is shown as the secret.
    assert {key for key in shown if not key.startswith("models.")} == {
        key for key in single if not key.endswith(("token_file", "password_file"))
    }
    page = REFERENCE.read_text(encoding="utf-8")
    documented = dict(re.findall(r"^\| `([a-z_.]+)` \| ([^|]*) \|", page, re.MULTILINE))
    for key in single & shown.keys():
        value, words = shown[key], documented[key].strip("`")
        if isinstance(value, bool):
            assert words == str(value).lower(), key
        elif isinstance(value, int | float):
            assert float(words) == value, key
        elif isinstance(value, str):
            assert words == value, key
        else:
            assert not value, key
