from __future__ import annotations

from collections.abc import Iterator

import pytest

from mumble.mumbling import MumbleServer


@pytest.fixture(scope="session")
def mumble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MumbleServer]:
    """A server that all tests share; each takes names of its own."""
    server = MumbleServer(tmp_path_factory.mktemp("mumble"))
    server.allow_superuser()
    server.start()
    yield server
    server.stop()
