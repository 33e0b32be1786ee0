from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from server.serving import Running, running


@pytest.fixture
async def server() -> AsyncIterator[Running]:
    """A server over an empty memory."""
    async with running() as made:
        yield made
