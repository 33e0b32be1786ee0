"""Retention: by kind and age, archived by default, removed only where an operator says so."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import aforesaid
from aforesaid.domain.receipt import Receipt
from aforesaid.domain.scope import Scope
from aforesaid.domain.summary import SummaryDraft
from aforesaid.errors import InvalidInput, StoreFull
from aforesaid.memory import Memory, UserMemory
from aforesaid.settings import Settings, load_settings
from aforesaid.store import open_store
from aforesaid.store.operations import Change
from aforesaid.store.people import Marks
from aforesaid.store.retention import Discard
from aforesaid.store.summaries import Archive
from digesting import MovingClock, Scribe, remembering
from making import adding

NOW = datetime.now(UTC)


@asynccontextmanager
async def keeping(
    location: str,
    profile: str | Mapping[str, Any] = "companion",
    *,
    chat: Scribe | None = None,
    clock: MovingClock | None = None,
    **rules: int,
) -> AsyncIterator[Memory]:
    """Open a memory with rules, as `messages__archive_days=30`."""
    given = {f"retention.{key.replace('__', '.')}": days for key, days in rules.items()}
    known = replace(Settings(), retention=load_settings(env={}, overrides=given).retention)
    when = clock or MovingClock(datetime.now(UTC))
    async with remembering(location, profile, chat=chat, clock=when, settings=known) as memory:
        yield memory


async def say(user: UserMemory, *texts: str, days_ago: float = 0) -> None:
    for number, text in enumerate(texts):
        await user.add("user", text, at=NOW - timedelta(days=days_ago) + timedelta(seconds=number))


def done(report: Any) -> list[tuple[str, str, int]]:  # noqa: ANN401
    return [(rule.kind, rule.action, rule.count) for rule in report.rules]


@pytest.mark.req("B15")
async def test_by_default_nothing_is_cleaned_up(location: str) -> None:
    assert not Settings().retention.anything
    async with keeping(location) as memory:
        await say(memory.user("ann"), "very old", days_ago=10_000)
        assert (await memory.cleanup()).rules == ()
        assert (await memory.upkeep()).cleaned == 0
        assert [message.active for message in await memory.user("ann").history()] == [True]
        assert dict((await memory.health()).component("cleanup").facts) == {"rules": "receipts: deleted after 30 days"}


@pytest.mark.req("B15", "C18", "D14")
async def test_old_messages_are_archived_and_can_still_be_found(location: str) -> None:
    async with keeping(location, messages__archive_days=30) as memory:
        ann = memory.user("ann")
        await say(ann, "I saw a walrus.", "It sang.", days_ago=40)
        await say(ann, "I saw a seal.", days_ago=3)
        await say(ann, "A message that came late.", days_ago=50)
        report = await memory.cleanup()
        assert done(report) == [("messages", "archive", 3)]
        assert [message.active for message in await ann.history()] == [False, False, False, True]
        assert [hit.text for hit in await ann.search("walrus", kinds=["message"])][:1] == ["I saw a walrus."]
        (summary,) = await ann.summaries()
        assert summary.messages == 3
        assert done(await memory.cleanup()) == [("messages", "archive", 0)]
        await ann.roll_back(summary.id)
        assert [message.active for message in await ann.history()] == [True] * 4
        assert (await memory.verify()).ok


@pytest.mark.req("A18", "B15", "D14")
async def test_very_old_archives_are_removed_where_an_operator_says_so(location: str) -> None:
    async with keeping(location, messages__archive_days=30, messages__purge_days=365) as memory:
        ann = memory.user("ann")
        await say(ann, "I saw a walrus.", days_ago=400)
        await memory.cleanup()
        assert await ann.search("walrus", kinds=["message"]) == []
        assert await ann.history() == []
        assert len(await ann.summaries()) == 1, "what stands for it stays"
        assert (await memory.verify()).ok


@pytest.mark.req("C18")
async def test_a_dry_run_counts_and_changes_nothing(location: str) -> None:
    clock = MovingClock(datetime.now(UTC))
    async with keeping(
        location, clock=clock, messages__archive_days=30, memories__archive_days=30, audit__purge_days=1
    ) as memory:
        ann = memory.user("ann")
        await say(ann, *[f"message {number}" for number in range(450)], days_ago=40)
        await ann.note("fact", "Likes tea.")
        clock.forward(days=40)
        before = await memory.stats()
        dry = await memory.cleanup(dry_run=True)
        assert dry.dry_run
        assert done(dry) == [("messages", "archive", 450), ("memories", "archive", 1), ("audit", "purge", 1)]
        assert await memory.stats() == before
        assert "cleanup" not in await memory.store.read(Marks())
        wet = await memory.cleanup()
        assert done(wet)[:2] == done(dry)[:2]


@pytest.mark.req("C18")
async def test_a_dry_run_counts_what_would_be_archived_and_then_deleted(location: str) -> None:
    async with keeping(location, messages__archive_days=1, messages__purge_days=100) as memory:
        ann, bob = memory.user("ann"), memory.user("bob")
        await say(ann, *[f"message {number} {'x' * 30_000}" for number in range(3)], days_ago=200)
        await say(bob, "I saw a walrus.", days_ago=200)
        await say(bob, "I saw a seal.", days_ago=50)
        dry = await memory.cleanup(dry_run=True)
        assert done(dry) == [("messages", "archive", 5), ("messages", "purge", 3)], "bob's archive has a newer message"
        assert done(await memory.cleanup()) == done(dry)


@pytest.mark.req("B15")
async def test_memories_that_nobody_mentions_are_put_away_and_later_removed(location: str) -> None:
    clock = MovingClock(datetime.now(UTC))
    async with keeping(location, clock=clock, memories__archive_days=30, memories__purge_days=90) as memory:
        ann = memory.user("ann")
        tea = await ann.note("fact", "Likes tea.")
        await ann.note("fact", "Likes jam.")
        assert done(await memory.cleanup()) == [("memories", "archive", 0), ("memories", "purge", 0)]
        clock.forward(days=31)
        assert done(await memory.cleanup()) == [("memories", "archive", 2), ("memories", "purge", 0)]
        assert await ann.memories() == []
        put_away = await ann.memories(state="deactivated")
        assert {each.reason for each in put_away} == {"retention"}
        await ann.reactivate(tea.id)
        clock.forward(days=-2)
        assert done(await memory.cleanup()) == [("memories", "archive", 0), ("memories", "purge", 0)]
        assert [each.text for each in await ann.memories()] == ["Likes tea."], "who brings it back, wants it"
        clock.forward(days=100)
        assert done(await memory.cleanup()) == [("memories", "archive", 1), ("memories", "purge", 2)]


async def test_whoever_switched_memory_off_gets_no_summary(location: str) -> None:
    async with keeping(location, messages__archive_days=30) as memory:
        await say(memory.user("ann"), "hello", days_ago=40)
        await memory.user("ann").set("memory_enabled", value=False)
        await say(memory.user("bob"), "hello", days_ago=40)
        assert done(await memory.cleanup()) == [("messages", "archive", 1)]
        assert await memory.user("ann").summaries() == []


@pytest.mark.req("C18")
async def test_it_happens_once_a_day_with_upkeep(location: str) -> None:
    clock = MovingClock(datetime.now(UTC))
    async with keeping(location, clock=clock, messages__archive_days=30) as memory:
        ann = memory.user("ann")
        await say(ann, "one", days_ago=40)
        assert (await memory.upkeep()).cleaned == 1
        await say(ann, "two", days_ago=40)
        clock.forward(hours=23)
        assert (await memory.upkeep()).cleaned == 0, "not before a day has passed"
        clock.forward(hours=1)
        assert (await memory.upkeep()).cleaned == 1
        part = (await memory.health()).component("cleanup")
        assert (part.status, part.last_update) == ("active", clock.time)
        assert dict(part.facts) == {"rules": "messages: archived after 30 days; receipts: deleted after 30 days"}
        clock.forward(days=-10)
        assert (await memory.upkeep()).error is None, "a clock that was wrong does not stop it"


async def test_it_happens_by_itself(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aforesaid.upkeep.cleaning._FIRST_LOOK_SECONDS", 0.0)
    async with keeping(location, messages__archive_days=30) as memory:
        ann = memory.user("ann")
        await say(ann, "one", days_ago=40)
        while "cleanup" not in await memory.store.read(Marks()):
            await asyncio.sleep(0.02)
        assert [message.active for message in await ann.history()] == [False]


@pytest.mark.req("C18")
async def test_what_was_broken_off_goes_on_where_it_stopped(location: str) -> None:
    async with keeping(location, messages__archive_days=30, messages__purge_days=300, audit__purge_days=1) as memory:
        ann = memory.user("ann")
        for each in range(4):
            await say(ann, f"message {each} {'x' * 40_000}", days_ago=400 + each)
        apply, discards = memory.store.apply, 0

        async def breaking(changes: list[Change]) -> Receipt:
            nonlocal discards
            discards += any(isinstance(change, Discard) for change in changes)
            if discards:
                raise StoreFull("no room is left on the device")
            return await apply(changes)

        memory.store.apply = breaking  # type: ignore[method-assign, assignment]
        report = await memory.cleanup()
        assert report.error == "no room is left on the device"
        assert done(report) == [("messages", "archive", 4)]
        assert "cleanup" not in await memory.store.read(Marks()), "it is due until it came to its end"
        part = (await memory.health()).component("cleanup")
        assert (part.status, part.issues) == ("failing", ("no room is left on the device",))
        memory.store.apply = apply  # type: ignore[method-assign]
        report = await memory.cleanup()
        assert done(report)[:2] == [("messages", "archive", 0), ("messages", "purge", 4)]
        assert report.error is None
        assert (await memory.health()).component("cleanup").status == "active"
        assert (await memory.verify()).ok


async def test_a_model_that_is_down_leaves_messages_as_they_are(location: str) -> None:
    scribe = Scribe()
    scribe.down = True
    async with keeping(location, chat=scribe, messages__archive_days=30) as memory:
        await say(memory.user("ann"), "hello", days_ago=40)
        report = await memory.upkeep()
        assert report.error == "test:scribe does not answer"
        assert [message.active for message in await memory.user("ann").history()] == [True]
        scribe.down = False
        assert (await memory.upkeep()).cleaned == 1


async def test_two_at_once_do_nothing_twice(location: str) -> None:
    async with keeping(location, messages__archive_days=30) as memory:
        ann = memory.user("ann")
        await say(ann, *[f"message {number}" for number in range(50)], days_ago=40)
        reports = await asyncio.gather(memory.cleanup(), memory.cleanup())
        assert sum(rule.count for report in reports for rule in report.rules) == 50
        assert sum(summary.messages for summary in await ann.summaries()) == 50


@pytest.mark.req("B15")
def test_rules_are_checked() -> None:
    for key, value in (("messages.purge_days", 0), ("summaries.archive_days", 5), ("audit.purge_days", "soon")):
        with pytest.raises(InvalidInput, match=f"retention.{key.split('.')[0]}"):
            load_settings(env={}, overrides={f"retention.{key}": value})


@pytest.mark.req("B15")
async def test_the_window_of_summaries_is_seven_days_and_can_be_changed(location: str) -> None:
    for profile, days in (("community", 6), ({"extends": "community", "summary_days": 3}, 2)):
        async with keeping(location, profile) as memory:
            steps = memory._services.digest.steps
            assert len(steps.history_days(NOW.date())) == days  # type: ignore[union-attr]
            assert await memory.user("ann").week() is None
    async with keeping(location, {"extends": "community", "summary_days": 1}) as memory:
        assert await memory.user("ann").week() is None


def test_the_rules_that_are_shown_can_be_used(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent.parent / "docs/how-to/set-retention-rules.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0]
    path = tmp_path / "aforesaid.toml"
    path.write_text(shown, encoding="utf-8")
    rules = load_settings(path, env={}).retention
    assert (rules.messages.archive_days, rules.messages.purge_days, rules.audit.purge_days) == (90, 730, 365)


PROGRAM = """
import sys, aforesaid
rules = {"retention.messages.purge_days": 365, "retention.audit.purge_days": 1}
def told(what, done, total):
    print(what, done, total, flush=True)
    if sys.argv[2] == "wait":
        sys.stdin.readline()
with aforesaid.open(sys.argv[1], settings=rules, embedder="none") as memory:
    memory.cleanup(told)
"""
OLD = datetime(2020, 1, 1, tzinfo=UTC)


async def fill(location: str, archives: int) -> None:
    store = await open_store(location)
    for number in range(archives):
        scope = Scope.of(f"user{number % 3}")
        said = [adding(scope, f"old words {number} {each}", at=OLD + timedelta(days=number)) for each in range(100)]
        seqs = tuple(result.seq for result in (await store.apply(said)).results)  # type: ignore[union-attr]
        await store.apply([Archive(SummaryDraft(scope, f"summary {number}", messages=seqs))])
        await store.apply([adding(scope, f"young words {number}")])
    await store.close()


@pytest.mark.req("C18")
@pytest.mark.parametrize("kind", ["sqlite", "json"])
async def test_killed_in_the_middle(kind: str, tmp_path: Path) -> None:
    location = str(tmp_path / "memory.db") if kind == "sqlite" else f"json:{tmp_path / 'memory.json'}"
    await fill(location, 12)
    for how in ("wait", "go on"):
        command = [sys.executable, "-c", PROGRAM, location, how]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("removing messages")
            process.kill()
    async with aforesaid.connect(location, embedder="none", settings={"retention.messages.purge_days": 365}) as memory:
        assert (await memory.verify()).ok
        left = (await memory.cleanup(dry_run=True)).rules[0].count
        assert left <= 1_000, "each of them removed something"
        assert left % 100 == 0, "whole archives"
        assert (await memory.cleanup()).rules[0].count == left
        texts = [message.text for number in range(3) for message in await memory.user(f"user{number}").history(1_000)]
        assert sorted(texts) == sorted(f"young words {number}" for number in range(12))
        assert (await memory.stats()).summaries == 12
        assert (await memory.verify()).ok
