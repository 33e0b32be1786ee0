"""Durable adds, compared with plain SQLite on the same disk with the same rows."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, islice
from pathlib import Path

import apsw
from evaluation.synthetic_chat import SyntheticChat
from measuring import heading, row, stopwatch

from aforesaid.domain.checks import now
from aforesaid.domain.message import draft
from aforesaid.domain.scope import Scope
from aforesaid.memory import connect
from aforesaid.store import placing
from aforesaid.store.messages import AddMessage
from aforesaid.store.sqlite import append
from aforesaid.store.sqlite.append import INDEX
from aforesaid.store.sqlite.connection import Options, migrate, prefixed_terms
from aforesaid.store.sqlite.connection import connect as connect_file

USERS = 64
Row = tuple[int, int, placing.Prepared, str]
ROUNDS = 5


@dataclass(frozen=True)
class Rate:
    """Messages per second of each round."""

    name: str
    rounds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median round."""
        return statistics.median(self.rounds)


async def ours(path: Path, callers: int, texts: Sequence[str]) -> float:
    """Add messages through the public API from several concurrent callers."""
    async with connect(path, embedder="none") as memory:
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


def raw(path: Path, group: int, texts: Sequence[str], *, beforehand: bool) -> float:
    """Write the same rows with apsw alone, in one thread, `group` rows per commit.

    The contents of a row (its terms, its hash) are computed during the measurement, or `beforehand`, which leaves only
    SQLite to measure.
    """
    connection = connect_file(path, Options(), create=True)
    migrate(connection, path)
    connection.wal_autocheckpoint(0)
    execute = connection.execute
    for number in range(1, USERS + 1):
        new_person = "INSERT INTO person (id, space, name, owner, created_at) VALUES (?, 'default', ?, 1, 0)"
        execute(new_person, (number, f"user{number}"))
        execute("INSERT INTO thread (id, space, name) VALUES (?, 'default', ?)", (number, f"direct:user{number}"))
        execute(append._NEW_SESSION, (number, f"s-{number}", 1, number, now(), 1, 1_800_000_000))
    scopes = [Scope.of(f"user{number}") for number in range(USERS)]

    def rows() -> Iterator[Row]:
        for seq, text in enumerate(texts, 1):
            owner = seq % USERS + 1
            step = placing.prepare(AddMessage(draft(scopes[owner - 1], "user", text)), " ".join)
            yield seq, owner, step, prefixed_terms(owner, None, step.terms or "")

    made = iter(list(rows())) if beforehand else rows()
    with stopwatch() as seconds:
        for commit in count():
            batch = islice(made, group)
            first = next(batch, None)
            if first is None:
                break
            execute("BEGIN IMMEDIATE")
            for seq, owner, step, terms in chain([first], batch):
                new = step.draft
                execute(
                    append._NEW_MESSAGE,
                    (seq, owner, owner, 0, owner, owner, new.role, None, new.text, new.at)
                    + (new.stored_at, None, step.words, step.hash, None, False, None),
                )
                execute(INDEX, (seq, terms))
                execute(append._GROW, (owner, new.at, new.at, seq, 1))
                execute(append._COUNT_PERSON, (owner, 1, 1, step.words, seq, new.at))
            execute("COMMIT")
            if commit % 16 == 0:
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        rate = len(texts) / seconds()
    connection.close()
    return rate


def run(folder: Path, messages: int) -> None:
    """Measure in turns, so that other load on the machine affects all equally."""
    heading("Durable adds per second (each acknowledged after a sync)")
    talk = SyntheticChat(seed=1)
    few, many = list(talk.texts(max(messages // 20, 200))), list(talk.texts(messages))
    one, group = Rate("1 caller"), Rate("64 callers")
    single = Rate("(b) raw apsw, one commit per message")
    grouped, prepared = Rate("(a) raw apsw, 64 per commit"), Rate("    … with rows made beforehand")
    for number in range(ROUNDS):
        paths = [folder / f"adding-{number}-{turn}.db" for turn in range(5)]
        one.rounds.append(asyncio.run(ours(paths[0], 1, few)))
        single.rounds.append(raw(paths[1], 1, few, beforehand=False))
        group.rounds.append(asyncio.run(ours(paths[2], 64, many)))
        grouped.rounds.append(raw(paths[3], 64, many, beforehand=False))
        prepared.rounds.append(raw(paths[4], 64, many, beforehand=True))
    for rate in (one, single, group, grouped, prepared):
        row(rate.name, f"{rate.median:10,.0f} /s   (rounds: {', '.join(f'{value:,.0f}' for value in rate.rounds)})")
    row("64 callers, share of (a)", f"{group.median / grouped.median:10.0%}       target: at least 70%")
    row("64 callers, share of (a) with rows made beforehand", f"{group.median / prepared.median:10.0%}")
    row("64 callers, against (b)", f"{group.median / single.median:10.1f} x")
    row("1 caller, share of (b)", f"{one.median / single.median:10.0%}")
