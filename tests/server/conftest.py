from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from server.serving import Running, running
from server.talking import Talk, talking


@pytest.fixture
async def server() -> AsyncIterator[Running]:
    """A server over an empty memory."""
    async with running() as made:
        yield made


@pytest.fixture(scope="module")
def shared() -> Iterator[Talk]:
    with talking() as talk:
        yield talk


@pytest.fixture
def talk(shared: Talk, request: pytest.FixtureRequest) -> Talk:
    """The one server, with a space for each test."""
    shared.model.heal()
    shared.model.say(())
    shared.model.requests.clear()
    shared.key = shared.server.key(space=request.node.name[:200])
    return shared
