"""The platform that the documentation adds: stored before it is acknowledged, and seen in the status."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import aforesaid
from aforesaid.bots import BotSession, Platform, run
from aforesaid.bots.running import bots_of
from aforesaid.errors import StoreFull
from bots.room import Room


@pytest.fixture
def folder() -> Callable[[Path], Platform]:
    """The class of docs/how-to/add-a-platform.md."""
    page = Path(__file__).parents[2].joinpath("docs/how-to/add-a-platform.md").read_text("utf-8")
    (code,) = re.findall(r"```python\n(.*?)\n\nasync def main", page, re.DOTALL)
    named: dict[str, Any] = {"__name__": __name__}
    exec(compile(code.replace("sleep(1)", "sleep(0.02)"), "add-a-platform.md", "exec"), named)  # noqa: S102
    made: Callable[[Path], Platform] = named["Folder"]
    return made


async def until(true: Callable[[], bool]) -> None:
    while not true():
        await asyncio.sleep(0.02)


async def test_a_message_is_acknowledged_when_it_is_stored_and_answered_once(
    memory: aforesaid.Memory, folder: Callable[[Path], Platform], tmp_path: Path
) -> None:
    apply, failed = memory.store.apply, asyncio.Event()

    async def full(changes: object, *_: object) -> object:
        del changes
        failed.set()
        raise StoreFull("no room is left on the device")

    memory.store.apply = full  # type: ignore[assignment,method-assign]
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    message, answers = inbox / "ann.1.txt", inbox / "ann.answers"
    message.write_text("remember that I like tea")
    task = asyncio.create_task(run(memory, folder(inbox)))
    await failed.wait()
    await until(answers.exists)
    assert "try again until I can" in answers.read_text()
    assert message.exists()
    memory.store.apply = apply  # type: ignore[method-assign]
    await until(lambda: "I will remember that." in answers.read_text())
    assert not message.exists()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert answers.read_text().count("I will remember that.") == 1


class Ending(Room):
    """A platform whose connection ends without an error."""

    logins = 0

    async def check(self) -> str:
        self.logins += 1
        return "roombot"

    async def listen(self, session: BotSession) -> None:
        del session
        if self.logins == 3:
            raise ValueError("a mistake of the adapter")


async def test_a_platform_that_stops_listening_is_tried_again_after_a_pause_and_closed_at_the_end(
    memory: aforesaid.Memory, caplog: pytest.LogCaptureFixture
) -> None:
    platform = Ending()
    with pytest.raises(ValueError, match="a mistake"):
        await run(memory, platform, first_pause=0.01)
    assert caplog.text.count("roombot stopped listening; the next try is in") == 2
    assert platform.closed


async def test_every_running_bot_is_seen_in_the_status(memory: aforesaid.Memory, room: Room, tmp_path: Path) -> None:
    ready = asyncio.Event()
    task = asyncio.create_task(run(memory, room, ready=lambda _: ready.set()))
    await ready.wait()
    await until(lambda: bool(bots_of(memory.location, datetime.now(UTC))))
    assert [bot.name for bot in bots_of(str(tmp_path / "memory.db"), datetime.now(UTC))] == ["room bot"]
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert bots_of(memory.location, datetime.now(UTC)) == []


async def test_a_bot_of_a_store_without_a_location_writes_no_file(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AFORESAID_STORE", str(tmp_path / "other.db"))
    async with aforesaid.connect(":memory:", embedder="none") as in_memory:
        given = in_memory.store
        async with aforesaid.connect(given, embedder="none") as memory:
            assert memory.location is None
            ready = asyncio.Event()
            task = asyncio.create_task(run(memory, room, ready=lambda _: ready.set()))
            await ready.wait()
            await asyncio.sleep(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    assert list(tmp_path.iterdir()) == []
