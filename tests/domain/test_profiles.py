from __future__ import annotations

from pathlib import Path

import pytest

from aforesaid.errors import InvalidInput
from aforesaid.profiles import BUILT_IN, load_profile


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_profile_loads_with_the_documented_session_timeout(name: str) -> None:
    assert load_profile(name).session_minutes == 30


def test_the_built_in_profiles_summarise_as_the_documents_do() -> None:
    policies = {name: load_profile(name).summaries for name in BUILT_IN}
    assert policies == {
        "default": "tree",
        "archive": "tree",
        "community": "calendar",
        "account": "tiers",
        "companion": "none",
        "session": "rolling",
    }


def test_a_space_can_have_its_own_time_zone() -> None:
    profile = load_profile({"time_zone": "Asia/Tokyo", "time_zones": {"guild": "Europe/Berlin"}})
    assert (str(profile.zone("guild")), str(profile.zone("other"))) == ("Europe/Berlin", "Asia/Tokyo")


def test_a_profile_can_be_a_file_that_extends_another(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('extends = "companion"\nsession_minutes = 5\n')
    profile = load_profile(path)
    assert (profile.session_minutes, profile.message_bytes) == (5, 65536)
    assert profile.session_silence == 300_000_000


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"sesion_minutes": 5}, "unknown key 'sesion_minutes'; did you mean 'session_minutes'"),
        ({"extends": "nothing"}, "extends 'nothing'"),
        ({"session_minutes": 0}, "at least 1"),
        ({"session_minutes": "5"}, "whole number, not str"),
        ({"message_bytes": True}, "whole number, not bool"),
        ({"summaries": "novel"}, "must be one of tree, rolling, calendar, tiers, none, not 'novel'"),
        ({"tree_turns": 501}, "at most 500"),
        ({"topic_changes": 1}, "must be true or false"),
        ({"time_zone": "Berlin"}, "not a time zone such as Europe/Berlin"),
        ({"time_zones": "UTC"}, "a time zone for each space"),
        ({"time_zones": {"guild": "Nowhere/Land"}}, "not a time zone"),
        ("companio", "did you mean 'companion'"),
        ("missing.toml", "cannot be read"),
    ],
)
def test_what_is_wrong_with_a_profile_is_said(wrong: object, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        load_profile(wrong)  # type: ignore[arg-type]


def test_a_profile_file_with_a_syntax_error_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("session_minutes = = 5")
    with pytest.raises(InvalidInput, match="not valid TOML"):
        load_profile(path)
