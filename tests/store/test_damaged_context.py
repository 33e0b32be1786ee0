"""A damaged derived file of one account is set aside and made again; nobody else notices."""

from __future__ import annotations

from pathlib import Path

import pytest

import aforesaid

pytestmark = [pytest.mark.req("G10", "C8"), pytest.mark.defect("B9")]


async def test_a_damaged_history_context_is_set_aside_and_rebuilt(tmp_path: Path) -> None:
    location = f"files:{tmp_path / 'memory'}"
    async with aforesaid.connect(location, profile="account") as memory:
        for user in ("ann", "bob"):
            for number in range(60):
                await memory.user(user).add("user", f"I planted tree {number} in the garden.")
        await memory.upkeep()
        of_bob = await memory.user("bob").history_context()
        assert (await memory.user("ann").history_context()).made_at is not None
    file = tmp_path / "memory/account_ann/history_context.json"
    damaged = file.read_bytes().replace(b"tree", b"tr\x00e")
    file.write_bytes(damaged)
    async with aforesaid.connect(location, profile="account") as memory:
        assert await memory.user("bob").history_context() == of_bob
        assert len(await memory.user("ann").history(100)) == 60
        assert all(message.active for message in await memory.user("ann").history(100))
        (kept,) = file.parent.glob("history_context.json.damaged-*")
        assert kept.read_bytes() == damaged
        issues = (await memory.health()).component("store").issues
        assert any(kept.name in issue for issue in issues)
        await memory.upkeep()
        assert (await memory.user("ann").history_context()).made_at is not None
        await memory.user("ann").add("user", "One more.")
    async with aforesaid.connect(location, profile="account") as memory:
        assert (await memory.health()).component("store").issues == ()
        assert (await memory.verify()).ok
        await memory.purge("ann")
    assert not list((tmp_path / "memory").glob("account_ann/*"))


async def test_damaged_vectors_are_set_aside_and_made_again(tmp_path: Path) -> None:
    location = f"files:{tmp_path / 'memory'}"
    async with aforesaid.connect(location, embedder="deterministic") as memory:
        for user in ("ann", "bob"):
            for number in range(20):
                await memory.user(user).add("user", f"I planted tree {number} in {user}'s garden.")
        await memory.upkeep()
    file = tmp_path / "memory/account_ann/vectors.json"
    file.write_bytes(file.read_bytes()[:-200])
    async with aforesaid.connect(location, embedder="deterministic", settings={"background": False}) as memory:
        assert len(await memory.user("ann").history(100)) == 20
        assert list(file.parent.glob("vectors.json.damaged-*"))
        await memory.upkeep()
        assert await memory.user("ann").search("tree 7", arms="dense")
        assert await memory.user("bob").search("tree 7", arms="dense")
    async with aforesaid.connect(location, embedder="deterministic") as memory:
        assert (await memory.verify()).ok
