"""A store of somebody else: the one that the documentation writes, handed to `connect`."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import aforesaid
from aforesaid.domain.details import Part
from aforesaid.errors import InvalidInput, StoreBusy, StoreClosed, StoreDamaged, StoreFull, StoreRefused
from aforesaid.store import Store
from aforesaid.store.recorded import RecordedStore

Make = Callable[[Path], RecordedStore]


@pytest.fixture
def line_store() -> Make:
    """The class of docs/how-to/add-a-store.md."""
    page = Path(__file__).parents[2].joinpath("docs/how-to/add-a-store.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)\n\nwith aforesaid", page, re.DOTALL)
    named: dict[str, Any] = {"__name__": __name__}
    exec(compile(code, "add-a-store.md", "exec"), named)  # noqa: S102
    made: Make = named["LineStore"]
    return made


async def test_what_is_written_is_there_when_it_is_opened_again(line_store: Make, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    async with aforesaid.connect(line_store(path), embedder="none") as memory:
        ann = memory.user("ann")
        receipts = [await ann.add("user", f"I bought {number} pears.") for number in range(40)]
        assert all(receipt.durable for receipt in receipts)
        await ann.remember("I like pears")
        await memory.upkeep()
        seen = await ann.history(), await ann.summaries(), await ann.memories()
        assert (await ann.status()).storage == "lines"
    with path.open("ab") as file:
        file.write(b'{"put": {"mess')  # what a crash leaves of a line
    async with aforesaid.connect(line_store(path), embedder="none") as memory:
        ann = memory.user("ann")
        assert (await ann.history(), await ann.summaries(), await ann.memories()) == seen
        await ann.add("user", "And plums.")
        assert [hit.text for hit in await ann.search("plums")] == ["And plums."]


async def test_nothing_of_a_change_set_that_cannot_be_written_is_visible(
    line_store: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines"
    async with aforesaid.connect(line_store(path), embedder="none") as memory:
        ann = memory.user("ann")
        await ann.add("user", "one")

        def full(_: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(StoreFull, match="the lines store cannot be written: No space left"):
                await ann.add("user", "two")
            assert (await memory.health()).status == "failing"
            with pytest.raises(StoreFull):
                await memory.store.purge(ann.scope)
        assert [message.text for message in await ann.history()] == ["one"]
        await ann.add("user", "three")
    async with aforesaid.connect(line_store(path), embedder="none") as memory:
        assert [message.text for message in await memory.user("ann").history()] == ["one", "three"]


async def test_what_is_erased_is_in_no_line(line_store: Make, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    async with aforesaid.connect(line_store(path), embedder="none") as memory:
        await memory.user("ann").add("user", "my secret word is plumage")
        last = (await memory.user("bob").add("user", "hello")).message.seq
        await memory.store.purge(memory.user("ann").scope)
        assert b"plumage" not in path.read_bytes()
        await memory.store.erase(memory.user("bob").scope, [last])
    async with aforesaid.connect(line_store(path), embedder="none") as memory:
        assert [user.id for user in await memory.users()] == ["bob"]
        assert (await memory.user("bob").add("user", "again")).message.seq > last, "no number is given out twice"


async def test_a_damaged_line_is_named_and_a_closed_store_refuses(line_store: Make, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    store = line_store(path)
    assert isinstance(store, Store)
    async with aforesaid.connect(store, embedder="none") as memory:
        await memory.user("ann").add("user", "a pear")
        with pytest.raises(InvalidInput, match="cannot be backed up; export it"):
            await memory.backup(tmp_path / "copy")
        with pytest.raises(StoreRefused, match="name one with the setting `attachments`"):
            await memory.user("ann").add("user", "a picture", parts=[Part.of(b"\x89PNG", "image/png")])
    with pytest.raises(StoreClosed):
        await store.apply([])
    path.write_bytes(path.read_bytes().replace(b"a pear", b"a bear"))
    with pytest.raises(StoreDamaged, match=r"line \d+ of the lines store cannot be read"):
        line_store(path)


async def test_two_stores_do_not_use_the_same_lines(line_store: Make, tmp_path: Path) -> None:
    store = line_store(tmp_path / "lines")
    with pytest.raises(StoreBusy, match="is used by another process"):
        line_store(tmp_path / "lines")
    await store.close()
    await line_store(tmp_path / "lines").close()


def test_a_method_that_nobody_would_wait_for_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"Hasty\.append must not be a coroutine"):

        class Hasty(RecordedStore):
            async def append(self, line: bytes) -> None:  # type: ignore[override]
                pass


def test_a_location_that_is_neither_a_path_nor_a_store_is_refused() -> None:
    with pytest.raises(InvalidInput, match="must be a path, a string or a store, not int"):
        aforesaid.open(42)  # type: ignore[arg-type]
