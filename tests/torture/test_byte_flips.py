"""A byte changes behind the store's back: nothing crashes, nothing is overwritten, what is whole is recovered."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from random import Random

import pytest

from aforesaid.domain.message import Message
from aforesaid.domain.scope import Scope
from aforesaid.portability.migrating import repair
from aforesaid.store import Store, open_store
from aforesaid.store.memories import PutFacts
from aforesaid.store.messages import Messages
from aforesaid.store.readable import ReadableStore
from making import add, archive
from torture.support import Figures, Size

USERS = ("ann", "bob", "cleo")
COUNTED = (
    "flips",
    "harmless",
    "repaired",
    "messages recovered",
    "messages damaged",
    "messages changed and named",
    "losses",
)


async def fill_with_everything(place: str, snapshot: Path) -> dict[int, Message]:
    """Make a store of which a part is in its journal, or in the write-ahead log, and copy it as it is then."""
    store = await open_store(place)
    for user in USERS:
        scope = Scope.of(user, thread="general")
        said = await add(store, scope, *[f"{user} says number {n} {'word ' * (n % 25)}" for n in range(40)])
        await archive(store, scope, said[:10])
        await store.apply([PutFacts(scope, f"{user} likes tea.", "said so")])
    if isinstance(store, ReadableStore):
        await asyncio.to_thread(store._files.write)
    else:
        await store.close()
        store = await open_store(place)
    for user in USERS:
        await add(store, Scope.of(user), *[f"{user} adds {n}" for n in range(20)])
    found = {message.seq: message for user in USERS for message in await everything(store, user)}
    shutil.copytree(Path(place.partition(":")[2]).parent, snapshot)
    await store.close()
    return found


async def everything(store: Store, user: str) -> list[Message]:
    return await store.read(Messages(Scope.of(user), limit=10_000))


async def recovered(place: str) -> list[tuple[str, str]]:
    store = await open_store(place)
    found = [(message.user, message.text) for user in USERS for message in await everything(store, user)]
    report = await store.verify()
    assert report.ok, report
    await store.close()
    return found


@pytest.mark.req("C8")
@pytest.mark.parametrize("kind", ["sqlite", "json", "files"])
def test_every_message_that_a_flipped_byte_did_not_hit_is_recovered(kind: str, arena: Path, size: Size) -> None:
    figures, chance = Figures(f"byte flips in {kind}", *COUNTED), Random(f"flips {kind}")
    start = arena / "start"
    start.mkdir()
    said = asyncio.run(fill_with_everything(f"{kind}:{start / 'memory'}", arena / "snapshot"))
    files = [
        path.relative_to(arena / "snapshot")
        for path in sorted((arena / "snapshot").rglob("*"))
        if path.is_file() and path.stat().st_size and not path.name.endswith((".lock", "-shm"))
    ]
    for _ in range(size.of(small=10, full=170)):
        live = arena / "live"
        shutil.rmtree(live, ignore_errors=True)
        shutil.copytree(arena / "snapshot", live)
        hit = live / chance.choice(files)
        data = bytearray(hit.read_bytes())
        place = chance.randrange(len(data))
        data[place] ^= chance.randrange(1, 256)
        hit.write_bytes(data)
        done = asyncio.run(repair(f"{kind}:{live / 'memory'}"))
        found = asyncio.run(recovered(f"{kind}:{live / 'memory'}"))
        figures.add("flips")
        figures.add("repaired" if done.needed else "harmless")
        missing = {(message.user, message.text) for message in said.values()} - set(found)
        invented = set(found) - {(message.user, message.text) for message in said.values()}
        # In a text of a readable file, it could have been typed.
        typed = hit.name.endswith(".json") or hit.name == "memory"
        assert not invented or (
            typed and len(invented) == 1 and any("one character differs" in line for line in done.lost)
        ), f"{hit.name} at {place}: {invented}, {done.lost}"
        figures.add("messages changed and named", len(invented))
        assert len(found) == len(set(found)), "a message is there twice"
        # One byte is in one record, at most.
        assert len(missing) <= 1, f"{hit.name} at {place}: {sorted(missing)[:3]}, {done.lost}"
        if missing:
            assert done.lost, f"{hit.name} at {place}: {missing} is gone, and nobody said so"
            figures.add("messages damaged", len(missing) - len(invented))
        if done.needed:
            assert done.set_aside is not None
            kept = [path.read_bytes() for path in live.rglob("*") if path.is_file()]
            assert bytes(data) in kept, "the damaged file is kept as it was"
            figures.add("messages recovered", len(found))
    figures.show()
    # A damaged readable file is written again from the database, and the other way round, without a repair.
    assert figures["repaired"] > 0 or kind != "sqlite"
