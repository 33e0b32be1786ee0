"""A process that writes to a file store while the disk fails or kills it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aforesaid.domain.scope import Scope
from aforesaid.errors import StoreError
from aforesaid.store.messages import Messages
from aforesaid.store.readable import AccountFolders, JsonFile, ReadableStore
from aforesaid.store.readable.disk import Disk
from faulty import DeadlyDisk
from making import adding
from torture.zygote import Tell

ANN = Scope.of("ann")


def layout_at(place: str) -> JsonFile | AccountFolders:
    kind, _, path = place.partition(":")
    return JsonFile(Path(path)) if kind == "json" else AccountFolders(Path(path))


async def live_on(layout: JsonFile | AccountFolders, disk: Disk, heard: Callable[[str], None]) -> list[str]:
    """Say things, have the files written, go on, close. Returns what was refused."""
    refused: list[str] = []
    acknowledged: list[str] = []
    try:
        store = await ReadableStore.open_files(layout, disk)
    except StoreError:
        return refused
    for turn in range(4):
        text = f"new {turn}"
        try:
            receipt = await store.apply([adding(ANN, text)])
        except StoreError:
            refused.append(text)
        else:
            assert receipt.durable
            acknowledged.append(text)
            heard(text)
        if turn == 1:
            try:
                await asyncio.to_thread(store._files.write)
            except StoreError:
                assert [message.text for message in await store.read(Messages(ANN))][2:] == acknowledged
    assert [message.text for message in await store.read(Messages(ANN))][2:] == acknowledged
    await store.close()
    return refused


def live_until_killed(tell: Tell, options: dict[str, Any]) -> None:
    """Run it on a disk that kills the process at a call."""
    disk = DeadlyDisk(options["fatal"])
    asyncio.run(live_on(layout_at(options["place"]), disk, lambda text: tell(["heard", text])))
