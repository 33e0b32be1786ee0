"""Count and list the files of the package that one add, search, context, proxied request and bot message enter.

    python tools/ways.py             how many files each enters
    python tools/ways.py --list      their names too, in the order in which they are first entered

Each is done several times before it is traced, so that imports and first-time work do not count.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import httpx

import aforesaid
from aforesaid.bots import Address, BotSession, IncomingMessage
from aforesaid.server import ServerOptions, create_app
from aforesaid.testing import ScriptedModel

ROOT = str(Path(aforesaid.__file__).parent) + "/"
SAID = ("I moved to Lisbon in March.", "My sister Mia is a nurse.", "The dentist is on Friday at nine.", "I like figs.")
QUESTION = "When is the dentist?"
entered: dict[str, None] | None = None
"""The files that were entered, while something is traced."""


def note(frame: FrameType, event: str, _: object) -> None:
    if entered is not None and event == "call" and (path := frame.f_code.co_filename).startswith(ROOT):
        entered.setdefault(path.removeprefix(ROOT))


async def way(do: Callable[[], Awaitable[object]]) -> list[str]:
    """Return the files that a call enters, after three calls that do not count."""
    global entered  # noqa: PLW0603 - the threads of a store were given `note` when they started
    for _ in range(3):
        await do()
        await asyncio.sleep(0.5)
    entered = {}
    sys.setprofile(note)  # from here on: all that was imported and filled before would take many times as long
    await do()
    sys.setprofile(None)
    found, entered = list(entered), None
    return found


class Room:
    """A platform on which nobody reads."""

    name, longest = "room", 2000

    def __init__(self) -> None:
        self.answered = asyncio.Event()

    async def send(self, *_: object, **__: object) -> None:
        self.answered.set()

    @contextlib.asynccontextmanager
    async def typing(self, _: Address) -> AsyncIterator[None]:
        yield


async def ways() -> dict[str, list[str]]:
    """Return the files on each way, in a memory with a few messages, with the defaults but for background work."""
    found = {}
    with TemporaryDirectory() as folder, ScriptedModel() as model:
        settings = replace(model.settings(), background=False)
        async with aforesaid.connect(Path(folder) / "memory.db", settings=settings) as memory:
            ann = memory.user("ann")
            for text in SAID * 5:
                await ann.add("user", text)
            await memory.upkeep()
            found["add"] = await way(lambda: ann.add("user", "Figs are in season."))
            found["search"] = await way(lambda: ann.search(QUESTION))
            found["context"] = await way(lambda: ann.context(QUESTION))
            app = create_app(memory, ServerOptions(auth=False, settings=settings))
            client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1")
            async with app.router.lifespan_context(app), client:
                body = {"model": "scripted", "messages": [{"role": "user", "content": QUESTION}]}

                async def ask() -> None:
                    (await client.post("/v1/chat/completions", json=body)).raise_for_status()

                found["proxied request"] = await way(ask)
            room = Room()
            async with BotSession(memory, room) as session:  # type: ignore[arg-type]

                async def hear() -> None:
                    room.answered.clear()
                    at = datetime.now(UTC)
                    address = Address("room", "ann", "room")
                    await session.hear(IncomingMessage(address, at.isoformat(), QUESTION, at))
                    await room.answered.wait()

                found["bot message"] = await way(hear)
    return found


if __name__ == "__main__":
    threading.setprofile(note)
    for name, files in asyncio.run(ways()).items():
        print(f"{name:16} {len(files):4} files")
        if "--list" in sys.argv:
            print("".join(f"    {file}\n" for file in files), end="")
