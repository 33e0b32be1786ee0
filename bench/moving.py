"""Importing a million messages, exporting them, and importing the export."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from evaluation.synthetic_chat import SyntheticChat
from measuring import heading, row

from aforesaid.domain.message import Message
from aforesaid.portability.exporting import export
from aforesaid.portability.importing import ImportOptions, Loader
from aforesaid.store import Store, open_store
from aforesaid.store.people import Totals

_PEOPLE = 100
_CHANNELS = 17


class Watched:
    """Samples the memory of the process at every twentieth of the work."""

    def __init__(self) -> None:
        self._samples: list[float] = []

    def __call__(self, _: str, done: int, total: int) -> None:
        """Take a sample if it is due."""
        if done * 20 >= total * len(self._samples):
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            self._samples.append(pages * resource.getpagesize() / 1_000_000)

    def __str__(self) -> str:
        later = self._samples[len(self._samples) // 10 :] or [0.0]
        return (
            f"memory: {later[0]:,.0f} MB at a tenth of the way, {later[-1]:,.0f} at the end, {max(later):,.0f} at most"
        )


def write_talk(path: Path, messages: int) -> None:
    """Write messages of many users in a few channels as JSON lines."""
    chance, talk = random.Random(7), SyntheticChat(7)
    with path.open("w", encoding="utf-8") as out:
        for number, text in enumerate(talk.texts(messages)):
            who = {
                "role": "user",
                "user": f"user {chance.randrange(_PEOPLE)}",
                "thread": f"channel {number % _CHANNELS}",
            }
            said = {"id": f"m{number}", "content": text, "timestamp": 1_700_000_000 + number * 5}
            out.write(json.dumps(who | said) + "\n")


async def order_of(store: Store) -> str:
    """Return a checksum of all messages in order."""
    total = blake2b(digest_size=16)
    async for page in store.dump():
        for message in page:
            if isinstance(message, Message):
                total.update(message.hash)
    return total.hexdigest()


async def measured(name: str, messages: int, work: Callable[[Watched], Awaitable[object]]) -> None:
    """Measure one piece of work."""
    watched, begin = Watched(), time.perf_counter()
    await work(watched)
    seconds = time.perf_counter() - begin
    row(name, f"{messages / seconds:9,.0f} messages/s, {seconds:6.1f} s; {watched}")


async def run(folder: Path, messages: int) -> None:
    """Import, export, import again and compare."""
    heading(f"Importing and moving {messages:,} messages")
    talk, everything = folder / "talk.jsonl", folder / "everything.jsonl"
    write_talk(talk, messages)
    first, second = await open_store(folder / "first.db"), await open_store(folder / "second.db")
    try:
        await measured("import of JSON lines", messages, lambda seen: Loader(first, ImportOptions()).load(talk, seen))
        await measured("export", messages, lambda seen: export(first, everything, progress=seen))
        await measured(
            "import of the export", messages, lambda seen: Loader(second, ImportOptions()).load(everything, seen)
        )
        await measured(
            "the same file once more", messages, lambda seen: Loader(second, ImportOptions()).load(everything, seen)
        )
        same = (await second.read(Totals())).messages == messages and await order_of(first) == await order_of(second)
        row("count, order and hashes of both", "the same" if same else "DIFFERENT")
    finally:
        await first.close()
        await second.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(run(Path(place), options.messages))
