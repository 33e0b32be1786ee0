"""`kill -9` in the middle of writes and archives: what was acknowledged is there, and nothing is half done."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
from pathlib import Path
from random import Random

import pytest

from aforesaid.domain.scope import Scope
from aforesaid.store.messages import Messages
from torture.support import KINDS, Figures, Size, opened
from torture.witness import Archived, RolledBack, Said, Witness, from_wire
from torture.workload import USERS
from torture.zygote import Zygote

WRITERS = 16
ROUNDS_PER_FILE = 25
VERIFY_EVERY = 5
LONGEST_LIFE = 0.15
"""Seconds between the first acknowledgement and the end."""


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_acknowledged_survives_kill_9(kind: str, tmp_path: Path, arena: Path, size: Size) -> None:
    figures = Figures(
        "kill -9" if kind == "sqlite" else f"kill -9 under {kind}",
        "rounds",
        "files",
        "kills",
        "acknowledged messages",
        "acknowledged archives",
        "acknowledged roll backs",
        "losses",
    )
    rounds, chance = size.of(small=4, full=1_000 if kind == "sqlite" else 200), Random(9)
    with Zygote("torture.victim") as zygote:
        for start in range(0, rounds, ROUNDS_PER_FILE):
            # A real disk is slow to sync and is killed in the middle of that; memory is fast and killed elsewhere.
            folder = (tmp_path, arena)[start // ROUNDS_PER_FILE % 2]
            home = folder / f"killed-{start}"
            home.mkdir()
            killer = Killer(zygote, home / "memory", kind, chance, figures)
            done = min(ROUNDS_PER_FILE, rounds - start)
            rounds_of_one_file(killer, range(done))
            # On a busy machine, little was stored before each kill of the few rounds of a taste.
            while not size.full and not figures["acknowledged archives"]:
                rounds_of_one_file(killer, range(done, done + 1))
                done += 1
            shutil.rmtree(home)
            figures.add("files")
    figures.show()
    assert figures["acknowledged archives"] > 0


def rounds_of_one_file(killer: Killer, rounds: range) -> None:
    """Kill whoever writes to a file, again and again, and look at the file each time."""
    for number in rounds:
        together = killer.kind == "sqlite" and killer.chance.random() < 0.2
        heard = killer.kill_while_they_write(f"r{number}", processes=2 if together else 1)
        assert heard > 0, "nothing was acknowledged, so nothing was tested"
        if killer.chance.random() < 0.2:
            killer.kill_while_it_opens(f"r{number}o")
        thoroughly = number % VERIFY_EVERY == 0 or number == rounds[-1]
        for path in killer.path.parent.rglob("*.json"):
            json.loads(path.read_bytes())
        asyncio.run(check(killer, thoroughly=thoroughly))
        killer.figures.add("rounds")


class Killer:
    """Starts processes that write to a file, hears what they say, and kills them."""

    def __init__(self, zygote: Zygote, path: Path, kind: str, chance: Random, figures: Figures) -> None:
        """Begin with a file that does not exist yet."""
        self.path = path
        self.kind = kind
        self.chance = chance
        self.figures = figures
        self.witness = Witness()
        self._zygote = zygote
        self._alive: dict[int, int] = {}

    def kill_while_they_write(self, tag: str, processes: int) -> int:
        """Kill one process after the other, each some time after its first acknowledgement; return how many came."""
        for number in range(processes):
            self._start(f"{tag}p{number}", rivals=processes > 1)
        for child in self._alive:
            self._zygote.expect(child, "heard", keep=True)
        heard = 0
        for process in list(self._alive.values()):
            heard += self._hear(self.chance.uniform(0, LONGEST_LIFE))
            self._kill(process)
        return heard + self._hear()

    def kill_while_it_opens(self, tag: str) -> None:
        """Kill a process that may just be busy repairing what the one before it left behind."""
        self._start(tag, rivals=False)
        self._hear(self.chance.uniform(0, 0.03))
        self._kill(*self._alive.values())
        self._hear()

    def _start(self, tag: str, *, rivals: bool) -> None:
        options = {"path": str(self.path), "kind": self.kind, "tag": tag, "writers": WRITERS, "rivals": rivals}
        child = self._zygote.start("write_until_killed", **options)
        _, _, self._alive[child] = self._zygote.expect(child, "born")

    def _kill(self, process: int) -> None:
        os.kill(process, signal.SIGKILL)
        self.figures.add("kills")

    def _hear(self, seconds: float | None = None) -> int:
        """Pass acknowledgements on to the witness, for so long or until everybody is dead."""
        heard = 0
        for child, kind, said in self._zygote.listen(seconds):
            if kind == "ended":
                assert said == -signal.SIGKILL, f"the writer ended by itself: {said}"
                del self._alive[child]
                if not self._alive:
                    break
            else:
                assert kind == "heard", said
                self._note(said)
                heard += 1
        return heard

    def _note(self, said: list[object]) -> None:
        event = from_wire(said)
        self.witness.hear(event)
        match event:
            case Said():
                self.figures.add("acknowledged messages", len(event.messages))
            case Archived():
                self.figures.add("acknowledged archives")
            case RolledBack():
                self.figures.add("acknowledged roll backs")


async def check(killer: Killer, *, thoroughly: bool) -> None:
    """Open the file as anybody would after a crash, and compare it with what was acknowledged."""
    witness = killer.witness
    async with opened(killer.path, kind=killer.kind) as store:
        assert await store._engine.read(witness.findings) == []
        if not thoroughly:
            assert await store._engine.read(lambda connection: connection.pragma("quick_check")) == "ok"
            return
        verification = await store.verify()
        assert verification.ok, verification
        for user in USERS:
            history = await store.read(Messages(Scope.of(user), limit=1_000_000))
            acknowledged = sorted((found[0], text) for text, found in witness.said.items() if found[1] == user)
            there = sorted((message.seq, message.text) for message in history)
            assert [entry for entry in there if entry[1] in witness.said] == acknowledged
