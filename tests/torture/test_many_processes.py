"""Many processes write to one file: nobody is turned away, nothing is lost, everybody's order is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path

from aforesaid.store.people import Totals
from torture.support import Figures, Size, opened
from torture.witness import Said, Witness, from_wire
from torture.zygote import Zygote

PROCESSES = 8
WRITERS = 5


def test_many_processes_write_to_one_file(tmp_path: Path, size: Size) -> None:
    figures, witness = (
        Figures("many processes", "acknowledged change sets", "acknowledged messages", "losses"),
        Witness(),
    )
    path = tmp_path / "shared.db"
    each = size.of(small=20, full=2_000) // WRITERS * WRITERS
    with Zygote("torture.peers") as zygote:
        # All at once, on a file that does not exist yet: they also race to create it.
        running = {
            zygote.start("write_messages", path=str(path), tag=f"p{number}", writers=WRITERS, messages=each)
            for number in range(PROCESSES)
        }
        for child, kind, said in zygote.listen():
            assert kind != "failed", said
            if kind == "heard":
                event = from_wire(said)
                assert isinstance(event, Said)
                witness.hear(event)
                figures.add("acknowledged change sets")
            elif kind == "ended":
                assert said == 0
                running.remove(child)
                if not running:
                    break
    figures.add("acknowledged messages", len(witness.said))
    asyncio.run(check(path, witness))
    figures.show()
    assert figures["acknowledged change sets"] == PROCESSES * each


async def check(path: Path, witness: Witness) -> None:
    """Compare the file with what was acknowledged to all processes together."""
    async with opened(path) as store:
        assert await store._engine.read(witness.findings) == []
        assert (await store.read(Totals())).messages == len(witness.said)
        verification = await store.verify()
        assert verification.ok, verification
