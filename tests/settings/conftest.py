"""Fixtures for tests of configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from settings.place import Place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.chdir(made.here)
    return made
