"""`kill -9` around the model's call, with two workers on one file: each summary happens once, and none half."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from pathlib import Path
from random import Random

from aforesaid.digest import Digest
from aforesaid.domain.scope import Scope
from aforesaid.store.messages import Messages, UserLedger
from aforesaid.store.people import Totals
from aforesaid.store.sqlite import SqliteStore
from aforesaid.store.summaries import CoveredMessages, Summaries
from aforesaid.upkeep import Digesting
from torture.summariser import LEASE_SECONDS, USERS, profile, tomorrow
from torture.support import Figures, Size, opened
from torture.zygote import Zygote

POLICIES = ("tree", "rolling", "calendar", "tiers")
ROUNDS_PER_FILE = 13
LONGEST_WAIT = 0.008
"""Seconds between the moment that a model is asked and the end: before, during and after what it writes is stored."""


def test_two_workers_that_are_killed_around_the_models_call_summarise_everything_once(arena: Path, size: Size) -> None:
    figures = Figures(
        "kill -9 of summarisers", "kills", "files", "acknowledged messages", "asked", "summaries", "doubles"
    )
    kills, chance = size.of(small=16, full=500), Random(5)
    with Zygote("torture.summariser") as zygote:
        file = 0
        while figures["kills"] < kills:
            policy = POLICIES[file % len(POLICIES)]
            path = arena / f"digest-{file}.db"
            file += 1
            said = 0
            for number in range(
                min(ROUNDS_PER_FILE, max(1, (kills - figures["kills"]) // 2), 2 if kills < 100 else 99)
            ):
                said += kill_two(zygote, path, policy, f"f{file}r{number}", chance, figures)
            asyncio.run(check(path, policy, said, figures))
            figures.add("files")
            path.unlink()
    figures.show()
    assert figures["summaries"] > 0
    assert figures["doubles"] == 0


def kill_two(zygote: Zygote, path: Path, policy: str, tag: str, chance: Random, figures: Figures) -> int:
    """Let two workers run, and kill each of them shortly after a model was asked. Return what was acknowledged."""
    alive: dict[int, int] = {}
    for worker in (1, 2):
        child = zygote.start("talk_and_summarise", path=str(path), policy=policy, tag=f"{tag}w{worker}")
        _, _, alive[child] = zygote.expect(child, "born")
    said = 0
    wanted = {child: chance.randrange(1, 6) for child in alive}
    doomed: dict[int, float] = {}
    while alive:
        patience = min((at - time.monotonic() for at in doomed.values()), default=None)
        for child, kind, *rest in zygote.listen(None if patience is None else max(patience, 0.0)):
            if kind == "said":
                said += rest[0]
            elif kind == "asked":
                figures.add("asked")
                wanted[child] -= 1
                if wanted[child] == 0:
                    doomed[child] = time.monotonic() + chance.uniform(0, LONGEST_WAIT)
            elif kind == "ended":
                assert rest == [-signal.SIGKILL], rest
                del alive[child]
            else:
                assert kind == "answered", (kind, rest)
            break
        for child in [child for child, at in doomed.items() if at <= time.monotonic()]:
            del doomed[child]
            os.kill(alive[child], signal.SIGKILL)
            figures.add("kills")
    figures.add("acknowledged messages", said)
    return said


async def check(path: Path, policy: str, said: int, figures: Figures) -> None:
    """Open the file as anybody would after a crash, finish what is due, and count."""
    async with opened(path) as store:
        report = await store.verify()
        assert report.ok, report
        rules = profile(policy)
        await asyncio.sleep(2 * LEASE_SECONDS)  # a lease that a killed worker held ends by itself
        digest = Digest(store, rules, clock=tomorrow)
        await Digesting(store, rules.summaries, lambda: digest).run()
        report = await store.verify()
        assert report.ok, report
        assert (await store.read(Totals())).messages >= said
        for user in USERS:
            await check_user(store, Scope.of(user), policy, figures)


async def check_user(store: SqliteStore, scope: Scope, policy: str, figures: Figures) -> None:
    """Every message is covered once by what the policy makes of messages, and archived ones by a summary."""
    summaries = [
        each for each in await store.read(Summaries(scope, active=None)) if not each.replaced and each.level == 1
    ]
    made = [each for each in summaries if each.reach != "sources"]
    times: Counter[int] = Counter()
    for summary in made:
        for message in await store.read(CoveredMessages(scope, summary.id)):
            times[message.seq] += message.seq >= summary.fresh
    figures.add("summaries", len(made))
    figures.add("doubles", sum(count > 1 for count in times.values()))
    messages = sorted(await store.read(Messages(scope, limit=100_000)), key=lambda message: message.seq)
    covered = {seq for seq, count in times.items() if count}
    if policy == "tree":
        assert {message.seq for message in messages if not message.active} == covered
        assert (await store.read(UserLedger(scope))).open_turns < 4
    left = [message.seq for message in messages if message.seq not in covered]
    # What is not covered is the newest: too little for another summary, or never covered at all.
    assert left == [message.seq for message in messages][len(messages) - len(left) :]
    assert len(left) <= 8
