"""A Mumble server that is killed again and again, a bot that is restarted, a model that fails: nothing is mixed up."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

import aforesaid
from aforesaid.errors import PlatformError
from aforesaid.testing import Request, ScriptedModel, faults
from mumble.botting import bot, remembering, session_of
from mumble.mumbling import MumbleServer, Someone, needs_server, someone
from torture.support import Figures, Size

PEOPLE = 6
WAIT = 5.0


def answer(request: Request) -> str:
    """Repeat the message, so that an answer can be told from every other one."""
    return "answer to " + request.asked.rpartition("message ")[2][:20]


class Talker:
    """Writes one message after the other, waits for each answer for a while, and comes back when thrown out."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sent: list[str] = []
        self.answered: list[str] = []
        self.stop = False

    async def talk(self, server: MumbleServer) -> None:
        while not self.stop:
            with suppress(PlatformError, TimeoutError, AssertionError):
                async with someone(server.address, self.name) as person:
                    while not self.stop:
                        await self._one(person)
            await asyncio.sleep(0.05)

    async def _one(self, person: Someone) -> None:
        robot = session_of(person, "Robbie")
        if robot is None or person.ended is not None:
            raise TimeoutError
        number = f"{self.name}-{len(self.sent)}"
        self.sent.append(f"message {number}")
        await person.link.write(self.sent[-1], session=robot)
        async with asyncio.timeout(WAIT):
            while True:
                text = await person.told()
                if text == f"answer to {number}":
                    self.answered.append(f"message {number}")
                    return
                if text.startswith("(The language model could not answer"):
                    return


@needs_server
@pytest.mark.skipif(
    "not config.getoption('--torture')", reason="a drill of a minute; tests/mumble/test_bot.py restarts a server once"
)
async def test_nothing_is_doubled_or_mixed_up(size: Size, tmp_path: Path) -> None:
    chance = Random(11)
    server = MumbleServer(tmp_path)
    server.start()
    talkers = [Talker(f"p{number}") for number in range(PEOPLE)]
    figures = Figures("mumble", "messages sent", "answered")
    try:
        with ScriptedModel(answer) as model:
            async with remembering(tmp_path / "memory.db", model) as memory:
                talking = [asyncio.create_task(talker.talk(server)) for talker in talkers]
                for _ in range(size.of(small=1, full=12)):
                    async with bot(memory, server):
                        for _ in range(3):
                            await disturb(chance, server, model)
                for talker in talkers:
                    talker.stop = True
                await asyncio.gather(*talking)
                for talker in talkers:
                    await check(memory, server, talker)
    finally:
        server.stop()
    figures.add("messages sent", sum(len(talker.sent) for talker in talkers))
    figures.add("answered", sum(len(talker.answered) for talker in talkers))
    figures.show()
    assert all(talker.answered for talker in talkers)


async def disturb(chance: Random, server: MumbleServer, model: ScriptedModel) -> None:
    await asyncio.sleep(chance.uniform(0.3, 1.5))
    what = chance.choice(["kill", "model", "nothing"])
    if what == "kill":
        await asyncio.to_thread(server.kill)
        await asyncio.sleep(chance.uniform(0, 0.5))
        await asyncio.to_thread(server.start)
    elif what == "model":
        model.fail(faults.ServerError(), times=chance.randint(1, 5))


async def check(memory: aforesaid.Memory, server: MumbleServer, talker: Talker) -> None:
    history = await memory.user(f"name-{talker.name}@127.0.0.1:{server.port}", space="mumble").history(1000)
    said = [message.text for message in history if message.role == "user"]
    assert max(Counter(said).values()) == 1, "a message was stored twice"
    assert said == [text for text in talker.sent if text in set(said)], "the order is not that of writing"
    assert set(talker.answered) <= set(said), "what was answered is not stored"
    replies = Counter(message.text for message in history if message.role == "assistant")
    assert all(count == 1 for text, count in replies.items() if text.startswith("answer to")), "answered twice"
    mine = {f"answer to {text.removeprefix('message ')}" for text in said}
    assert all(text in mine for text in replies if text.startswith("answer to")), "somebody else's answer"
