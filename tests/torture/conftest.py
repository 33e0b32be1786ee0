from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from torture.support import Size

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of our own is made inside


@pytest.fixture
def size(request: pytest.FixtureRequest) -> Size:
    """How much of a scenario to run: a taste in the plain test run, all of it with --torture."""
    return Size(
        full=request.config.getoption("--torture", default=False),
        scale=request.config.getoption("--torture-scale", default=1.0),
    )


@pytest.fixture
def arena(tmp_path: Path) -> Iterator[Path]:
    """A folder where a sync costs nothing, for scenarios that need many files and no real disk."""
    if not _SHARED_MEMORY.is_dir():
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="aforesaid-torture-", dir=_SHARED_MEMORY))
    yield folder
    shutil.rmtree(folder)
