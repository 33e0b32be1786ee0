from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from panel.looking import CHROMIUM, Looker, fill, looking, served


# One for each file: while its driver runs, no other test could have an event loop in this thread.
@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Debian's Chromium."""
    if CHROMIUM is None:
        pytest.skip("Debian's chromium is not installed")
    folder = tmp_path_factory.mktemp("chromium")
    # As root it refuses to build its own sandbox; nothing but pages of our own is opened in it.
    rooted = ["--no-sandbox"] if os.geteuid() == 0 else []
    own = {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_CACHE_HOME": str(folder / "cache")}
    with sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=CHROMIUM, args=[*rooted, "--disable-dev-shm-usage"], env={**os.environ, **own}
        )
        yield started
        started.close()


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory that nobody opens: copies of it are looked at."""
    path = tmp_path_factory.mktemp("panel") / "memory.db"
    fill(path)
    return path


@pytest.fixture(scope="module")
def shown(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The ready link of a server over a memory that tests look at and leave as it is."""
    path = tmp_path_factory.mktemp("shown") / "memory.db"
    shutil.copy(made, path)
    with served(path) as link:
        yield link


@pytest.fixture
def looker(browser: Browser, shown: str) -> Iterator[Looker]:
    """A signed-in browser."""
    with looking(browser, shown) as made:
        yield made


@pytest.fixture
def filled(made: Path, tmp_path: Path) -> Path:
    """A memory of its own, for a test that changes it."""
    path = tmp_path / "memory.db"
    shutil.copy(made, path)
    return path
