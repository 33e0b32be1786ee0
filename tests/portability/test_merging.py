"""Two users who are one person become one, and a backup brings back what is missing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import aforesaid
from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput, NotFound
from aforesaid.memory import Memory

pytestmark = pytest.mark.defect("S13")

NINE = datetime(2026, 5, 1, 9, tzinfo=UTC)


async def fill(memory: Memory) -> None:
    """Tom wrote under two ids, in a direct chat, a chat, a channel, and in what Bob keeps."""
    ann, tom, bob = memory.user("ann"), memory.user("tom"), memory.user("bob")
    for number in range(3):
        at = NINE + timedelta(minutes=number)
        await ann.add("user", f"early {number}", at=at, name="Ann", id=f"m{number}")
        await tom.add("user", f"late {number}", at=at + timedelta(seconds=30), name="Tom", id=f"m{number}")
    await memory.user("tom", thread="general").add("user", "hi all", id="g1", at=NINE)
    await memory.user("tom", thread="general").add("user", "me again", reply_to="g1", at=NINE)
    await memory.user("bob", thread="general").add("user", "hi tom", id="g2", reply_to="g1", at=NINE)
    await bob.add("user", "said by tom", author="tom", id="z1", at=NINE)
    await memory.user("tom", chat="c1").add("user", "in a chat of my own")
    await tom.add("user", "look", parts=[Part.of(b"a picture", "image/png", name="roof.png")])
    said = (await tom.add("user", "I live in Porto")).message
    await tom.edit(said, "I live in Lisbon")
    await tom.take_back((await tom.add("user", "my pin")).message)
    note = await tom.note("fact", "Plays cello")
    await tom.edit_memory(note.id, text="Plays the cello")
    await tom.remember("I am allergic to hazelnuts")
    await tom.set("time_zone", "Asia/Tokyo")
    await ann.set("persona", "kind")
    await tom.set("persona", "strict")
    await tom.sent(await tom.context("hello"), model="llama3.2")
    await ann.remember("I like tea")
    await memory.upkeep()


async def test_what_is_stored_of_one_becomes_the_others(location: str) -> None:
    async with aforesaid.connect(location, embedder="none") as memory:
        await fill(memory)
        ann = memory.user("ann")
        merged = await memory.merge("tom", "ann", actor="me")
        await memory.upkeep()
        assert [user.id for user in await memory.users()] == ["ann", "bob"]
        history = await ann.history(100)
        assert [message.text for message in history if message.thread == "direct:ann"] == [
            "early 0", "late 0", "early 1", "late 1", "early 2", "late 2", "look", "I live in Lisbon",
        ]  # fmt: skip
        assert {message.author for message in history} == {"ann"}
        assert {"hi all", "me again", "in a chat of my own"} <= {message.text for message in history}
        assert (merged.messages, merged.settings) == (12, 1)
        assert len(await ann.history(100, versions=True)) == 14, "with the old version and the tombstone"
        here = {
            message.text: message for message in await memory.user("ann", thread="general").history(within="thread")
        }
        assert here["me again"].reply_to == here["hi all"].id
        (kept,) = await memory.user("bob").history(role="user", author="ann")
        assert kept.text == "said by tom"
        texts = {each.text for each in await ann.memories()}
        assert "Plays the cello" in texts
        assert {each.before.text for each in await ann.memory_history(await number_of(memory, "Plays the cello"))} == {
            "Plays cello"
        }
        assert len(texts) == len(await ann.memories()), "nothing was learned twice"
        assert await ann.settings() == {"time_zone": "Asia/Tokyo", "persona": "kind"}
        facts = (await ann.facts())[-1].text
        assert "tea" in facts
        assert "hazelnuts" in facts
        assert len(await ann.receipts()) == 1
        (picture,) = [part for message in history for part in message.parts if part.hash]
        assert await memory.attachment(picture.hash or "") == b"a picture"
        assert ("merge", f"12 messages, {merged.memories} memories of tom") in [
            (row.action, row.subject) for row in await ann.audit()
        ]
        assert (await memory.verify()).ok


async def number_of(memory: Memory, text: str) -> int:
    return next(each.id for each in await memory.user("ann").memories() if each.text == text)


async def test_nothing_is_erased_before_all_is_stored_and_a_merge_can_be_repeated(
    location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with aforesaid.connect(location, embedder="none") as memory:
        await fill(memory)
        purge = memory.store.purge

        async def crash(*_: object) -> None:
            raise ConnectionError

        monkeypatch.setattr(memory.store, "purge", crash)
        with pytest.raises(ConnectionError):
            await memory.merge("tom", "ann")
        assert [user.id for user in await memory.users()] == ["ann", "bob", "tom"]
        monkeypatch.setattr(memory.store, "purge", purge)
        again = await memory.merge("tom", "ann")
        assert again.messages == 0
        texts = [message.text for message in await memory.user("ann").history(100)]
        assert texts.count("late 1") == texts.count("hi all") == texts.count("I live in Lisbon") == 1
        assert (await memory.user("ann").facts())[-1].text.count("hazelnuts") == 1
        assert (await memory.verify()).ok


async def test_only_two_different_users_who_exist_are_merged() -> None:
    async with aforesaid.connect(":memory:", embedder="none") as memory:
        await memory.user("ann").add("user", "hello")
        for user, into in (("ann", "never"), ("never", "ann")):
            with pytest.raises(NotFound):
                await memory.merge(user, into)
        with pytest.raises(InvalidInput):
            await memory.merge("ann", "ann")


async def test_a_backup_brings_back_what_is_missing_and_changes_nothing_else(tmp_path: Path) -> None:
    backup = tmp_path / "backup.db"
    async with aforesaid.connect(tmp_path / "memory.db", embedder="none") as memory:
        ann = memory.user("ann")
        await ann.add("user", "I live in Porto.", id="m1")
        await ann.add("user", "hello", id="m2")
        await memory.upkeep()
        await memory.backup(backup)
        before = backup.read_bytes()
        await ann.erase("m1")
        await ann.edit("m2", "hello there")
        await ann.add("user", "later")
        looked = await memory.load(backup, dry_run=True)
        assert (looked.format, looked.found["message"], looked.users[0].id) == ("backup", 2, "ann")
        assert [message.text for message in await ann.history()] == ["hello there", "later"]
        loaded = await memory.load(backup)
        assert loaded.ok
        assert loaded.new["message"] == 1
        assert [message.text for message in await ann.history()] == ["I live in Porto.", "hello there", "later"]
        assert [each.text for each in await ann.memories()] == ["ann lives in Porto."]
        assert (await memory.load(backup)).new == {}
        assert (await memory.verify()).ok
    assert backup.read_bytes() == before


async def test_a_damaged_backup_is_refused(tmp_path: Path) -> None:
    async with aforesaid.connect(tmp_path / "memory.db", embedder="none") as memory:
        await memory.user("ann").add("user", "hello")
        backup = tmp_path / "backup.db"
        await memory.backup(backup)
        data = bytearray(backup.read_bytes())
        data[8192:12288] = b"\xff" * 4096
        backup.write_bytes(data)
        with pytest.raises(aforesaid.AforesaidError):
            await memory.load(backup)
        assert (await memory.verify()).ok
