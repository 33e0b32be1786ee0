"""Durable adds, beside what SQLite itself can do on the same disk with the same rows."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import apsw
from conversation import Talk
from measuring import heading, row, stopwatch

from recollect.domain.change import AddMessage
from recollect.domain.clock import now
from recollect.domain.message import draft
from recollect.domain.scope import Scope
from recollect.memory import connect
from recollect.store.sqlite import append, sessions
from recollect.store.sqlite.connection import Options, prefixed_terms
from recollect.store.sqlite.connection import connect as connect_file
from recollect.store.sqlite.migrate import migrate

USERS = 64
ROUNDS = 5


@dataclass(frozen=True)
class Rate:
    """Messages per second, one figure for each round."""

    name: str
    rounds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The round in the middle."""
        return statistics.median(self.rounds)


async def ours(path: Path, callers: int, texts: Sequence[str]) -> float:
    """Add messages through the public API, from so many callers at once."""
    async with connect(path) as memory:
        users = [memory.user(f"user{number}") for number in range(USERS)]
        for user in users:
            await user.add("user", "hello")
        waiting = iter(texts)

        async def call(number: int) -> None:
            for text in waiting:
                await users[number % USERS].add("user", text)

        with stopwatch() as seconds:
            await asyncio.gather(*[call(number) for number in range(callers)])
            return len(texts) / seconds()


def raw(path: Path, group: int, texts: Sequence[str]) -> float:
    """Write the same rows with apsw alone, prepared beforehand, so many in one commit."""
    connection = connect_file(path, Options(), create=True)
    migrate(connection, path)
    connection.wal_autocheckpoint(0)
    execute = connection.execute
    for number in range(1, USERS + 1):
        execute(
            "INSERT INTO person (id, space, name, owner, created_at) VALUES (?, 'default', ?, 1, 0)",
            (number, f"user{number}"),
        )
        execute("INSERT INTO thread (id, space, name) VALUES (?, 'default', ?)", (number, f"direct:user{number}"))
        execute(sessions.NEW_SESSION, (number, f"s-{number}", 1, number, now(), 1, 1_800_000_000))
    prepared = []
    for seq, text in enumerate(texts, 1):
        step = append.prepare(AddMessage(draft(Scope.of("user"), "user", text)))
        prepared.append((seq, seq % USERS + 1, step, prefixed_terms(seq % USERS + 1, None, step.words)))
    with stopwatch() as seconds:
        for start in range(0, len(prepared), group):
            execute("BEGIN IMMEDIATE")
            for seq, owner, step, terms in prepared[start : start + group]:
                new = step.draft
                execute(
                    append._NEW_MESSAGE,
                    (seq, owner, owner, 0, owner, owner, new.role, None, new.text, new.at)
                    + (new.stored_at, None, len(step.words), step.hash),
                )
                execute(append._INDEX, (seq, terms))
                execute(sessions.GROW, (owner, new.at, new.at, seq, 1))
                execute(append._COUNT_PERSON, (owner, 1, 1, len(step.words), seq, new.at))
            execute("COMMIT")
            if start % (group * 16) == 0:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        rate = len(prepared) / seconds()
    connection.close()
    return rate


def run(folder: Path, messages: int) -> None:
    """Measure in turns, so that a busy moment of the machine hits everybody."""
    heading("Durable adds per second (each acknowledged after a sync)")
    talk = Talk(seed=1)
    few, many = list(talk.texts(max(messages // 20, 200))), list(talk.texts(messages))
    one, group, single, grouped = (
        Rate("1 caller"),
        Rate("64 callers"),
        Rate("raw, 1 per commit"),
        Rate("raw, 64 per commit"),
    )
    for number in range(ROUNDS):
        paths = [folder / f"adding-{number}-{turn}.db" for turn in range(4)]
        one.rounds.append(asyncio.run(ours(paths[0], 1, few)))
        single.rounds.append(raw(paths[1], 1, few))
        group.rounds.append(asyncio.run(ours(paths[2], 64, many)))
        grouped.rounds.append(raw(paths[3], 64, many))
    for rate in (one, single, group, grouped):
        row(rate.name, f"{rate.median:10,.0f} /s   (rounds: {', '.join(f'{value:,.0f}' for value in rate.rounds)})")
    row(
        "64 callers, share of (a) raw group commit", f"{group.median / grouped.median:10.0%}       target: at least 70%"
    )
    row("64 callers, against (b) one commit per message", f"{group.median / single.median:10.1f} x")
    row("1 caller, share of one raw commit per message", f"{one.median / single.median:10.0%}")


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), 10_000)
