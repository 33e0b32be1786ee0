"""Fixtures for tests of bots."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import aforesaid
from bots.remembering import QUIET
from bots.room import Room


@pytest.fixture
def room() -> Room:
    return Room()


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[aforesaid.Memory]:
    async with aforesaid.connect(tmp_path / "memory.db", profile=QUIET, embedder="none") as opened:
        yield opened
