"""Tests of the integrations. `make test-integrations` runs them where the frameworks are installed.

They are left out where a framework is not installed: each file begins with `pytest.importorskip`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import aforesaid

os.environ.setdefault("AFORESAID_EMBEDDER", "deterministic")
# Nobody is told that the tests run.
os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")
os.environ.setdefault("CREWAI_DISABLE_TELEMETRY", "true")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[aforesaid.SyncMemory]:
    """A memory that can be called from everywhere."""
    with aforesaid.open(tmp_path / "memory.db") as opened:
        yield opened
