from __future__ import annotations

from pathlib import Path

import pytest

from recollect.errors import InvalidInput
from recollect.profiles import BUILT_IN, load_profile


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_profile_loads_with_the_documented_session_timeout(name: str) -> None:
    assert load_profile(name).session_minutes == 30


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
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_profile(path)
