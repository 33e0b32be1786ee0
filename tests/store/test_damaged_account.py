"""A damaged file of one account is set aside, and its content is rebuilt; nobody else notices.

With the database beside it, nothing is lost. Most of these tests are about files that were copied without theirs.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner

import aforesaid
from aforesaid.cli import app
from aforesaid.domain.report import Component
from aforesaid.domain.scope import Scope
from aforesaid.memory import Memory, UserMemory
from aforesaid.portability.migrating import repair
from aforesaid.store import open_store, restore_store
from aforesaid.store.memories import Memories
from aforesaid.store.messages import Messages
from aforesaid.store.people import Settings
from making import remove_databases

pytestmark = pytest.mark.req("G10", "C8")
QUIET = {"background": False}


async def fill(tmp_path: Path) -> str:
    """Return the location of a store with two people of whom something is known."""
    location = f"files:{tmp_path / 'memory'}"
    async with aforesaid.connect(location, profile="companion", settings=QUIET) as memory:
        for user, town in (("ann", "Berlin"), ("bob", "Rome")):
            person = memory.user(user)
            await person.add("user", f"I live in {town}.")
            await person.add("user", "I am allergic to nuts.")
            await person.add("user", "My sister is called Eva.")
            await memory.upkeep()
            await person.note("fact", "Has a blue car")
            await person.remember("likes tea")
            await person.set("memory_limit", 7)
    return location


def damage(tmp_path: Path, name: str, text: str) -> Path:
    """Damage the line of a file of Ann's account in which a text is, as nobody types it."""
    path = tmp_path / "memory/account_ann" / name
    lines = path.read_text(encoding="utf-8").split("\n")
    (place,) = [place for place, line in enumerate(lines) if text in line and '"check"' in line]
    lines[place] = lines[place].replace(text, f"\0{text[1:]}")
    path.write_text("\n".join(lines), encoding="utf-8")
    remove_databases(tmp_path)
    return path


async def texts(person: UserMemory) -> set[str]:
    return {each.text for each in await person.memories()}


async def wrong(memory: Memory) -> list[str]:
    return [check.name for check in (await memory.verify()).checks if not check.ok]


async def the_store(memory: Memory) -> Component:
    return (await memory.health()).component("store")


@pytest.mark.defect("B9")
async def test_a_damaged_memory_is_extracted_again_and_the_others_stay(tmp_path: Path) -> None:
    location = await fill(tmp_path)
    path = damage(tmp_path, "memories.json", "Berlin")
    damaged = path.read_bytes()
    async with aforesaid.connect(location, profile="companion", settings=QUIET) as memory:
        ann, bob = memory.user("ann"), memory.user("bob")
        assert not any("Berlin" in text for text in await texts(ann))
        assert any("blue car" in text for text in await texts(ann)), "intact records stay"
        assert any("Rome" in text for text in await texts(bob))
        (kept,) = path.parent.glob("memories.json.damaged-*Z")
        assert kept.read_bytes() == damaged
        assert any(kept.name in issue for issue in (await the_store(memory)).issues)
        assert await wrong(memory) == ["losses"]
        before = {each.id: each.times for each in await ann.memories()}
        await memory.upkeep()
        again = await ann.memories()
        assert any("Berlin" in each.text for each in again)
        assert {each.id: each.times for each in again if each.id in before} == before, "nothing is counted twice"
    async with aforesaid.connect(location, profile="companion", settings=QUIET) as memory:
        assert any("Berlin" in text for text in await texts(memory.user("ann")))


@pytest.mark.defect("B9")
async def test_it_is_rebuilt_in_the_background_without_waiting_for_a_message(tmp_path: Path) -> None:
    location = await fill(tmp_path)
    damage(tmp_path, "memories.json", "Berlin")
    async with aforesaid.connect(location, profile="companion") as memory:
        changed = asyncio.Event()
        memory.changes.listen(lambda _: changed.set())
        while not any("Berlin" in text for text in await texts(memory.user("ann"))):
            await changed.wait()
            changed.clear()


@pytest.mark.defect("B9")
async def test_what_somebody_asked_to_forget_does_not_come_back_with_a_damaged_file(tmp_path: Path) -> None:
    location = await fill(tmp_path)
    async with aforesaid.connect(location, profile="companion", settings=QUIET) as memory:
        assert (await memory.user("ann").forget("lives in Berlin")).found
        await memory.user("ann").add("user", "I work as a nurse.")
        await memory.upkeep()
    path = tmp_path / "memory/account_ann/memories.json"
    path.write_bytes(path.read_bytes()[:100])
    remove_databases(tmp_path)
    async with aforesaid.connect(location, profile="companion", settings=QUIET) as memory:
        await memory.upkeep()
        found = await texts(memory.user("ann"))
        assert any("nurse" in text for text in found), "messages since then are looked through again"
        assert not any("Berlin" in text for text in found)
        assert await wrong(memory) == ["losses"]


@pytest.mark.defect("B9")
async def test_without_the_audit_log_nothing_is_extracted_again(tmp_path: Path) -> None:
    location = await fill(tmp_path)
    async with aforesaid.connect(location, profile="companion", settings=QUIET) as memory:
        assert (await memory.user("ann").forget("lives in Berlin")).found
    for name in ("memories.json", "audit.json"):
        path = tmp_path / "memory/account_ann" / name
        path.write_bytes(path.read_bytes()[:100])
    remove_databases(tmp_path)
    async with aforesaid.connect(location, profile="companion", settings=QUIET) as memory:
        await memory.upkeep()
        assert await texts(memory.user("ann")) == set()
        assert any("Rome" in text for text in await texts(memory.user("bob")))
        assert await wrong(memory) == ["losses"]


@pytest.mark.defect("B9")
async def test_a_damaged_account_record_keeps_its_intact_settings_and_loses_no_message(tmp_path: Path) -> None:
    location = await fill(tmp_path)
    path = damage(tmp_path, "account.json", "extracted_up_to")
    async with aforesaid.connect(location, profile="companion", settings=QUIET) as memory:
        ann = memory.user("ann")
        assert len(await ann.history()) == 3
        assert (await ann.settings())["memory_limit"] == 7
        assert any(
            "not recovered: account_ann/account.json: 1 of" in issue for issue in (await the_store(memory)).issues
        )
        assert list(path.parent.glob("account.json.damaged-*"))
        before = await texts(ann)
        await memory.upkeep()
        assert await texts(ann) == before
        await ann.add("user", "I work as a nurse.")
        assert await wrong(memory) == ["losses"]


@pytest.mark.defect("B9")
async def test_a_damaged_audit_log_keeps_its_intact_rows(tmp_path: Path) -> None:
    location = await fill(tmp_path)
    async with aforesaid.connect(location, profile="companion", settings=QUIET) as memory:
        rows = await memory.user("ann").audit()
    damage(tmp_path, "audit.json", json.dumps({"id": rows[1].id})[1:-1] + ",")
    async with aforesaid.connect(location, profile="companion", settings=QUIET) as memory:
        left = await memory.user("ann").audit()
        kept = [(row.at, row.action, row.subject) for row in left if row.at <= rows[-1].at]
        assert kept == [(row.at, row.action, row.subject) for row in [rows[0], *rows[2:]]]
        assert await wrong(memory) == ["losses"]


@pytest.mark.defect("W5")
@pytest.mark.parametrize("way", ["remove the list", "repair", "restore", "purge"])
async def test_a_loss_is_named_until_somebody_deals_with_it(tmp_path: Path, way: str) -> None:
    location = await fill(tmp_path)
    async with aforesaid.connect(location, profile="companion", settings=QUIET) as memory:
        await memory.backup(tmp_path / "backup")
    damage(tmp_path, "memories.json", "blue car")
    for _ in range(2):
        async with aforesaid.connect(location, profile="companion", settings=QUIET) as memory:
            assert not any("blue car" in text for text in await texts(memory.user("ann")))
            await memory.upkeep()
            (check,) = [check for check in (await memory.verify()).checks if not check.ok]
            assert "not recovered: account_ann/memories.json: 1 of" in check.detail
            health = await the_store(memory)
            assert health.status == "active", "everything else works"
            assert any("not recovered: account_ann/memories.json: 1 of" in issue for issue in health.issues)
    verified = CliRunner().invoke(app, ["verify", "--store", location])
    assert verified.exit_code == 1
    assert "account_ann/memories.json: 1 of" in " ".join(verified.output.split())
    match way:
        case "remove the list":
            (named,) = (tmp_path / "memory/account_ann").glob("*.lost")
            assert named.name in check.detail
            named.unlink()
        case "repair":
            repaired = await repair(location)
            assert repaired.lost[0].startswith("account_ann/memories.json: 1 of")
        case "restore":
            restore_store(tmp_path / "backup", location, replace=True)
        case _:
            async with aforesaid.connect(location, settings=QUIET) as memory:
                await memory.purge("ann")
    async with aforesaid.connect(location, profile="companion", settings=QUIET) as memory:
        assert (await memory.verify()).ok
        assert (await the_store(memory)).issues == ()


@pytest.mark.defect("W5")
async def test_after_a_byte_of_a_file_changed_everything_is_there_or_the_loss_is_named(
    tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    await fill(tmp_path)
    chance = Random(5)
    told = 0
    for number in range(150 if pytestconfig.getoption("--torture") else 12):
        folder = tmp_path / f"copy{number}"
        shutil.copytree(tmp_path / "memory", folder)
        before = await kept_in(folder)
        path = folder / "account_ann" / ("account.json", "memories.json", "whole_history.json")[number % 3]
        content = bytearray(path.read_bytes())
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        if number % 2:
            remove_databases(folder)
        for _ in range(2):
            after, verified = await kept_in(folder)
            assert after == before[0] or not verified, f"round {number}"
        told += not verified
        shutil.rmtree(folder)
    assert told > 0


async def kept_in(folder: Path) -> tuple[object, bool]:
    """Return what is known of Ann, and whether the store verifies."""
    store = await open_store(f"files:{folder}")
    ann = Scope.of("ann")
    known = (
        await store.read(Memories(ann)),
        await store.read(Settings(ann)),
        await store.read(Messages(ann, within="user")),
    )
    verified = (await store.verify()).ok
    await store.close()
    return known, verified


async def fill_history(folder: Path) -> None:
    """Make a store in which Ann has more messages than the windows repeat, and talks with Bob."""
    async with aforesaid.connect(
        f"files:{folder}", embedder="deterministic", profile="companion", settings=QUIET
    ) as memory:
        await memory.user("ann").add("user", "I live in Berlin.")
        for user in ("ann", "bob"):
            await memory.user(user, thread="room").add("user", f"Hello from {user}.")
        await memory.user("ann").add_many(
            [{"role": "user", "text": f"I planted tree {number}."} for number in range(260)]
        )
        await memory.upkeep()


@pytest.fixture(scope="module")
def long_history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long") / "memory"
    asyncio.run(fill_history(folder))
    return folder


@pytest.mark.defect("Q10")
@pytest.mark.parametrize("harm", ["an old message", "a session", "a new message", "the first line", "half", "gone"])
async def test_damaged_messages_of_one_account_stop_nobody(tmp_path: Path, long_history: Path, harm: str) -> None:
    location = f"files:{shutil.copytree(long_history, tmp_path / 'memory')}"
    path = tmp_path / "memory/account_ann/whole_history.json"
    match harm:
        case "an old message":
            damage(tmp_path, path.name, "Berlin")
        case "a session":
            damage(tmp_path, path.name, '"session_key": 2,')
        case "a new message":
            damage(tmp_path, path.name, "planted tree 259")
        case "the first line":
            damage(tmp_path, path.name, '"format"')
        case "half":
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        case _:
            path.unlink()
    remove_databases(tmp_path)
    harmed = [path.read_bytes()] if path.exists() else []
    lost = harm not in {"a new message", "the first line"}
    for first in (True, False):
        async with aforesaid.connect(location, embedder="deterministic", profile="companion", settings=QUIET) as memory:
            ann, room = memory.user("ann"), memory.user("bob", thread="room")
            said = await ann.history(500)
            assert "I planted tree 259." in [each.text for each in said], "the windows repeat the newest messages"
            assert ("I live in Berlin." in [each.text for each in said]) == (harm not in {"an old message", "gone"})
            in_room = [each.text for each in await room.history(within="thread")]
            assert in_room == ["Hello from ann.", "Hello from bob."][harm == "gone" :]
            assert [each.messages for each in await room.sessions(within="thread")] == [len(in_room)]
            assert await wrong(memory) == (["losses"] if lost else [])
            assert bool((await the_store(memory)).issues) == (lost or first)
            assert [each.read_bytes() for each in path.parent.glob(f"{path.name}.damaged-*Z")] == harmed
            await memory.upkeep()
            assert await ann.search("planted tree 259", arms="dense")
            assert {each.seq for each in said}.issuperset(seq for each in await ann.memories() for seq in each.sources)
            await ann.add("user", "I go on.")
            assert (await ann.history(1))[0].seq > 263, "numbers are not given out again"
    verified = CliRunner().invoke(app, ["verify", "--store", location])
    assert verified.exit_code == (1 if lost else 0)
    assert (await repair(location)).needed == lost
    async with aforesaid.connect(location, profile="companion", settings=QUIET) as memory:
        assert (await memory.verify()).ok
        assert (await the_store(memory)).issues == ()


@pytest.mark.defect("B9")
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


@pytest.mark.defect("B9")
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
